/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One profiled process for as long as its pid lives, across execs: its attached target (when it is Python at
 * the moment) and all that is cached of that target's memory. run/processes.h: all of them.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "os/halt.h"
#include "os/pidns.h"
#include "py/code.h"
#include "py/gils.h"
#include "py/tail.h"
#include "py/target.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct container;
/* Looks at whether it was kept from running, one a second. */
struct process_halts {
	uint32_t looks, halted;
	struct halt last; /* of those that were halted */
	bool now;
	uint32_t told;	 /* messages */
	uint64_t cpu_ns; /* of the process at the last look */
};

struct process {
	pid_t pid;
	pid_t inner_pid; /* in its own pid namespace; 0: the same, or not known */
	int pidfd;
	uint32_t serial;  /* no other process of the run has it, though it may have the pid */
	uint32_t renamed; /* times that its command changed */
	bool exited;	  /* its end was noticed */
	bool gone;	  /* its memory could not be read any more */
	bool over;	  /* it ended long ago, and is about to be forgotten */
	bool attached;	/* target is valid */
	bool python;	/* it is known to be, or was once and was asked for */
	bool asked_for; /* by the user, by its number or as the command; else it was found */
	bool inherited; /* its target is its parent's, from which it was forked; it has called no exec since
			 */
	bool excluded;	  /* it is Python, but was not asked for */
	bool unsupported; /* counted as that */
	bool denied;	  /* ... and as that, whatever it calls exec of */
	uint32_t name_looks; /* forked: looks for a name of its own so far */
	enum py_attach_error error; /* of the last attach; until the first one, and after an exec: GONE */
	bool no_slot;	/* for tests: thread states are found by their lists only */
	uint32_t epoch; /* of stack ids; changes with every attach and every flush of caches */
	uint32_t engine_epoch; /* the one that the engine was told last */
	struct py_target target;
	struct code_cache codes;
	struct py_gils gils;	/* where waits are told of */
	bool had_gil;		/* ... one was found, of the program that it runs or ran last */
	struct hmap lines;	/* code index << 32 | bytecode offset -> frame id */
	uint64_t start_ticks;	/* of one without a pidfd, else 0 */
	struct hmap tail_index; /* thread state -> index in tails */
	VEC(struct tail_reader) tails;
	uint32_t witness_versions;
	uint64_t cpu_start_ns; /* CPU time of the process when sampling began */
	uint64_t cpu_end_ns;   /* ... and when last seen */
	bool cpu_known;	       /* ... which was at its end */
	bool cpu_missed;       /* it has ended, and that is not known */
	uint64_t since_ns;     /* when the kernel side told of it: what came before is another's */
	uint64_t exec_id;      /* of the program that it ran when last looked at, 0: not looked at yet */
	uint64_t set_ns;       /* when the kernel side was told how to walk it */
	uint64_t retry_ns;     /* not attached: when to try again */
	uint64_t code_bytes;   /* ... that it had mapped when looked at and no Python; 0: not looked at */
	uint32_t retries;
	uint32_t frameless; /* looks at which it was Python and had run no frame */
	uint32_t execs;
	uint64_t exited_ns;		/* when its end was noticed */
	uint64_t samples;		/* in the profile */
	uint64_t skipped;		/* not in the profile: taken while it was not known to be Python */
	struct container *container;	/* that it is in, as far as looked up; borrowed; NULL: none */
	size_t stacks;			/* of the symbolizer, that are its ... */
	uint64_t batch;			/* ... and in which of its batches code objects were read last */
	uint64_t begun;			/* ... and which one was begun with last */
	struct remote_stats past_reads; /* of programs that it ran before */
	struct process_halts halts;
	char command[128];     /* escaped ... */
	char raw_command[128]; /* ... and as it is */
};

/*
 * Opens a pidfd; strings is borrowed. 0 or -errno (-ESRCH: no such process). Where there are no more file
 * descriptors to be had it has none: then it is told by its start time.
 */
int process__open(struct process *process, pid_t pid, struct strtab *strings);
/*
 * It was forked from `parent`, whose target is its own for now: the same memory at the same addresses. It may
 * have ended since.
 */
void process__inherit(struct process *process, const struct process *parent, uint32_t epoch);
/* By its pidfd, whatever /proc says. */
bool process__lives(const struct process *process);
/* It has ended, and what it was then nobody had the time to find out. */
bool process__ended_unknown(const struct process *process);
/* Attach to what the process is now; on failure see py/target.h. */
enum py_attach_error process__attach(struct process *process, char *reason, size_t reason_size);
/* The same, with some seconds' patience for an interpreter that is starting up. */
enum py_attach_error process__attach_patiently(struct process *process, char *reason, size_t reason_size);
/* "12", or "12 [7 inside]" if it is in a pid namespace of its own. */
const char *process__number(const struct process *process, char text[PIDNS_TEXT]);
/* Why process__open failed, without the pid. */
void process__explain_missing(pid_t pid, int err, char *reason, size_t reason_size);
/* Forget everything read from the target's memory (after an exec, or when the caches are full). */
void process__forget(struct process *process);
/* The reader for one thread's deep stacks; NULL when out of memory. Borrowed until the next call. */
struct tail_reader *process__tail_reader(struct process *process, py_addr tstate);
/* It is not worth its memory; only for the one that was made last. */
void process__drop_tail_reader(struct process *process, py_addr tstate);
/* Is its program, or its main thread, called like a Python? Its arguments do not matter. */
bool process__is_named_python(const struct process *process);
/* What it is about to run; NULL at its end. */
void process__set_command(struct process *process, char *const *argv);
/* Look at its command line again, after an exec. */
void process__update_command(struct process *process);
/* ... of one that was forked, and may have given itself another since, as workers of servers do. */
void process__look_for_name(struct process *process);
/* Look at its CPU time once more. False: it is gone, and the last time stays. */
bool process__update_cpu(struct process *process);
/* Look whether something keeps it from running, and tell of a change. Its CPU time has just been read. */
void process__look_for_halt(struct process *process);
/* process_gils.c: the GIL that this address lies in, or that this thread state has to hold; 0: none. */
py_addr process__gil_at(struct process *process, py_addr address, uint64_t now);
py_addr process__gil_of(struct process *process, py_addr tstate, uint64_t now);
/* Add what was read of it. */
void process__add_reads(const struct process *process, struct remote_stats *sum);
/* It has ended, and so has the use of all that was read of it. What it was and used stays known. */
void process__close(struct process *process);
