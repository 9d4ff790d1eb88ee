/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For gecko*.c only: gecko.c (START HERE: what is kept of the samples), gecko_json.c (the file).
 */
#pragma once

#include "agg/sink.h"
#include "base/hmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "out/gecko.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GECKO_NONE UINT32_MAX

/* name, text, color. The default is grey, and the first. */
#define GECKO_CATEGORIES(X)                                                                                  \
	X(OTHER, "Other", "grey")                                                                            \
	X(PYTHON, "Python", "yellow")                                                                        \
	X(GIL, "Waits for the GIL", "red")                                                                   \
	X(GC, "Garbage collection", "purple")                                                                \
	X(OFF_CPU, "Off the CPU", "blue")                                                                    \
	X(KERNEL, "In the kernel", "orange")

enum gecko_category {
#define GECKO_ENUM(name, text, color) GECKO_##name,
	GECKO_CATEGORIES(GECKO_ENUM)
#undef GECKO_ENUM
};

struct gecko_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t weight_ns;
	uint32_t stack; /* row; GECKO_NONE: it has none */
	bool waits;
};

struct gecko_process {
	uint32_t pid, command; /* a string */
	uint32_t lives; /* others before it with the same number: it has called exec, or the number came again
			 */
};

struct gecko_thread {
	uint32_t process; /* index; GECKO_NONE: of none */
	uint32_t tid, name;
	VEC(struct gecko_sample) samples;
	uint64_t weight_ns, pruned_ns;
	bool out_of_order;
};

struct gecko_frame {
	uint32_t frame;	   /* of the profile; GECKO_NONE: of none */
	uint32_t function; /* index in functions */
	enum gecko_category category;
};

struct gecko_stack {
	uint32_t frame, prefix; /* rows; prefix: GECKO_NONE for the outermost */
};

struct gecko {
	struct sink sink; /* first */
	const struct profile *profile;
	enum group_by group;
	VEC(struct gecko_process) processes;
	VEC(struct gecko_thread) threads;
	VEC(uint32_t) order; /* of threads, in the file */
	struct frame_table functions;
	VEC(struct gecko_frame) frames;
	VEC(struct gecko_stack) stacks;
	VEC(uint32_t) rows, way; /* see row_of; scratch */
	struct strtab *strings;	 /* of the file */
	VEC(uint32_t) sources;	 /* strings */
	struct hmap process_index, thread_index, frame_index, stack_index, source_index;
	struct hmap lives; /* pid -> processes that have it */
	uint32_t pruned;   /* row */
	size_t samples;
	uint64_t pruned_ns;
	int err;
};

/* Appends the file; `order` is made. */
void gecko_add_file(struct buf *buf, const struct gecko *gecko);
