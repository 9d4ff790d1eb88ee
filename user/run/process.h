/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One profiled process for as long as its pid lives, across execs: its attached target (when it is Python at
 * the moment) and all that is cached of that target's memory.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "py/code.h"
#include "py/tail.h"
#include "py/target.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid;
	int pidfd;
	bool exited;
	bool attached;	/* target is valid */
	bool no_slot;	/* for tests: thread states are found by their lists only */
	uint32_t epoch; /* of stack ids; changes with every attach and every flush of caches */
	struct py_target target;
	struct code_cache codes;
	struct hmap lines;	/* code index << 32 | bytecode offset -> frame id */
	struct hmap tail_index; /* thread state -> index in tails */
	VEC(struct tail_reader) tails;
	uint32_t witness_versions;
	uint64_t cpu_start_ns; /* CPU time of the process when sampling began */
	uint64_t cpu_end_ns;   /* ... and when last seen */
	uint64_t set_ns;       /* when the kernel side was told how to walk it */
	uint64_t retry_ns;     /* not attached: when to try again */
	uint32_t retries;
	uint32_t execs;
	struct remote_stats past_reads; /* of programs that it ran before */
	char command[128]; /* escaped */
};

/* Opens a pidfd; strings is borrowed. 0 or -errno (-ESRCH: no such process). */
int process__open(struct process *process, pid_t pid, struct strtab *strings);
/* Attach to what the process is now; on failure see py/target.h. */
enum py_attach_error process__attach(struct process *process, char *reason, size_t reason_size);
/* The same, with some seconds' patience for an interpreter that is starting up. */
enum py_attach_error process__attach_patiently(struct process *process, char *reason, size_t reason_size);
/* Why process__open failed, without the pid. */
void process__explain_missing(pid_t pid, int err, char *reason, size_t reason_size);
/* Forget everything read from the target's memory (after an exec, or when the caches are full). */
void process__forget(struct process *process);
/* The reader for one thread's deep stacks; NULL when out of memory. Borrowed until the next call. */
struct tail_reader *process__tail_reader(struct process *process, py_addr tstate);
/* Look at its command line again, after an exec. */
void process__update_command(struct process *process);
/* Look at its CPU time once more. */
void process__update_cpu(struct process *process);
/* Add what was read of it. */
void process__add_reads(const struct process *process, struct remote_stats *sum);
void process__close(struct process *process);
