/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two profiles laid over each other: by functions, since lines move when code is changed. A function is the
 * same in both if its name and its file are, but for the number of the Python version in the file's path.
 */
#pragma once

#include "agg/profile.h"

#include <stdint.h>

enum { COMPARE_BASE, COMPARE_NEW, COMPARE_SIDES };

struct compare_row {
	uint32_t frame; /* of the comparison's profile */
	uint64_t self[COMPARE_SIDES], total[COMPARE_SIDES];
};

struct compare {
	/*
	 * Both: functions as frames, whose line is that of the def, and stacks of them. A node weighs what it
	 * does in both, as shares: COMPARE_WHOLE is all samples of one.
	 */
	struct profile both;
	VEC(uint64_t) self[COMPARE_SIDES]; /* of each node of both.trie, as it was */
	uint64_t total[COMPARE_SIDES];
	uint64_t duration_ns[COMPARE_SIDES];
	VEC(struct compare_row) rows; /* the greatest change of the share of `self` first, up or down */
};

#define COMPARE_WHOLE 1000000000000ull

/* 0 or -ENOMEM; free in either case. */
int compare__init(struct compare *compare, const struct profile *base, const struct profile *new);
void compare__free(struct compare *compare);

/* A weight as its share of all of its side, in percent. */
double compare__share(const struct compare *compare, int side, uint64_t weight);
/* ... in milliseconds for each second that the side lasted; 0 if that is not known. */
double compare__per_second(const struct compare *compare, int side, uint64_t weight);
