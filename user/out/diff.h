/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed between two profiles: a table, and a flame graph in the colours of change (the page of
 * out/flamegraph.c).
 */
#pragma once

#include "agg/compare.h"
#include "base/buf.h"
#include "out/summary.h"

/* Of one side, for people. */
struct diff_side {
	const char *name; /* of its file */
	const struct profile *profile;
};

/* Why the two cannot be compared; static; NULL: they can. */
const char *diff__refuse(const struct diff_side sides[COMPARE_SIDES]);
/* What they are, and in what they differ, some lines. */
void diff__head(const struct diff_side sides[COMPARE_SIDES], const struct compare *compare, struct buf *out);
/* The rows, the greatest change of the share of time first. */
void diff__table(const struct compare *compare, const struct summary_style *style, struct buf *out);
/* The page. 0 or -errno. */
int diff__page(const struct diff_side sides[COMPARE_SIDES], const struct compare *compare, struct buf *out);
