/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom waits for locks are due to. A lock has one holder at a time. From when to when one held it while off
 * the CPU is known; of one that ran, samples tell now and then. A wait is due to the first as long as they
 * overlap. What is left of all waits of one waiter is shared out by the samples that fell into them. Where
 * none did, the holder is not known; nor is it of what all waits for a lock are more than its samples are
 * worth, when it may have been free, and who waited had no CPU to run on. So the shares of a waiter always
 * come to what it has waited.
 *
 * Waiters and holders are the caller's numbers. What is added is kept until it is joined, which is when all
 * is there that concerns the time up to then; in between it may come in any order.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define BLAME_NOBODY UINT32_MAX /* the holder is not known */

struct blame_wait {
	uint64_t lock, from_ns, to_ns;
	uint64_t extra_ns; /* what it stands for besides ... */
	uint32_t kind;	   /* ... of this kind (agg/estimate.h) */
	uint32_t waiter;
};

/* Off the CPU; or, if both times are one, a sample of it on the CPU. */
struct blame_hold {
	uint64_t lock, from_ns, to_ns;
	uint32_t holder;
};

struct blame_share {
	uint32_t waiter, holder, kind;
	uint64_t time_ns, extra_ns;
};

/* What is left of waits. */
struct blame_due {
	uint64_t lock;
	struct blame_share share; /* its holder is of no meaning */
};

/* Samples of a holder that fell into waits of a waiter. */
struct blame_pair {
	uint64_t lock;
	uint32_t waiter, holder;
	uint64_t samples;
};

struct blame {
	uint64_t sample_ns; /* what one is worth; set by the caller */
	VEC(struct blame_wait) waits;
	VEC(struct blame_hold) holds, samples;
	/* joined, and to be shared out: */
	struct hmap due_index; /* hash of lock, waiter, kind -> index in due */
	VEC(struct blame_due) due;
	struct hmap pair_index; /* ... of lock, waiter, holder -> index in pairs */
	VEC(struct blame_pair) pairs;
};

/* 0 or -ENOMEM. */
int blame__wait(struct blame *blame, const struct blame_wait *wait);
int blame__hold(struct blame *blame, const struct blame_hold *hold);

/* Is it time to settle, for the memory that it takes? */
bool blame__is_full(const struct blame *blame);

typedef void (*blame_fn)(void *context, const struct blame_share *share);
/* Joins all that is there, shares it out, and forgets it. 0 or -ENOMEM. */
int blame__settle(struct blame *blame, blame_fn take, void *context);
void blame__free(struct blame *blame);
