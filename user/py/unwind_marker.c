/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame marker (py/marker.h): what lies below it is not read again.
 */
#include "py/unwind_parts.h"

#include "base/util.h"
#include "py/marker.h"

#define MARKER_NEAR  32 /* frames that are rather read again than the marker moved */
#define MARKER_LEAST 64 /* frames below it that make it worthwhile */

py_addr unwind_marked_frame(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	return load_u64(stack->state + unwinder->target->offsets.thread_last_profiled);
}

/*
 * Where the marked frame is in the last stack: the interpreter has moved the mark once for each frame that
 * has returned since. SIZE_MAX: it does not add up; another profiler may have written it.
 */
size_t unwind_find_marked(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	uint64_t seq = load_u64(stack->state + unwinder->target->offsets.thread_last_profiled_seq);
	uint64_t index = stack->marker.index + (seq - stack->marker.seq);
	py_addr frame = unwind_marked_frame(unwinder, stack);

	return frame && index < stack->last_addresses.len && stack->last_addresses.items[index] == frame
		       ? index
		       : SIZE_MAX;
}

/* The frame at `at` is the marked one and has been noted: all its callers are as they were. */
enum walk_end unwind_append_last(struct thread_stack *stack, py_addr at)
{
	size_t index = 0, count;

	while (index < stack->last_addresses.len && stack->last_addresses.items[index] != at)
		index++;
	if (index == stack->last_addresses.len ||
	    stack->frames.items[stack->frames.len - 1].code != stack->last_frames.items[index].code)
		return WALK_TORN;
	count = stack->last_frames.len - index - 1;
	if (vec__reserve(&stack->frames, count) || vec__reserve(&stack->addresses, count))
		return WALK_UNREADABLE;
	memcpy(stack->frames.items + stack->frames.len, stack->last_frames.items + index + 1,
	       count * sizeof(*stack->frames.items));
	memcpy(stack->addresses.items + stack->addresses.len, stack->last_addresses.items + index + 1,
	       count * sizeof(*stack->addresses.items));
	stack->frames.len += count;
	stack->addresses.len += count;
	stack->frames.items[stack->frames.len - count - 1].flags |=
		stack->last_frames.items[index].flags & PBP_FRAME_C_BELOW;
	return WALK_HELD;
}

void unwind_read_below_marker(struct thread_stack *stack)
{
	for (size_t i = 0; i < stack->regions.len; i++)
		stack->regions.items[i].skip = false;
	stack->work.marked = false;
}

/* What holds a frame above the marker is read, and the newest chunk. */
void unwind_skip_below_marker(struct thread_stack *stack)
{
	for (size_t i = 0; i < stack->regions.len; i++)
		stack->regions.items[i].skip = i > 0 || !stack->chunks;
	for (size_t i = 0; i <= stack->marker.index; i++) {
		py_addr at = stack->last_addresses.items[i];
		const uint64_t *single = hmap__get(&stack->singles, at);

		if (single)
			stack->regions.items[*single].skip = false;
		for (size_t k = 0; k < stack->chunks && !single; k++)
			if (at - stack->regions.items[k].address < stack->regions.items[k].size)
				stack->regions.items[k].skip = false;
	}
	/* Entry markers between them are not among the frames. */
	for (size_t i = stack->chunks; i < stack->regions.len && stack->regions.len - stack->chunks < 64; i++)
		stack->regions.items[i].skip = false;
}

/*
 * Mark the frame that has been there for two readings, if none close to it is marked. Afterwards it must be
 * there still: a mark on a frame that had returned would move with another one.
 */
static struct marker_place marker_place(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;

	return (struct marker_place){
		.pid = unwinder->target->pid,
		.field = stack->thread.tstate + offsets->thread_last_profiled,
		.id_field = stack->thread.tstate + offsets->thread_thread_id,
		.id = stack->thread.thread_id,
	};
}

void unwind_place_marker(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	const struct py_offsets *offsets = &unwinder->target->offsets;
	struct marker_place place = marker_place(unwinder, stack);
	size_t stable = max_u64(stack->frames.len - stack->work.same, 1), marked = 0;
	uint64_t now[2] = {0};
	uint8_t bytes[PBP_FRAME_BYTES];
	struct frame_view view;
	struct remote_segment segments[] = {
		{.addr = place.field, .dest = &now[0], .len = 8},
		{.addr = stack->thread.tstate + offsets->thread_last_profiled_seq, .dest = &now[1], .len = 8},
		{.dest = bytes, .len = layout->fr_bytes},
	};

	while (marked < stack->addresses.len &&
	       stack->addresses.items[marked] != unwind_marked_frame(unwinder, stack))
		marked++;
	if (stack->marker.frame && marked < stack->addresses.len && marked <= stable + MARKER_NEAR) {
		stack->marker.frame = stack->addresses.items[marked];
		stack->marker.index = marked;
		stack->marker.seq = load_u64(stack->state + offsets->thread_last_profiled_seq);
		return;
	}
	stack->marker.frame = 0;
	/* Set already, and not by this program: another profiler is at work. */
	if (!stack->marker.ours && unwind_marked_frame(unwinder, stack))
		return;
	if (!stack->work.same || stable + MARKER_LEAST > stack->addresses.len ||
	    marker__set(&place, stack->addresses.items[stable]))
		return;
	stack->marker.ours = true;
	unwinder->stats.writes++;
	segments[2].addr = stack->addresses.items[stable];
	if (remote__read_batch(&unwinder->target->remote, segments, ARRAY_SIZE(segments)) ||
	    segments[0].got < 8 || segments[1].got < 8 || segments[2].got < layout->fr_bytes)
		return;
	view = view_frame(layout, bytes);
	if (now[0] != segments[2].addr || view.code != stack->frames.items[stable].code ||
	    view.instr != stack->frames.items[stable].instr)
		return;
	stack->marker.frame = now[0];
	stack->marker.seq = now[1];
	stack->marker.index = stable;
}

void thread_stack__unmark(struct thread_stack *stack, const struct unwinder *unwinder)
{
	struct marker_place place;

	if (!stack->marker.ours)
		return;
	place = marker_place(unwinder, stack);
	marker__clear(&place);
	stack->marker.ours = false;
	stack->marker.frame = 0;
}
