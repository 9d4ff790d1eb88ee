/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile as data: what the writers get (const), whatever engine or file it came from.
 */
#pragma once

#include "agg/account.h"
#include "agg/frame.h"
#include "agg/trie.h"
#include "base/strtab.h"

#include <stdint.h>

enum group_by { GROUP_LINE, GROUP_FUNCTION };

struct profile {
	struct strtab *strings;
	struct frame_table frames;
	struct trie trie;
	/* metadata */
	uint64_t samples;   /* sum of all weights: samples taken, whatever their stack says */
	uint64_t period_ns; /* CPU time that one sample stands for */
	uint64_t start_realtime_ns;
	uint64_t duration_ns;
	const char *command; /* what was profiled, already escaped; borrowed from the session */
	struct account account;
};

/* Here alone the unit of weights is known. The weight that readers count as one: a sample. */
static inline uint64_t profile__unit(const struct profile *profile)
{
	return 1;
}

/* A weight in that unit. */
static inline uint64_t profile__value(const struct profile *profile, uint64_t weight)
{
	return weight / profile__unit(profile);
}

/* The CPU time that a weight stands for. */
static inline uint64_t profile__ns(const struct profile *profile, uint64_t weight)
{
	return weight * profile->period_ns;
}

/* 0 or -ENOMEM. */
int profile__init(struct profile *profile, uint32_t max_nodes);
void profile__free(struct profile *profile);

/* Sum of all weights. */
uint64_t profile__total(const struct profile *profile);

/*
 * The frames as a report shows them: frames that differ only in what the grouping leaves out share a group. A
 * group is a frame whose `line` is the one to print (executing line or first line) and whose first_line is 0.
 */
struct profile_groups {
	struct frame_table groups;
	uint32_t *of_frame; /* frame id -> group id */
};

/* 0 or -ENOMEM; free in either case. */
int profile_groups__init(struct profile_groups *groups, const struct profile *profile, enum group_by group);
void profile_groups__free(struct profile_groups *groups);

/*
 * One row of a flat report. self: samples whose innermost frame is this one; total: samples with the frame
 * anywhere in the stack, counted once a sample however often it recurs.
 */
struct profile_row {
	uint32_t function, file; /* strtab ids */
	uint32_t line;		 /* executing line (GROUP_LINE) or first line (GROUP_FUNCTION) */
	enum frame_kind kind;
	bool approximate; /* as in struct frame */
	uint64_t self, total;
};

struct profile_rows {
	VEC(struct profile_row) rows;
};

/* Fold the trie into rows, largest self first, then total, name, file, line. 0 or -ENOMEM (no rows then). */
int profile__rows(const struct profile *profile, enum group_by group, struct profile_rows *out);
void profile_rows__free(struct profile_rows *rows);
