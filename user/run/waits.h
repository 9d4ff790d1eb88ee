/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time off the CPU, from the kernel side's records (struct pbp_wait) to the profile: cut to the time of the
 * run, with its reason, and what it stands for. Threads that were asleep before the run, of which the kernel
 * side has seen no switch, are read here (run/sleepers.h); those that are asleep at the end are told of then.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "run/processes.h"
#include "run/sampler.h"
#include "run/sleepers.h"
#include "run/symbolize.h"

#include <stdbool.h>
#include <stdint.h>

/* A wait that is not over, of which user space knows more than the kernel side. */
struct open_wait {
	uint64_t out_ns;  /* which one of its thread */
	uint64_t told_ns; /* it is in the profile up to then; 0: nothing of it */
	bool is_read;	  /* `sleeper` is what it is, and not what the kernel side says */
	struct sleeper sleeper;
};

struct waits {
	struct sampler *sampler; /* borrowed, as the next two; NULL: no waits are told of */
	struct symbolizer *symbolizer;
	struct processes *processes;
	bool want_names;
	struct gil *gil; /* which one is waited for matters; NULL: it does not */
	uint64_t start_ns, end_ns; /* of the run, by the kernel side's clock; end_ns 0: it goes on */
	struct hmap by_tid;	   /* -> index in open */
	VEC(struct open_wait) open;
	struct hmap calls; /* tid -> system call that it was found asleep in, until it is in another one */
	uint64_t look_ns;	      /* when to look next for long waits that were not walked */
	uint64_t looked_ns; /* those that left before, without a walk, have been looked at */
	uint64_t found;		      /* threads that were off the CPU already */
	uint64_t no_room;	      /* ... and of which there were too many */
};

/* The run begins, or is over: what lies outside is not told of. */
void waits__start(struct waits *waits, uint64_t now);
void waits__end(struct waits *waits, uint64_t now);
/*
 * All threads of a process that was attached are watched from now on, those that are asleep included. 0 or
 * -errno; -ESRCH and what else cannot be read of it is no error.
 */
int waits__find(struct waits *waits, struct process *process, uint64_t now);
/* One record. 0, -ENOMEM, -EINVAL for a malformed one. */
int waits__take(struct waits *waits, const void *record, size_t size);
/* The waits that are not over, up to now, into the profile. 0 or -ENOMEM. */
int waits__tell(struct waits *waits, uint64_t now);
/* Now and then: waits that were not walked and last long are read while they do. 0 or -errno. */
int waits__look(struct waits *waits, uint64_t now);
/* After waits__tell, and after stacks were forgotten: those of threads that are still asleep are read anew. 0
 * or -errno. */
int waits__read_again(struct waits *waits);
/*
 * The sums of what was not walked are shared out, and the CPU time of the processes since the beginning; 0:
 * that is not known, so that samples on the CPU stand for their period. `last`: as symbolizer__settle.
 */
void waits__settle(struct waits *waits, uint64_t cpu_ns, bool last);
void waits__free(struct waits *waits);
