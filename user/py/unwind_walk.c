/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Following a chain of frames in the copies.
 */
#include "py/unwind_parts.h"

#include "base/util.h"

#define LINKS_MAX    (4 * UNWIND_FRAMES_MAX) /* steps of a chain, entry markers included */
#define CALLEE_BYTES 2048		     /* of a frame: a callee that lies farther up is not looked for */
#define RETURNS_MAX  64			     /* calls that may have ended or begun while a stack was read */

/* A step of a walk in the two copies. */
struct step {
	struct unwind_region *region;
	const uint8_t *bytes; /* of the frame in the second copy */
	struct frame_view before, after;
};

py_addr unwind_base_of(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	uint16_t offset = unwinder->target->layout.ts_base_frame;

	return offset == PBP_NONE ? 0 : stack->thread.tstate + offset;
}

static int note_frame(struct thread_stack *stack, py_addr address, const struct frame_view *view,
		      uint32_t flags)
{
	struct pbp_frame frame = {.code = view->code, .instr = view->instr, .flags = flags};

	return vec__push(&stack->frames, frame) ?: vec__push(&stack->addresses, address);
}

bool unwind_same_call(const struct frame_view *a, const struct frame_view *b)
{
	return a->previous == b->previous && a->owner == b->owner && (a->other || a->code == b->code);
}

static bool take_step(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, size_t *hint,
		      struct step *step)
{
	const struct pbp_target *layout = &unwinder->target->layout;

	step->region = unwind_find_region(stack, at, layout->fr_bytes, hint);
	if (!step->region)
		return false;
	step->bytes = stack->copies.items + step->region->offset + (at - step->region->address);
	step->after = view_frame(layout, step->bytes);
	step->before = stack->work.light ? step->after : view_frame(layout, step->bytes + stack->copy_bytes);
	return true;
}

/* Is there a frame in the second copy that has not returned? Entry markers never lie in the data stack. */
static bool is_live(const struct unwinder *unwinder, const struct thread_stack *stack,
		    const struct step *step, bool is_caller)
{
	if (step->after.other)
		return step->region >= stack->regions.items + stack->chunks;
	return frame_is_live(&unwinder->target->offsets, &step->after, step->bytes, is_caller);
}

/*
 * Is the frame the same call in both copies, which no other one has replaced meanwhile? The equality alone
 * could be that of bytes which an earlier call left behind.
 */
static bool is_stable(const struct unwinder *unwinder, const struct thread_stack *stack,
		      const struct step *step, bool is_caller)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;

	if (!unwind_same_call(&step->before, &step->after))
		return false;
	return stack->still || !frames_show_life(offsets) ||
	       ((stack->work.light ||
		 frame_is_live(offsets, &step->before, step->bytes + stack->copy_bytes, is_caller)) &&
		is_live(unwinder, stack, step, is_caller));
}

static bool has_last_base(const struct thread_stack *stack)
{
	size_t now = stack->addresses.len, then = stack->last_addresses.len;

	return now && then && stack->addresses.items[now - 1] == stack->last_addresses.items[then - 1];
}

/*
 * Everything from `at` to the base; *missing is the frame that no copy has. With `strict` every frame has to
 * be the same in both copies; else the second copy is followed, and what differs is marked.
 */
