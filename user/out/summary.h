/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table on stdout: self %, total %, function, file:line, most self time first.
 */
#pragma once

#include "agg/profile.h"
#include "base/buf.h"

#include <stdbool.h>

struct summary_style {
	enum group_by group;
	unsigned int max_rows; /* 15 unless asked otherwise */
	unsigned int width;    /* columns; 0 = no limit. Long names and paths are shortened in the middle to fit. */
	bool color;
};

/* Append the table. 0 or -ENOMEM. */
int summary__format(const struct profile *profile, const struct summary_style *style, struct buf *buf);
