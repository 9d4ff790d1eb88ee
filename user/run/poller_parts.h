/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the poller, for run/poller*.c only: poller_processes.c has the processes, poller_threads.c lists
 * the threads of one, poller_choose.c says which of them are read in a tick, poller_records.c sends what was read
 * of them. poller.c makes a tick of these, and keeps its time.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "os/stop.h"
#include "os/task.h"
#include "py/unwind.h"
#include "run/poller.h"
#include "run/process.h"
#include "run/thread_ids.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SECOND	      1000000000ull
#define REFRESH_NS    (SECOND / 2)   /* lists of threads are read again after this at the latest */
#define REFRESH_LEAST (SECOND / 500) /* ... and not more often than this, however threads come and go */
#define ACTIVE_LOOKS  8		     /* looks in a row at a waiting thread before it is looked at by turns */

/* One thread state, or a thread that has none, for as long as it is there. */
struct lane {
	struct thread_stack stack;
	bool has_stack; /* false: a thread without thread state */
	bool shares;	/* its thread has another thread state too */
	bool found;	/* in the last lists */
	bool looked_at; /* whether it runs */
	bool off_cpu;	/* it did not when it was chosen, or had no CPU ... */
	bool is_ready;	/* ... for which it waits; else: */
	struct task_look look;
	uint64_t told_ns; /* its waits are told of up to then */
	pid_t tid;
	struct task_probe probe;
	struct stopped_task stopped;
	uint32_t waited;   /* looks in a row that found it waiting */
	uint64_t stack_id; /* of the stack that was read last, in this epoch ... */
	size_t collection; /* ... with that collection in it */
	uint32_t epoch;
	uint64_t found_ns;    /* when it was found first */
	uint64_t chosen_slot; /* tick in which it was read last */
	uint32_t weight;      /* ticks that a sample of this tick stands for ... */
	uint32_t unpaid;      /* ... and those that it could not run in, for want of a CPU */
	char comm[16];
};

/* One process. */
struct polled {
	struct process *process;
	struct unwinder unwinder;
	VEC(struct lane *) lanes;
	struct hmap by_tstate, by_tid; /* -> index in lanes */
	struct thread_ids ids;
	uint64_t refreshed_ns;
	bool stale;			    /* threads have come or gone since */
	VEC(struct lane *) active, waiting; /* lanes that ran in one of the last looks, and the others */
	uint32_t running;		    /* threads that ran in the last tick */
	double missed;			    /* ticks, or parts of one, that are not counted yet */
	bool stopped;			    /* as of state_ns: by a signal or a debugger */
	uint64_t state_ns;
	bool gone;
	double credit; /* samples that its CPU time pays for */
	uint64_t cpu_ns, cpu_read_ns;
	uint64_t run_ns, since_ns; /* CPU time since then, as of cpu_read_ns; it began to be followed then */
};

struct poller {
	struct poller_config config;
	VEC(struct polled *) processes;
	VEC(struct lane *) chosen; /* in this tick, of one process */
	VEC(struct thread_stack *) stacks;
	VEC(struct pbp_frame) joined; /* of thread states of one thread */
	struct hmap sent;	      /* stack ids */
	VEC(uint8_t) record_bytes;
	uint64_t start_ns, slot, due_ns;
	uint32_t stands_for; /* ticks: this one, and those before it that it is to make up for */
	bool last;	 /* this is the last tick: no turns */
	pid_t runner;	    /* the only thread that ran in this tick; 0: several did, or none */
	uint64_t follow_ns; /* when to look next on which CPU it runs */
	uint64_t random;
	uint64_t seed;
	double fund; /* samples that those that ended had paid for and not got: lent to those that come */
	struct poller_counts counts;
	struct unwind_stats past_unwind; /* of processes that were removed */
	poller_record_fn record;
	void *context;
	int records, batch; /* handed over in this run, and how many at most */
	bool news;
};

/* poller.c */

uint64_t poller_next_random(struct poller *poller);

/* poller_processes.c */

void poller_free_polled(struct poller *poller, struct polled *polled);

/* poller_threads.c: the lanes as the threads are now; those that are gone are dropped. 0 or -errno. */
int poller_refresh(struct poller *poller, struct polled *polled, uint64_t now);
/* -EBUSY: a profiler that uses the frame marker is at work there. */
int poller_check_markers(struct polled *polled);
/* The lane of a thread state; NULL. Until the next poller_refresh(). */
struct lane *poller_find_lane(const struct polled *polled, py_addr tstate);
void poller_free_lane(struct polled *polled, struct lane *lane);
bool poller_is_free_threaded(const struct polled *polled);

/* poller_choose.c: add those to poller->chosen that ran lately and run now; of the others, whose turn it is.
 * 0 or -ENOMEM. First, whether all of them are kept from running: where waits are told of. */
void poller_look_for_stop(struct poller *poller, struct polled *polled, uint64_t now);
int poller_choose_active(struct poller *poller, struct polled *polled);
int poller_choose_by_turns(struct poller *poller, struct polled *polled);
/* ... and the other thread states of the same threads. */
int poller_choose_shared(struct poller *poller, struct polled *polled);
/* A second choice in the same tick: those alone that hold a GIL and have not been read. Adds to it what has
 * come since the first. */
int poller_choose_holders(struct poller *poller, struct polled *polled);
int poller_choose_new(struct poller *poller, struct polled *polled);
/* May list the threads anew: lanes from before are no longer valid. 0 or -errno. */
int poller_look_again_at_young(struct poller *poller, struct polled *polled, uint64_t now);
/* Those that are chosen count as having run lately. */
int poller_activate_chosen(struct poller *poller, struct polled *polled);
/* The samples that the CPU time of the process pays for; no more than so many are kept for later ticks.
 * Leaves those of poller->chosen that are paid for; false: none of them is. */
double poller_most_credit(const struct poller *poller);
void poller_begin_credit(struct poller *poller, struct polled *polled, uint64_t now);
/* False: it is as it was. */
bool poller_update_credit(const struct poller *poller, struct polled *polled, uint64_t now);
void poller_limit_credit(struct poller *poller, struct polled *polled);
void poller_settle_credit(struct poller *poller, struct polled *polled, uint64_t now);
bool poller_spend_credit(struct poller *poller, struct polled *polled);
/* Around the reading of those that are chosen; nothing without --blocking. */
void poller_stop_chosen(struct poller *poller);
void poller_resume_chosen(struct poller *poller);
void poller_resume_late(struct poller *poller, struct polled *polled);

/* poller_records.c: what was read of a lane becomes its sample, or is counted as lost. 0 or -ENOMEM. */
int poller_take_lane(struct poller *poller, struct polled *polled, struct lane *lane, uint64_t now);
/* Up to when waits of its thread have been told of: another of its thread states may have spoken since. */
uint64_t poller_told_until(const struct polled *polled, const struct lane *lane);
/* Its process runs another program: nothing more is read of it. 0. */
int poller_tell_exec(struct poller *poller, struct polled *polled, uint64_t now);
