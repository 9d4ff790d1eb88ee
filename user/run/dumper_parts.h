/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the dumper, for run/dumper*.c only: dumper_threads.c lists threads and reads their stacks,
 * dumper_state.c says what a thread is doing, dumper_frames.c names what is on its stack, dumper_result.c
 * puts the dump together. dumper.c repeats it until two readings agree.
 */
#pragma once

#include "agg/dump.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "os/halt.h"
#include "os/source.h"
#include "os/task.h"
#include "py/locals.h"
#include "py/object.h"
#include "py/unwind.h"
#include "run/process.h"
#include "run/thread_ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread state, for as long as it is there. */
struct watched {
	struct thread_stack stack;
	pid_t tid;	    /* 0: cannot be told */
	uint64_t native_id; /* the same in the target's own pid namespace */
	bool found;	    /* in the last lists */
	bool agrees;	    /* its last two readings do */
	enum unwind_result before;
	struct dump_thread made;
	VEC(size_t) raw; /* for each frame that was made, its number in the stack */
};

struct dumper {
	struct dump *out;
	struct process process;
	struct unwinder unwinder;
	struct sources sources;
	struct halt halt;	  /* as of the last reading */
	struct hmap source_lines; /* file << 32 | line -> text */
	struct thread_ids ids;
	VEC(struct watched *) watched;
	struct hmap by_tstate; /* -> index in watched */
	VEC(struct thread_stack *) batch;
	struct py_objects objects;
	struct py_locals locals;
	struct hmap main_names, names; /* of threads by ident: of the main interpreter, of the others */
	size_t frames, values;	       /* in all that was made */
};

/* dumper_threads.c: the threads as they are now; those that are gone are dropped. 0 or -errno. */
int dumper_list_threads(struct dumper *dumper);
/* All their stacks. 0 or -errno. */
int dumper_read_stacks(struct dumper *dumper);
/* Does what was read last agree with what was read before (dumper.h)? */
bool dumper_agrees(const struct watched *watched);
void dumper_free_watched(struct watched *watched);

/* dumper_state.c: what the thread does, as of the last reading. */
void dumper_take_state(struct dumper *dumper, struct watched *watched);
/* Once more, of those whose state may have been that of a moment. */
void dumper_settle_state(struct dumper *dumper);
struct task_look dumper_look_at(const struct dumper *dumper, pid_t tid);
enum dump_run dumper_run_state(const struct dumper *dumper, const struct task_look *look);

/* dumper_frames.c: the thread's part of the dump, anew from the stack that was read last. 0 or -errno. */
int dumper_make_thread(struct dumper *dumper, struct watched *watched);
/* Read the variables of stacks that agree once more, and mark those with another value. */
void dumper_compare_locals(struct dumper *dumper);
/* Its id in the dump; 0 also when there is no memory. */
uint32_t dumper_add_text(struct dumper *dumper, const char *text, size_t len);

/* dumper_result.c: what was made of all threads becomes the dump. 0 or -errno. */
int dumper_hand_over(struct dumper *dumper);
