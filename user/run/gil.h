/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --mode gil: the part of the threads' time in which they hold a GIL, on the CPU or off it, and in which they
 * wait for one, with whom it is that they wait for. In the profile it stands below the stack that had it:
 *
 *	holder's stack;[holds the GIL]		on the CPU; off it, say, [holds the GIL: sleep]
 *	waiter's stack;[waits for the GIL];holder's stack;[holder: on the CPU]		... [holder: sleep]
 *	waiter's stack;[waits for the GIL];[holder not seen]
 *
 * so that each nanosecond of a wait is there once. Who the holder was is for agg/blame.h to find out.
 */
#pragma once

#include "agg/blame.h"
#include "agg/estimate.h"
#include "agg/profile.h"
#include "base/hmap.h"
#include "base/vec.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process;
struct sample_share;
struct symbolizer;

/* What a thread has come to; estimates apart, as they are not settled. */
struct gil_thread {
	pid_t pid, tid, inner_tid;
	uint32_t serial;	       /* of its process */
	char comm[16];		       /* as it is: any bytes */
	uint32_t name;		       /* strtab id of what it is called; 0: as in comm */
	uint64_t on_weight;	       /* it held one on the CPU, in parts of what all were on the CPU */
	uint64_t off_ns, off_extra_ns; /* it held one off the CPU */
	uint64_t waited_ns, waited_extra_ns;
	uint64_t seen_ns; /* last */
	/* Since it was settled last, where switches are told of: */
	uint64_t samples;   /* on the CPU, with a GIL or without */
	int64_t ran_ns;	    /* how long it was there, between times off it ... */
	uint64_t known_ns;  /* ... up to then */
	uint64_t sample_ns; /* time of the last sample */
};

/* The same in seconds, and of all: settled. */
struct gil_sums {
	uint64_t on_ns, off_ns; /* held */
	uint64_t waited_ns;
	uint64_t unseen_ns; /* of that, the holder not seen */
	uint64_t paused_ns; /* by stop-the-world pauses, where there is no GIL */
};

/* A stack that waited; of which thread, if somebody wants samples with theirs. */
struct gil_waiter {
	uint32_t node, thread; /* index in threads */
};

struct gil {
	struct profile *profile; /* borrowed, as the next two */
	struct estimate *estimate;
	struct symbolizer *symbolizer; /* to give samples; NULL: nobody wants them; set by the caller */
	uint32_t pruned;	       /* the node of what the profile has no room for */
	struct blame blame;
	struct hmap frames;	   /* reason << 32 | system call -> frame id, of holders */
	struct hmap holder_frames; /* one of these -> the one that stands below waits */
	struct hmap nodes;	   /* waiter << 32 | holder -> node of the waits */
	uint32_t waits_frame, unseen_frame;
	struct hmap waiter_index; /* thread << 32 | node -> index in waiters, of blame's, since it was settled
				     last */
	VEC(struct gil_waiter) waiters;
	uint64_t last_ns;	  /* time of the last one that was added */
	struct hmap on_cpu;	  /* index in threads << 32 | node -> samples since it was settled last */
	struct hmap thread_index; /* serial << 32 | tid -> index in threads */
	VEC(struct gil_thread) threads;
	struct gil_thread others; /* beyond as many as are kept */
	int err;
};

enum gil_part { GIL_NEITHER, GIL_HOLDS, GIL_WAITS };

/* 0 or -ENOMEM. */
int gil__init(struct gil *gil, struct profile *profile, struct estimate *estimate, uint32_t pruned);
/* Is it holding a GIL, or waiting for one? */
enum gil_part gil__part(struct process *process, const struct pbp_sample *sample,
			const struct sample_share *share);
/*
 * One that is either; `node` is that of its stack. The node that it was added to; what will be added when it
 * is settled is 0 in `share` then.
 */
uint32_t gil__add(struct gil *gil, struct process *process, uint32_t node, const struct pbp_sample *sample,
		  struct sample_share *share);
/*
 * One on the CPU that is left out, where time on the CPU is known in sum only. as: ESTIMATE_HIDDEN, if it is
 * neither, or ESTIMATE_LEFT_OUT.
 */
void gil__hide(struct gil *gil, struct process *process, const struct pbp_sample *sample, uint32_t as);
/* One that holds a GIL and is left out: others may wait for it. */
void gil__note_holder(struct gil *gil, struct process *process, uint32_t node,
		      const struct pbp_sample *sample, const struct sample_share *share);
/* What its thread is called: a strtab id. */
void gil__name(struct gil *gil, const struct process *process, const struct pbp_sample *sample,
	       uint32_t name);
/* It was off the CPU, whatever for, from out_ns to in_ns, and extra_ns more that were not told of. */
void gil__note_off(struct gil *gil, struct process *process, const struct pbp_sample *sample, uint64_t out_ns,
		   uint64_t in_ns, uint64_t extra_ns);
/* Is what is not settled yet too much to be kept? */
bool gil__is_full(const struct gil *gil);
/*
 * The waits get their holders, and the samples on the CPU their weights, when all has been added that
 * concerns the time up to now. 0, or -ENOMEM, which is also what was out of memory before.
 */
int gil__settle(struct gil *gil);

void gil__sums(const struct gil *gil, struct gil_sums *out);
/* The threads' shares in them, those that held or waited longest first; the others' are last. 0 or -ENOMEM.
 */
struct gil_row {
	const struct gil_thread *thread; /* borrowed until the next gil__add(); NULL: the others */
	struct gil_sums sums;
};
struct gil_rows {
	VEC(struct gil_row) items;
};
int gil__rows(const struct gil *gil, const struct gil_sums *all, struct gil_rows *out);
void gil__free(struct gil *gil);