enum walk_end unwind_walk(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, bool strict,
			  py_addr *missing)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	py_addr marked = stack->work.marked ? unwind_marked_frame(unwinder, stack) : 0;
	py_addr base = unwind_base_of(unwinder, stack);
	/*
	 * The last link of a whole chain: from 3.12 on a marker, with a sentinel behind it from 3.15 on. A
	 * greenlet's has none: there both copies have to have the marker.
	 */
	bool has_markers = layout->fr_first_other_owner, ended = !at || !has_markers;
	bool passed = layout->cframe_frame == PBP_NONE || !stack->work.below;
	struct cycle cycle = {0};
	struct step step;
	size_t hint = 0;

	stack->frames.len = stack->addresses.len = 0;
	stack->truncated = false;
	for (size_t links = 0; at && at != base; links++) {
		bool is_caller = stack->frames.len || stack->work.entered;
		uint32_t flags = is_caller && !stack->frames.len ? FRAME_CHANGED : 0;

		if (has_cycled(&cycle, at))
			return WALK_TORN;

		if (links >= LINKS_MAX || stack->frames.len >= UNWIND_FRAMES_MAX) {
			stack->truncated = true;
			break;
		}
		if (!take_step(unwinder, stack, at, &hint, &step)) {
			*missing = at;
			return WALK_MISSED;
		}
		if (!is_stable(unwinder, stack, &step, is_caller)) {
			if (strict || !is_live(unwinder, stack, &step, is_caller))
				return WALK_TORN;
			flags |= FRAME_CHANGED;
		} else if (step.before.instr != step.after.instr) {
			flags |= PBP_FRAME_MOVED;
		}
		/* In one chunk callers lie below: a chain that climbs is made of other things than frames. */
		if (step.after.previous - step.region->address < step.region->size &&
		    step.after.previous >= at)
			return WALK_TORN;
		step.region->used = max_u64(step.region->used,
					    at - step.region->address + layout->fr_bytes);
		if (step.after.other) {
			if (stack->frames.len)
				stack->frames.items[stack->frames.len - 1].flags |= PBP_FRAME_C_BELOW;
		} else {
			if (layout->fr_all_from_c ||
			    (layout->fr_from_c != PBP_NONE && step.bytes[layout->fr_from_c]))
				flags |= PBP_FRAME_C_BELOW;
			if (note_frame(stack, at, &step.after, flags))
				return WALK_UNREADABLE;
		}
		if (marked && at == marked)
			return unwind_append_last(stack, at);
		at = step.after.previous;
		passed |= at == stack->work.below;
		ended = (step.after.other && !(base && flags)) || !has_markers;
	}
	if (!passed && !stack->truncated)
		return WALK_TORN;
	/*
	 * Up to 3.11 nothing tells the outermost frame from one whose link has been taken away, as a
	 * generator's is when it yields: so a new one counts only if both copies have it.
	 */
	if (!has_markers && !strict && !stack->truncated && !has_last_base(stack))
		return WALK_TORN;
	return ended || stack->truncated || (base && at == base) ? WALK_HELD : WALK_TORN;
}

/* Is there a Python frame in the second copy that has not returned? Other bytes may look like one. */
static bool is_frame(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, bool is_caller,
		     size_t *hint, struct step *step)
{
	return take_step(unwinder, stack, at, hint, step) && !step->after.other &&
	       is_live(unwinder, stack, step, is_caller) && unwind_is_code(unwinder, step->after.code);
}

/* A frame in the second copy that was called from `caller` and, perhaps, has called another one; 0. */
static py_addr find_callee(struct unwinder *unwinder, struct thread_stack *stack, py_addr caller,
			   bool is_caller)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	struct step step;
	size_t hint = 0;
	struct unwind_region *region = unwind_find_region(stack, caller, layout->fr_bytes, &hint);
	py_addr from = caller + layout->fr_bytes, end;

	end = region ? min_u64(region->address + region->got, from + CALLEE_BYTES) : 0;
	for (py_addr at = from; region && at + layout->fr_bytes <= end; at += 8) {
		const uint8_t *bytes = stack->copies.items + region->offset + (at - region->address);

		if (load_u64(bytes + layout->fr_previous) == caller &&
		    is_frame(unwinder, stack, at, is_caller, &hint, &step))
			return at;
	}
	for (size_t i = stack->chunks; i < stack->regions.len; i++) {
		py_addr at = stack->regions.items[i].address;

		if (take_step(unwinder, stack, at, &hint, &step) && step.after.previous == caller &&
		    is_frame(unwinder, stack, at, is_caller, &hint, &step))
			return at;
	}
	return 0;
}

/* The entry marker of C code that `caller` called, and that has called a Python function; 0. */
static py_addr find_marker(struct unwinder *unwinder, struct thread_stack *stack, py_addr caller)
{
	struct step step;
	size_t hint = 0;

	for (size_t i = stack->chunks; i < stack->regions.len; i++)
		if (take_step(unwinder, stack, stack->regions.items[i].address, &hint, &step) &&
		    step.after.other && step.after.previous == caller)
			return stack->regions.items[i].address;
	return 0;
}

/*
 * The last of the frames that run, when the copy was taken, on the way from `at` to its callee, to that
 * one's, and so on; 0: none shows that it runs.
 */
