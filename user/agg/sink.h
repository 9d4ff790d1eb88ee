/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where named samples go one by one, beside the profile that they are added up in: with their times, threads
 * and states. run/symbolize*.c gives them, run/session.c says when; out/recorder.h takes them.
 */
#pragma once

#include "agg/estimate.h"

#include <stdint.h>

/* struct sink_sample.state. They are in recordings (out/record.h): append only. */
enum {
	SINK_WAIT = 1 << 0,	 /* off the CPU; else on it */
	SINK_CONTINUED = 1 << 1, /* goes on with the sample before it of its thread: not one more */
	SINK_ATTACHED = 1 << 2,	 /* held the GIL, or was attached where there is none */
	SINK_GC = 1 << 3,	 /* its interpreter was collecting garbage */
	SINK_RAISING = 1 << 4,	 /* an exception was set */
	SINK_KERNEL = 1 << 5,	 /* in the kernel */
	/* These are counted in the account, each by the name it has there: */
	SINK_TRUNCATED = 1 << 6,
	SINK_UNVERIFIED = 1 << 7,
	SINK_WITHOUT_PYTHON = 1 << 8,
	SINK_CODE_FREED = 1 << 9,
	SINK_EXITED = 1 << 10,
	SINK_LINE_APPROXIMATE = 1 << 11,
	SINK_BEYOND_SIZE_LIMIT = 1 << 12,
	SINK_STATES = (1 << 13) - 1
};

/* Texts may be any bytes. What is told stays so: after an exec it is another one. */
struct sink_process {
	uint64_t key; /* no other one has it */
	uint32_t pid;
	const char *command;
	const char *root;      /* what stands above its stacks where processes are told apart ... */
	const char *container; /* ... and where containers are; "": they were not looked up */
};

struct sink_thread {
	uint64_t key;
	const struct sink_process *process;
	uint32_t tid;
	const char *name;
	const char *root; /* as above, where threads are told apart */
};

struct sink_sample {
	/* CLOCK_MONOTONIC: when it was taken, or a wait, or this part of it, began; 0: not known */
	uint64_t time_ns;
	const struct sink_thread *thread; /* NULL: of none; until the next one */
	uint32_t node;			  /* of the profile's trie, roots included */
	uint32_t state;			  /* SINK_* */
	uint64_t weight_ns;		  /* what it adds to the node; ... */
	uint64_t extra_ns;		  /* ... besides, what is settled later (agg/estimate.h) ... */
	uint32_t kind;			  /* ... as this kind */
};

/* A list of them is one. */
struct sink {
	void (*take)(struct sink *sink, const struct sink_sample *sample);
	/* What was `extra` since it was settled last: in sum it was that, and is this. Kinds that are 0: not
	 * yet. */
	void (*settle)(struct sink *sink, const uint64_t extra_ns[ESTIMATE_KINDS],
		       const uint64_t exact_ns[ESTIMATE_KINDS]);
	/* The profile begins anew, and its nodes are others; its metadata go on. */
	void (*renew)(struct sink *sink);
	/* To be called once a second or so, with the profile's account up to date: all is to be kept now. */
	void (*flush)(struct sink *sink);
	struct sink *next;
};
