/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the kernel side's records to the profile: stacks of code addresses become paths of frames, samples add
 * to them. Records are collected first and resolved together, so that one batch of reads names all that is
 * new.
 */
#pragma once

#include "agg/estimate.h"
#include "agg/profile.h"
#include "agg/sink.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "os/wait.h"
#include "run/processes.h"
#include "run/sampler.h"
#include "run/thread_namer.h"

#include "pybpfprof.h"

#include <stdint.h>

struct gil;
struct gil_thread;

#define STACK_FRAMES_MAX 131072 /* of one record: more than either engine sends */

/* What became of the samples; all but `unknown_stack` are in the profile. */
struct symbolize_counts {
	uint64_t samples;		   /* taken */
	uint64_t status[PBP_STATUS_COUNT]; /* ... by how the walk ended */
	uint64_t tails_completed;	   /* DEEP or FRAME_FAULT, whole and verified */
	uint64_t truncated;		   /* deeper than any limit: base missing */
	uint64_t unverified;		   /* tail could not be proved to belong: callers left out */
	uint64_t unreadable;		   /* with a function that was freed before it could be read */
	uint64_t exited;	/* with a function of a process that had ended before it could be read */
	uint64_t approximate;	/* in code made by the JIT, so that the line may be a former one */
	uint64_t pruned;	/* put under one node, since the profile had reached its size limit */
	uint64_t unknown_stack; /* lost: the stack was not there (any more) */
	uint64_t skipped;	/* not asked for: of processes that were never found to be Python */
	uint64_t left_out_threads;    /* ... of threads that were not asked for ... */
	uint64_t left_out_exceptions; /* ... or had no exception */
	uint64_t left_out_waits;      /* of these, off the CPU */
	uint64_t left_out_ns;	      /* of profiles of time: what they stand for */
	uint64_t attached, collecting, raising, handling, in_kernel; /* of those on the CPU */
	uint64_t waits;	    /* of the samples: off the CPU */
	uint64_t hidden;    /* samples on the CPU that are left out, since they are for no GIL (run/gil.h) */
	uint64_t hidden_ns; /* waits that are left out, since they are for work (run/idle.h) */
};

struct stack {
	uint64_t id;
	struct process *process;
	struct pbp_frame *raw; /* until resolved; owned */
	uint32_t *path;	       /* frame ids below the leaf's, outermost first; owned */
	uint32_t path_len;
	uint32_t count;	    /* raw frames */
	uint32_t leaf_code; /* index in process->codes; PY_CODE_NONE: the path is all there is */
	bool unreadable, exited, truncated;
	bool has_gc;	       /* one of the raw frames is that of a collection */
	uint8_t looks;	       /* times that one of its code objects was gone */
	uint8_t idle;	       /* enum idle: does it wait for work, if it waits? */
	bool idle_known;
	struct pbp_frame last; /* outermost raw frame: what a tail hangs from */
	/* the node of `path` under the root it was last seen with */
	uint32_t root, node;
};

/* A tail that was looked up for one sample of a batch and serves all others that hang from the same link. */
struct tail_use {
	struct process *process;
	const struct pbp_sample *sample;
	struct pbp_frame expected;
	uint32_t root, node;
	enum tail_result result;
};

/* What a sample adds to the profile. */
struct sample_share {
	uint64_t time_ns;
	uint64_t extra_ns; /* what it stands for besides, an estimate (agg/estimate.h) ... */
	uint32_t kind;	   /* ... of this kind */
	enum wait_reason reason;
	int32_t syscall;
	uint64_t lock;	  /* the GIL that it is for, where that matters (run/gil.h); 0: none */
	bool counted; /* the sample has another share, too, which came first */
};

struct shared_sample {
	struct pbp_sample sample;
	struct sample_share share;
};

