/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the threads of samples are called: as Python's threading has it, where that can be read, else as the
 * kernel has it; and which of them were asked for. A thread is looked up at its first sample, which may be
 * its last, and now and then again, since it may be renamed.
 */
#pragma once

#include "base/hmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "os/filter.h"
#include "py/object.h"
#include "run/process.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stdint.h>

struct named_thread {
	uint32_t serial, epoch; /* of its process, and of the program that this runs */
	pid_t tid;
	py_addr tstate; /* when it was looked up; 0: it had none */
	char comm[16];	/* ... */
	uint32_t name;	/* strtab id; valid UTF-8, not escaped; only of those that are to have one */
	bool is_python; /* it is threading's name */
	bool wanted;
	uint64_t look_ns; /* when to look again, by the clock of samples */
};

struct thread_namer {
	struct strtab *strings;		    /* borrowed, as the next one */
	const struct thread_filter *filter; /* NULL: all are wanted */
	bool name_all;			    /* those that are not wanted, too; set by the caller */
	struct py_objects objects;	    /* of the process that was looked into last */
	uint32_t serial, epoch;		    /* ... */
	VEC(struct named_thread) threads;
	struct hmap index;   /* of process and thread -> index in threads */
	struct hmap actives; /* of process and interpreter -> address of its threading._active */
	struct hmap paid;    /* serial of a process -> up to when looks into it have been paid for */
	size_t name_bytes;   /* of names that were new to `strings` */
};

void thread_namer__init(struct thread_namer *namer, struct strtab *strings,
			const struct thread_filter *filter);
/* A batch of samples begins: what was read of memory before may have changed. */
void thread_namer__begin(struct thread_namer *namer);
/* Ids of strings begin anew. */
void thread_namer__forget(struct thread_namer *namer);
/* The thread of a sample. Borrowed until the next call; NULL: out of memory. */
const struct named_thread *thread_namer__of(struct thread_namer *namer, struct process *process,
					    const struct pbp_sample *sample);
void thread_namer__free(struct thread_namer *namer);
