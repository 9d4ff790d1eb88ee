/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile as data: what the writers get (const), whatever engine or file it came from.
 */
#pragma once

#include "agg/account.h"
#include "agg/frame.h"
#include "agg/listing.h"
#include "agg/trie.h"
#include "base/strtab.h"

#include <stdint.h>

enum group_by { GROUP_LINE, GROUP_FUNCTION };

/* What a reader is shown of the weights, which are nanoseconds. */
enum profile_unit {
	PROFILE_SAMPLES, /* each stands for period_ns of CPU time */
	PROFILE_TIME,
};

struct profile {
	struct strtab *strings;
	struct frame_table frames;
	struct trie trie;
	struct listings listings; /* code, if a format that shows it was asked for */
	/* metadata */
	enum profile_unit unit;
	uint64_t samples;   /* taken, whatever their stack says; waits are among them */
	uint64_t period_ns; /* CPU time that one sample on the CPU stands for; 0: weights are samples */
	uint64_t start_realtime_ns;
	uint64_t start_ns; /* the same moment by CLOCK_MONOTONIC */
	uint64_t duration_ns;
	const char *command; /* what was profiled, already escaped; borrowed from the session */
	struct account account;
};

/* The weight that readers count as one: that of a sample, or a microsecond. */
static inline uint64_t profile__unit(const struct profile *profile)
{
	return profile->unit == PROFILE_TIME ? 1000 : profile->period_ns ?: 1;
}

/* What that is called. */
static inline const char *profile__unit_name(const struct profile *profile)
{
	return profile->unit == PROFILE_TIME ? "microseconds" : "samples";
}

/* The time that a weight stands for. */
static inline uint64_t profile__ns(const struct profile *profile, uint64_t weight)
{
	return weight;
}

/* 0 or -ENOMEM. */
int profile__init(struct profile *profile, uint32_t max_nodes);
void profile__free(struct profile *profile);

/* Sum of all weights. */
uint64_t profile__total(const struct profile *profile);
/* A weight as a whole number, in the unit: samples, or microseconds. */
uint64_t profile__value(const struct profile *profile, uint64_t weight);

/*
 * Of each node of the trie the wait that it is or stands below, 0: none. Below a wait is whom it was for, as
 * those that held a lock meanwhile. An array that the caller frees; NULL: out of memory.
 */
uint32_t *profile__wait_nodes(const struct profile *profile);
uint32_t *profile_wait_nodes(const struct trie *trie, const struct frame_table *frames);

/* Time by what was waited for, most first. The rest of the total was spent on the CPU. */
struct profile_wait {
	uint32_t reason; /* strtab id, "[sleep]" */
	uint64_t time_ns;
};
struct profile_waits {
	VEC(struct profile_wait) items;
};
/* 0 or -ENOMEM; free in either case. */
int profile__waits(const struct profile *profile, struct profile_waits *out);
void profile_waits__free(struct profile_waits *waits);

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
 * One row of a flat report. self: weight of the samples whose innermost frame is this one; total: of those
 * with the frame anywhere in the stack, counted once a sample however often it recurs. What a frame waited
 * for is its own.
 */
struct profile_row {
	uint32_t function, file; /* strtab ids */
	uint32_t line;		 /* executing line (GROUP_LINE) or first line (GROUP_FUNCTION) */
	enum frame_kind kind;
	bool approximate; /* as in struct frame */
	uint32_t wait;	  /* strtab id of what most of `self` was a wait for; 0: it was on the CPU */
	uint64_t self, total;
	uint64_t waited; /* of `self`: waits that tell whom they were for */
};

struct profile_rows {
	VEC(struct profile_row) rows;
};

/* Fold the trie into rows, largest self first, then total, name, file, line. 0 or -ENOMEM (no rows then). */
int profile__rows(const struct profile *profile, enum group_by group, struct profile_rows *out);
void profile_rows__free(struct profile_rows *rows);