static py_addr find_running(struct unwinder *unwinder, struct thread_stack *stack, py_addr at)
{
	py_addr running = 0, marker;
	struct step step;
	size_t hint = 0;

	for (int i = 0; i < RETURNS_MAX && at; i++) {
		if (is_frame(unwinder, stack, at, false, &hint, &step))
			running = at;
		marker = find_marker(unwinder, stack, at);
		at = find_callee(unwinder, stack, at, true)
			     ?: (marker ? find_callee(unwinder, stack, marker, true) : 0);
	}
	return running;
}

/*
 * No frame shows that it runs while one is entered or left. Then the current one will do, if its call is a
 * known one.
 */
static py_addr find_entered(struct unwinder *unwinder, struct thread_stack *stack)
{
	struct step step;
	size_t hint = 0;

	stack->work.entered = is_frame(unwinder, stack, stack->current_frame, true, &hint, &step);
	return stack->work.entered ? stack->current_frame : 0;
}

/*
 * Where callers do not show whether they have returned (3.11 to 3.13), what runs does. It may have returned
 * to the current frame since; or the current one did not lie there yet, and what runs was called from a frame
 * of the last stack.
 */
static py_addr find_above(struct unwinder *unwinder, struct thread_stack *stack)
{
	py_addr found = find_running(unwinder, stack, stack->current_frame)
				?: find_entered(unwinder, stack);
	struct step step;
	size_t hint = 0;

	for (size_t i = 0; i < stack->last_addresses.len && i < RETURNS_MAX && !found; i++)
		if (is_frame(unwinder, stack, stack->last_addresses.items[i], true, &hint, &step))
			found = find_running(unwinder, stack, stack->last_addresses.items[i]);
	return found;
}

/*
 * The current frame or, if it has returned, its caller, and so on. One that has called C code shows that it
 * runs whatever that has called: with beyond_c it will do. 0: there is none.
 */
static py_addr find_below(struct unwinder *unwinder, struct thread_stack *stack, bool beyond_c)
{
	py_addr at = stack->current_frame, base = unwind_base_of(unwinder, stack);
	uint16_t from_c = unwinder->target->layout.fr_from_c;
	bool entered = false; /* has a frame been met that does not run? */
	struct step step;
	size_t hint = 0;

	for (int i = 0; i < RETURNS_MAX && at && at != base; i++) {
		if (is_frame(unwinder, stack, at, false, &hint, &step))
			return at;
		/*
		 * One that has returned still tells who called it, as an entry marker does; what is no frame
		 * any more tells nothing.
		 */
		if (!step.region || step.after.other != is_live(unwinder, stack, &step, false))
			break;
		entered |= !step.after.other;
		if (entered && !beyond_c && (step.after.other || (from_c != PBP_NONE && step.bytes[from_c])))
			break;
		at = step.after.previous;
	}
	return 0;
}

/*
 * A frame to begin from: what was the current frame some 0.5 us before; if something else lies there now, a
 * frame of the last stack that is there still. 0: there is none.
 */
static py_addr find_start(struct unwinder *unwinder, struct thread_stack *stack)
{
	bool callers_show = unwinder->target->offsets.frame_stacktop == PY_ABSENT;
	py_addr at = find_below(unwinder, stack, callers_show);
	struct step step;
	size_t hint = 0;

	if (at)
		return at;
	if (!callers_show)
		return find_above(unwinder, stack) ?: find_below(unwinder, stack, true);
	for (size_t i = 0; i < stack->last_addresses.len; i++)
		if (is_frame(unwinder, stack, stack->last_addresses.items[i], false, &hint, &step))
			return stack->last_addresses.items[i];
	return 0;
}

/*
 * The stack of the second copy, where frames show whether they have returned. A copy takes some 0.1 us,
 * enough for its lower part to be of another stack than its upper part, so what differs from the other copy
 * stands for a call only if that call is known (prove_calls).
 */
enum walk_end unwind_walk_second(struct unwinder *unwinder, struct thread_stack *stack, py_addr *missing)
{
	py_addr at = stack->current_frame, base = unwind_base_of(unwinder, stack), callee;
	struct step step;
	size_t hint = 0;

	if (!at || at == base)
		return unwind_walk(unwinder, stack, at, false, missing);
	if (!take_step(unwinder, stack, at, &hint, &step)) {
		*missing = at;
		return WALK_MISSED;
	}
	at = find_start(unwinder, stack);
	if (!at)
		return WALK_TORN;
	for (int i = 0; i < RETURNS_MAX && (callee = find_callee(unwinder, stack, at, false)); i++)
		at = callee;
	return unwind_walk(unwinder, stack, at, false, missing);
}

