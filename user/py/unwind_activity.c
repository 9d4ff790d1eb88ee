/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread is at besides running its frames: in which of them the collection of garbage began that it is
 * at, and whether it is handling an exception.
 */
#include "py/unwind_parts.h"

#include "base/util.h"

/* --- collections --- */

/* As bpf/walk.bpf.h has it: one that began outside of all frames counts if it has called some. */
static size_t find_collection(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	const struct unwind_interp *interp = unwind_find_interp(unwinder, stack->thread.interp);

	if (unwinder->target->layout.collector != PBP_COLLECTOR_FRAME || !interp || !interp->readable ||
	    !interp->collecting || !interp->gc_frame || stack->result != UNWIND_OK)
		return SIZE_MAX;
	for (size_t i = 0; i < stack->addresses.len; i++)
		if (stack->addresses.items[i] == interp->gc_frame)
			return i;
	return interp->gc_frame == unwind_base_of(unwinder, stack) && !stack->truncated ? stack->addresses.len
											: SIZE_MAX;
}

/* --- exceptions --- */

/* One that cannot be read any more has been one: what stands for none, None, is there for good. */
static bool is_exception(struct unwinder *unwinder, py_addr object)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	uint64_t type, flags;

	if (!object || object == unwinder->not_exception)
		return false;
	if (remote__read(&unwinder->target->remote, object + layout->co_type, &type, sizeof(type)) ||
	    remote__read(&unwinder->target->remote, type + layout->ty_flags, &flags, sizeof(flags)) ||
	    flags & PBP_TYPE_EXCEPTION)
		return true;
	unwinder->not_exception = object;
	return false;
}

/* The thread state's own item came with it; those of generators are read now, some microseconds later. */
static bool read_item(struct unwinder *unwinder, const struct thread_stack *stack, py_addr at, py_addr *value,
		      py_addr *previous)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	size_t len = layout->ex_previous + 8;
	uint64_t offset = at - stack->thread.tstate;
	uint8_t bytes[64];

	if (len > sizeof(bytes) || layout->ex_value + 8u > sizeof(bytes))
		return false;
	if (offset < unwinder->thread_bytes && unwinder->thread_bytes - offset >= len)
		memcpy(bytes, stack->state + offset, len);
	else if (remote__read(&unwinder->target->remote, at, bytes, len))
		return false;
	*value = load_u64(bytes + layout->ex_value);
	*previous = load_u64(bytes + layout->ex_previous);
	return true;
}

static bool is_handling(struct unwinder *unwinder, const struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	py_addr at, value;

	if (layout->ts_exc_info == PBP_NONE || layout->ts_exc_info + 8u > unwinder->thread_bytes)
		return false;
	at = load_u64(stack->state + layout->ts_exc_info);
	for (int i = 0; at && i < PBP_EXCEPTIONS_MAX; i++) {
		if (!read_item(unwinder, stack, at, &value, &at))
			return false;
		if (is_exception(unwinder, value))
			return true;
	}
	return false;
}

void unwind_take_activity(struct unwinder *unwinder, struct thread_stack *stack)
{
	stack->collection = find_collection(unwinder, stack);
	if (stack->collection != SIZE_MAX)
		stack->flags |= PBP_SAMPLE_GC;
	if (unwinder->want_exceptions && (stack->result == UNWIND_OK || stack->result == UNWIND_NO_FRAMES) &&
	    is_handling(unwinder, stack))
		stack->flags |= PBP_SAMPLE_HANDLING;
}
