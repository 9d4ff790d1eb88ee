/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes of a run: those that live, the last of those that have ended, since samples of them may still
 * come, and sums over the others. However many come and go, no more is kept than there are at one time.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "run/process.h"

#define PROCESSES_KEPT 64 /* Pythons that are told of by themselves after their end */

/* What is known of processes that are not kept. */
struct processes_past {
	uint64_t pythons, others;
	uint64_t ended_unknown; /* of the others */
	uint64_t cpu_ns; /* of the Pythons */
	uint64_t samples;
	struct remote_stats reads;
};

struct processes {
	VEC(struct process *) items; /* owned; by their beginning */
	struct hmap by_pid;	     /* -> struct process * */
	uint32_t serials;
	size_t ended; /* of the items, not released yet */
	size_t kept;  /* of the items, released */
	struct processes_past past;
};

/* Takes it over; one that had its pid before is found no more. 0 or -ENOMEM: it is still the caller's. */
int processes__add(struct processes *processes, struct process *process);
/* The one that has the pid now, or had it last; NULL. */
struct process *processes__find(const struct processes *processes, pid_t pid);
/* Its end was noticed; its samples may still be on their way. */
void processes__end(struct processes *processes, struct process *process, uint64_t now);
/*
 * Marks every process that ended before `before_ns` as over, calls `forget`, once, so that nobody refers to
 * them any more, and frees them or keeps what they were. Returns whether there was one.
 */
bool processes__sweep(struct processes *processes, uint64_t before_ns, void (*forget)(void *context),
		      void *context);
/* Processes that live. */
size_t processes__alive(const struct processes *processes);
void processes__free(struct processes *processes);
