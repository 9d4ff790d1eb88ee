/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples without BPF: a timer of our own, and at each tick the stacks of the threads that run at that
 * moment, read from outside (py/unwind.h). Makes the same records as the kernel side does. Needs no more than
 * the permission to read the target's memory.
 *
 * A tick lies at a random point of its period, so that no target can keep step with it. Which threads run is
 * told by the kernel (os/task.h): threads that ran lately and the one that holds the GIL are looked at in
 * every tick, the others by turns, and a sample of one of those counts for as many ticks as a turn takes. So
 * a tick costs by the threads that run, not by those that there are.
 */
#pragma once

#include "py/unwind.h"
#include "run/process.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum poller_takes {
	POLLER_ON_CPU,	/* threads that run */
	POLLER_ALL,	/* ... and those that wait */
	POLLER_OFF_CPU, /* those only */
};

struct poller_config {
	uint32_t rate_hz;
	enum poller_takes takes;
	bool want_names;   /* samples carry the name of their thread */
	bool want_exceptions; /* ... and tell whether an exception is being handled */
	bool blocking;	   /* stop a thread while its stack is read */
	bool empty;	   /* wake up for each tick and do nothing: what the timer alone costs, for benchmarks */
	bool frame_marker; /* use it where the version has it (py/marker.h) */
};

/* What did not become a sample, and why; each is a tick of one thread that ran. */
struct poller_counts {
	uint64_t missed;      /* the profiler came too late for the tick */
	uint64_t torn;	      /* the stack changed during every reading of it */
	uint64_t ended;	      /* the thread ended between being found running and being read */
	uint64_t unreadable;  /* a frame lay in no readable memory */
	uint64_t moved;	      /* samples with a caller whose line could not be told; these are samples */
	uint64_t not_stopped; /* read while they ran, though they were to be stopped; these are samples */
};

struct poller;

typedef void (*poller_record_fn)(void *context, const void *record, size_t size);

/* 0 or -ENOMEM. */
int poller__open(struct poller **out, const struct poller_config *config);
void poller__close(struct poller *poller);

/* Sample this process from now on, by its target as it is attached (again). 0 or -errno (-ESRCH: it has
 * ended; -EBUSY: its frame markers are used by another profiler). */
int poller__add(struct poller *poller, struct process *process);
void poller__remove(struct poller *poller, const struct process *process);

/*
 * Sample until the time `until_ns` (CLOCK_MONOTONIC), or until there is something new to look up, or a signal
 * has come. Number of records handed over, or -errno.
 */
int poller__run(struct poller *poller, uint64_t until_ns, poller_record_fn record, void *context);

/* The run is over: the next poller__run() tells what is left of waits. */
void poller__stop(struct poller *poller);

/* A stack with this id is to be handed over anew when it is met again. */
void poller__send_again(struct poller *poller, uint64_t stack_id);

struct poller_counts poller__counts(const struct poller *poller);
/* Sums over all processes, those that were removed included. */
struct unwind_stats poller__unwind_stats(const struct poller *poller);
