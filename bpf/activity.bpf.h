/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread is at besides running its frames: collecting garbage (which of its frames has come to that,
 * walk.bpf.h finds out), and handling an exception. user/py/unwind_activity.c is the same for the readv
 * engine.
 */
#pragma once

/* Garbage is being collected: by this thread? In the end, the frame tells: see take_stack(). */
static __always_inline void note_collector(struct pbp_sample *sample, const struct pbp_target *target,
					   struct scratch *scratch, __u64 interp)
{
	bool collects = false;

	if (target->collector == PBP_COLLECTOR_FRAME)
		scratch->walk.gc_frame = read_user_u64(interp + target->in_gc_frame);
	else if (target->collector == PBP_COLLECTOR_REQUESTER)
		collects = read_user_u64(interp + target->in_requester) == sample->tstate;
	else if (target->collector == PBP_COLLECTOR_ATTACHED)
		collects = sample->flags & PBP_SAMPLE_ATTACHED;
	if (collects)
		sample->flags |= PBP_SAMPLE_GC;
}

struct handled {
	const struct pbp_target *target;
	__u64 item; /* the next one to look at, 0 = none left */
	bool found;
};

/* A generator that runs has an item of its own; what its callers handle is in those behind it. */
static long handled_step(__u32 step, struct handled *handled)
{
	const struct pbp_target *target = handled->target;
	__u64 value;

	if (step >= PBP_EXCEPTIONS_MAX || !handled->item)
		return 1;
	value = read_user_u64(handled->item + target->ex_value);
	handled->item = read_user_u64(handled->item + target->ex_previous);
	if (value)
		value = read_user_u64(value + target->co_type);
	handled->found = value && read_user_u64(value + target->ty_flags) & PBP_TYPE_EXCEPTION;
	return handled->found;
}

LOOP_BODY(handled_step, struct handled)

static __always_inline void note_handled(struct pbp_sample *sample, const struct pbp_target *target,
					 struct scratch *scratch, bool use_loop)
{
	struct handled handled = {.target = target};

	if (!want_exceptions || target->ts_exc_info == PBP_NONE)
		return;
	handled.item = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_exc_info);
	repeat(use_loop, PBP_EXCEPTIONS_MAX, handled_step, &handled);
	if (handled.found)
		sample->flags |= PBP_SAMPLE_HANDLING;
}
