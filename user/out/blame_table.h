/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The second table on stdout, of a profile that tells whom waits were for: how much, who waited, who held
 * what it waited for, and what that one was doing meanwhile.
 */
#pragma once

#include "agg/profile.h"
#include "base/buf.h"
#include "out/summary.h"

/* Append the table, behind an empty line; nothing when there are no rows. 0 or -ENOMEM. */
int blame_table__format(const struct profile *profile, const struct summary_style *style, struct buf *buf);
