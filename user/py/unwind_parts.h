/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of the unwinder know of each other; unwind.h is the interface for all others. One reading:
 * plan what to read (unwind_plan.c, unwind_interps.c), read it, follow the chain in what was read
 * (unwind_walk.c), name the code objects and prove what may be of two stacks (unwind_known.c); where the
 * prediction was too small, make a larger one (unwind_predict.c) and begin again.
 */
#pragma once

#include "py/frame_view.h"
#include "py/unwind.h"

/* pbp_frame.flags during a reading */
#define FRAME_CHANGED (1u << 31) /* the frame is not the same in both copies, or as in the last stack */

enum walk_end { WALK_HELD, WALK_MISSED, WALK_TORN, WALK_GONE, WALK_UNREADABLE };

/* unwind_interps.c */

void unwind_choose_interp_span(struct unwinder *unwinder);
struct unwind_interp *unwind_find_interp(const struct unwinder *unwinder, py_addr address);
/* Does this version count code objects that are freed? */
bool unwind_has_generation(const struct unwinder *unwinder);
/* Add segments to the batch: the counts alone, to be read first; all that is wanted, last. 0 or -ENOMEM. */
int unwind_plan_generations(struct unwinder *unwinder);
int unwind_plan_interps(struct unwinder *unwinder);
void unwind_take_interps(struct unwinder *unwinder);

/* unwind_plan.c */

/* To the batch. 0 or -ENOMEM. */
int unwind_add_segment(struct unwinder *unwinder, py_addr address, void *dest, size_t len);
/* How much of a chunk to read if `need` bytes of it are used. */
size_t unwind_with_slack(const struct unwind_region *region, size_t need);
/* Add the segments of one thread. 0, -ENOMEM, -E2BIG. */
int unwind_plan_stack(struct unwinder *unwinder, struct thread_stack *stack);
/* Note how much of each region has come. */
void unwind_take_copies(const struct unwinder *unwinder, struct thread_stack *stack);
/* The region whose copies hold `len` bytes at `address`; NULL. *hint: the chunk to try first. */
struct unwind_region *unwind_find_region(const struct thread_stack *stack, py_addr address, size_t len,
					 size_t *hint);

/* unwind_predict.c */

/* Cover the chain from the frame at `at`, which no copy has. 0 if there is something new to read, or -errno.
 */
int unwind_learn(struct unwinder *unwinder, struct thread_stack *stack, py_addr at);
/* Do not read any more what has not been used for some readings. */
void unwind_trim(struct thread_stack *stack);
void unwind_forget_prediction(struct thread_stack *stack);

/* unwind_known.c */

bool unwind_is_code(struct unwinder *unwinder, py_addr code);
/* Fill in the identities of all frames. False: some have to be read first; the next reading will. */
bool unwind_identify(struct unwinder *unwinder, struct thread_stack *stack);
void unwind_learn_calls(struct unwinder *unwinder, const struct thread_stack *stack);
/* False: frames that are marked FRAME_CHANGED may not belong together. Takes the marks away. */
bool unwind_prove_calls(struct unwinder *unwinder, struct thread_stack *stack);

/* unwind_walk.c */

/* Where a whole chain ends: the sentinel in the thread state, 0 where the version has none. */
py_addr unwind_base_of(const struct unwinder *unwinder, const struct thread_stack *stack);
/* Are these the same call of the same function? */
bool unwind_same_call(const struct frame_view *a, const struct frame_view *b);
enum walk_end unwind_walk(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, bool strict,
			  py_addr *missing);
enum walk_end unwind_walk_second(struct unwinder *unwinder, struct thread_stack *stack, py_addr *missing);
/* Read the thread state's bytes: whose it is, flags, the current frame. */
enum walk_end unwind_take_state(struct unwinder *unwinder, struct thread_stack *stack);
void unwind_mark_changed(struct thread_stack *stack);

/* unwind_activity.c */

/* What the thread is at besides running its frames, once these are known. */
void unwind_take_activity(struct unwinder *unwinder, struct thread_stack *stack);

/* unwind_marker.c */

py_addr unwind_marked_frame(const struct unwinder *unwinder, const struct thread_stack *stack);
size_t unwind_find_marked(const struct unwinder *unwinder, const struct thread_stack *stack);
enum walk_end unwind_append_last(struct thread_stack *stack, py_addr at);
void unwind_skip_below_marker(struct thread_stack *stack);
void unwind_read_below_marker(struct thread_stack *stack);
void unwind_place_marker(struct unwinder *unwinder, struct thread_stack *stack);