struct code_files;
struct symbolizer {
	struct profile *profile;	 /* borrowed */
	struct sink *sink;		 /* list, borrowed: gets each sample; NULL: none; set by the caller */
	struct sampler *sampler;	 /* borrowed; told which frames to look at in tails */
	struct processes *processes;	 /* borrowed */
	struct code_files *code_files;	 /* borrowed; is told which files there are; NULL: nobody asks */
	bool by_process, by_thread;	 /* roots of the trie */
	bool by_container;		 /* ... instead of the process; set by the caller */
	bool knows_containers;		 /* it is looked up which one a process is in; set by the caller */
	bool hide_idle;			 /* leave out waits for work; set by the caller, as the next ones */
	bool hide_gc;			 /* no frames for the collection of garbage */
	bool only_exceptions;		 /* samples of threads that have an exception */
	struct gil *gil; /* only holding a GIL and waiting for one is of interest; NULL: all */
	bool cpu_is_known; /* time on the CPU is, in sum (symbolizer__settle): samples only share it out */
	struct hmap stack_index;	 /* id -> index in stacks */
	VEC(struct stack) stacks;
	size_t stored_frames;
	size_t resolved;		/* stacks before this one are ... */
	VEC(uint32_t) reread;		/* ... but these, which have come once more */
	/* ids of stacks to be sent once more, as a code object was gone; the caller empties it */
	VEC(uint64_t) wanted;
	VEC(struct shared_sample) samples; /* of this batch */
	struct hmap wait_frames;	   /* reason << 32 | system call -> frame id */
	struct estimate estimate;
	struct thread_namer namer;	/* if threads are told apart or chosen */
	struct hmap roots;		/* key of a process or thread -> trie node */
	struct hmap sink_threads, sink_processes; /* key -> index in ... */
	VEC(struct sink_thread) threads;	  /* as the sinks know them; their texts are owned */
	VEC(struct sink_process *) sink_process_items; /* owned */
	struct hmap tail_nodes;		/* hash of a tail and its root -> trie node */
	VEC(struct tail_use) tails;	/* the tails of this batch */
	/* special frames */
	uint32_t no_python, unverified, truncated, unreadable, exited, beyond, not_walked, gc;
	uint32_t pruned;					       /* a node */
	uint64_t batch, batch_start_ns;
	bool codes_full; /* a process has more code objects than are kept */
	struct symbolize_counts counts;
};

/* 0 or -ENOMEM. */
int symbolizer__init(struct symbolizer *symbolizer, struct profile *profile, struct processes *processes,
		     bool by_process, bool by_thread);

/* Threads that are deep already: tell the kernel side what to look at in their tails. */
void symbolizer__prime_tails(struct symbolizer *symbolizer, struct process *process);

/*
 * Take over one record (PBP_STACK, PBP_CODE or PBP_SAMPLE), whose frames are copied. A stack that comes once
 * more is looked at again if one of its code objects was gone. 0, -ENOMEM, -EINVAL for a malformed one.
 */
int symbolizer__take(struct symbolizer *symbolizer, const void *record, size_t size);

/*
 * One that has a share of its own; a PBP_SAMPLE that is taken stands for profile->period_ns of CPU time. 0 or
 * -ENOMEM.
 */
int symbolizer__take_share(struct symbolizer *symbolizer, const struct pbp_sample *sample,
			   const struct sample_share *share);

/*
 * For run/gil.c: a part of what a thread's samples weigh, which is known only now, to whoever wants samples.
 */
void symbolizer__give_more(struct symbolizer *symbolizer, const struct gil_thread *of, uint64_t time_ns,
			   uint32_t node, uint64_t weight_ns, uint64_t extra_ns, uint32_t kind);

/* Is it there, taken and not forgotten? */
bool symbolizer__has_stack(const struct symbolizer *symbolizer, uint64_t id);

/*
 * Share out what is known in sum only: by kind, since the beginning. Of what there was no sample yet, there
 * may still be one, unless it is the `last` time.
 */
void symbolizer__settle(struct symbolizer *symbolizer, const uint64_t exact_ns[ESTIMATE_KINDS], bool last);

/* The kind of estimates of time on the CPU; smaller ones are those of waits. */
#define SYMBOLIZE_CPU_KIND (ESTIMATE_KINDS - 1)

/* Name what is new and add the collected samples to the profile. 0 or -ENOMEM. */
int symbolizer__flush_batch(struct symbolizer *symbolizer);

/*
 * Are the caches full? Then the stacks are to be forgotten, after the kernel side has been given a new epoch.
 */
bool symbolizer__is_full(const struct symbolizer *symbolizer);
void symbolizer__forget(struct symbolizer *symbolizer, const struct process *only); /* NULL: all */
/* ... those of all processes that are over. */
void symbolizer__forget_over(struct symbolizer *symbolizer);
/*
 * Is the profile near to its bounds? If nobody wants it as a whole, it can begin anew, with its strings, when
 * all has been settled and forgotten, the processes' lines and code objects as well. 0 or -ENOMEM.
 */
bool symbolizer__is_profile_full(const struct symbolizer *symbolizer);
int symbolizer__renew(struct symbolizer *symbolizer);

/*
 * A process that was found is Python: what was sampled of it before joins the profile. Of one that is not, it
 * stays out of it.
 */
void symbolizer__admit(struct symbolizer *symbolizer, struct process *process);

void symbolizer__free(struct symbolizer *symbolizer);