/*
 * 3.11 and 3.12: the frame is in a struct of the eval loop on the C stack. It is linked into the thread state
 * some instructions before the frame is written to it, so a chain counts only if it leads to the frame that
 * the loop was entered from, which is that of the loop below. False: these are not where they were expected.
 */
static bool take_cframe(struct thread_stack *stack, const struct remote_segment *segment)
{
	py_addr cframe = stack->current_frame, below = stack->work.hop[1];

	if (cframe != stack->cframe || (cframe && segment[1].got < segment[1].len)) {
		stack->cframe = cframe;
		return false;
	}
	if (below != stack->cframe_below) {
		stack->cframe_below = below;
		return false;
	}
	stack->current_frame = cframe ? stack->work.hop[0] : 0;
	if (!cframe || !below || segment[2].got < segment[2].len)
		stack->work.below = 0;
	return true;
}

/* Is it this thread that collects garbage? Where the frame tells, that is found out when there is a stack. */
static bool collects(const struct unwinder *unwinder, const struct thread_stack *stack,
		     const struct unwind_interp *interp)
{
	const struct pbp_target *layout = &unwinder->target->layout;

	if (!(interp && interp->readable && interp->collecting) && !unwinder->collecting)
		return false;
	return layout->collector == PBP_COLLECTOR_ATTACHED ? stack->flags & PBP_SAMPLE_ATTACHED
	       : layout->collector == PBP_COLLECTOR_REQUESTER
		       ? interp && interp->requester == stack->thread.tstate
		       : false;
}

/* What the thread state says, and where its chain begins. */
enum walk_end unwind_take_state(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	const struct remote_segment *segment = &unwinder->segments.items[stack->work.state_segment];
	const struct unwind_interp *interp = unwind_find_interp(unwinder, stack->thread.interp);
	const uint8_t *state = stack->state;

	if (segment->got < segment->len || load_u64(state + layout->ts_interp) != stack->thread.interp ||
	    load_u64(state + layout->ts_thread_id) != stack->thread.thread_id)
		return WALK_GONE;
	stack->current_frame = load_u64(state + layout->ts_frame);
	if (layout->cframe_frame != PBP_NONE && !take_cframe(stack, segment))
		return WALK_TORN;
	stack->flags = 0;
	if (layout->ts_attached != PBP_NONE &&
	    (load_u32(state + layout->ts_attached) & layout->ts_attached_mask) == layout->ts_attached_want)
		stack->flags |= PBP_SAMPLE_ATTACHED;
	if (layout->ts_suspended && load_u32(state + layout->ts_attached) == layout->ts_suspended)
		stack->flags |= PBP_SAMPLE_SUSPENDED;
	if (layout->gil_tstate && unwinder->gils.len &&
	    unwinder->gils.items[0].holder == stack->thread.tstate)
		stack->flags |= PBP_SAMPLE_ATTACHED;
	if (layout->ts_exception != PBP_NONE && load_u64(state + layout->ts_exception))
		stack->flags |= PBP_SAMPLE_RAISING;
	if (layout->ts_executor != PBP_NONE && load_u64(state + layout->ts_executor))
		stack->flags |= PBP_SAMPLE_JIT;
	if (collects(unwinder, stack, interp))
		stack->flags |= PBP_SAMPLE_GC;
	stack->generation = interp && interp->readable ? interp->generation : 0;
	return WALK_HELD;
}

/* Of one copy alone only that is sure which was so in the last stack too, from the base on. */
void unwind_mark_changed(struct thread_stack *stack)
{
	size_t now = stack->frames.len, then = stack->last_frames.len;
	size_t len = min_u64(now, then), same = 0;

	stack->work.same = 0;
	while (same < len) {
		const struct pbp_frame *a = &stack->frames.items[now - 1 - same];
		const struct pbp_frame *b = &stack->last_frames.items[then - 1 - same];

		if (stack->addresses.items[now - 1 - same] != stack->last_addresses.items[then - 1 - same] ||
		    a->code != b->code || (a->instr != b->instr && same + 1 < now))
			break;
		same++;
	}
	stack->work.same = same;
	for (size_t i = 0; i < now - same; i++)
		stack->frames.items[i].flags |= FRAME_CHANGED;
}
