/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom waits were for, by functions: where below a wait of a profile stands the stack of who held what was
 * waited for, and last what that one was doing (a note).
 */
#pragma once

#include "agg/profile.h"

#include <stdint.h>

struct blame_row {
	/*
	 * Of groups: the innermost function that waited, and that held. UINT32_MAX: none; the stacks had no
	 * frames.
	 */
	uint32_t waiter, holder;
	uint32_t state; /* strtab id of the last frame: "[holder: sleep]" */
	uint64_t time_ns;
};

struct blame_rows {
	struct profile_groups groups;
	VEC(struct blame_row) rows; /* most time first */
};

/* No rows if there is no such wait. 0 or -ENOMEM; free in either case. */
int blame_rows__init(struct blame_rows *rows, const struct profile *profile, enum group_by group);
void blame_rows__free(struct blame_rows *rows);
