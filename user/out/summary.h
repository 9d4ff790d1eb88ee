/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table on stdout: self %, total %, samples or seconds (and then what most of these were spent on; where
 * a lock was held and waited for, how long each), function, file:line, most self time first.
 */
#pragma once

#include "agg/profile.h"
#include "base/buf.h"

#include <stdbool.h>

#define SUMMARY_ROWS 15u

struct summary_style {
	enum group_by group;
	unsigned int max_rows; /* 0 = all; SUMMARY_ROWS unless asked otherwise */
	unsigned int width;    /* 0 = no limit; long names lose their middle, long paths their beginning */
	bool color;	       /* ANSI colours that read well on dark and on light */
};

/* Append the table; nothing when there are no rows. 0 or -ENOMEM. */
int summary__format(const struct profile *profile, const struct summary_style *style, struct buf *buf);
