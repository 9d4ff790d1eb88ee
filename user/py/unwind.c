/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One reading after the other until every stack is known, torn for good, or gone (unwind_parts.h tells what a
 * reading is made of).
 *
 * Where frames show whether they have returned (py/frame_view.h), one copy will do: it is taken
 * within some 0.1 us, and what is not as in the last stack stands for a call only if that call is known.
 * Else, and where that fails, the two copies on both sides of the thread state have to agree.
 */
#include "py/unwind.h"

#include "base/clock.h"
#include "base/util.h"
#include "py/unwind_parts.h"

#include <errno.h>

#define ATTEMPTS      16
#define MOVED_TRIES   3	 /* further readings to find out the line of a caller that was moving */
#define TRIM_READINGS 64 /* readings after which what they did not need is not predicted any more */
#define TRIM_BLOATED  4	 /* ... where that is much */
#define PACED_CALLS   16 /* the pace of calls is a mean over so many */

static void cover_field(size_t *end, uint32_t offset, size_t width)
{
	if (offset != PY_ABSENT)
		*end = max_u64(*end, offset + width);
}

/* From its start to the last field that is wanted here or by a caller (struct thread_stack.state). */
static size_t thread_bytes(const struct py_offsets *offsets)
{
	size_t end = 0;

	cover_field(&end, offsets->thread_interp, 8);
	cover_field(&end, offsets->thread_current_frame, 8);
	cover_field(&end, offsets->thread_thread_id, 8);
	cover_field(&end, offsets->thread_native_thread_id, 8);
	cover_field(&end, offsets->thread_datastack_chunk, 8);
	cover_field(&end, offsets->thread_datastack_top, 8);
	cover_field(&end, offsets->thread_status, 4);
	cover_field(&end, offsets->thread_state, 4);
	cover_field(&end, offsets->thread_holds_gil, 4);
	cover_field(&end, offsets->thread_gil_requested, 4);
	cover_field(&end, offsets->thread_current_exception, 8);
	cover_field(&end, offsets->thread_executor, 8);
	cover_field(&end, offsets->thread_last_profiled, 8);
	cover_field(&end, offsets->thread_last_profiled_seq, 8);
	if (py_offsets__has(offsets->thread_exc_info))
		cover_field(&end, offsets->thread_exc_info, 8);
	/* Most threads have no others than these: they are as they were when the frames were. */
	if (offsets->thread_exc_state != PY_ABSENT &&
	    offsets->thread_exc_state + offsets->exception_previous + 8 <= UNWIND_THREAD_BYTES)
		cover_field(&end, offsets->thread_exc_state, offsets->exception_previous + 8);
	return end;
}

int unwinder__init(struct unwinder *unwinder, struct py_target *target)
{
	*unwinder = (struct unwinder){.target = target, .slowness = 256};
	unwinder->thread_bytes = thread_bytes(&target->offsets);
	unwind_choose_interp_span(unwinder);
	return unwinder->thread_bytes > UNWIND_THREAD_BYTES ? -EOVERFLOW : 0;
}

void unwinder__free(struct unwinder *unwinder)
{
	vec__free(&unwinder->interps);
	vec__free(&unwinder->gils);
	vec__free(&unwinder->segments);
	hmap__free(&unwinder->idents);
	hmap__free(&unwinder->in_copies);
	hmap__free(&unwinder->calls);
	hmap__free(&unwinder->codes);
	page_cache__free(&unwinder->pages);
}

void thread_stack__init(struct thread_stack *stack, const struct py_thread *thread)
{
	*stack = (struct thread_stack){.thread = *thread, .collection = SIZE_MAX};
}

void thread_stack__free(struct thread_stack *stack)
{
	vec__free(&stack->frames);
	vec__free(&stack->addresses);
	vec__free(&stack->last_frames);
	vec__free(&stack->last_addresses);
	vec__free(&stack->regions);
	vec__free(&stack->by_address);
	vec__free(&stack->blocks);
	hmap__free(&stack->singles);
	vec__free(&stack->idents);
	vec__free(&stack->copies);
	vec__free(&stack->last_copies);
	vec__free(&stack->last_blocks);
	vec__free(&stack->work.frames);
	vec__free(&stack->work.addresses);
}

/* What an instruction pointer says that was not the same in both copies is not passed on. */
static void clear_moved(struct thread_stack *stack)
{
	for (size_t i = 1; i < stack->frames.len; i++)
		if (stack->frames.items[i].flags & PBP_FRAME_MOVED)
			stack->frames.items[i].instr = 0;
}

static void finish(struct thread_stack *stack, enum unwind_result result)
{
	stack->result = result;
	stack->work.done = true;
}

static bool same_stack(const struct thread_stack *stack)
{
	if (stack->frames.len != stack->work.frames.len)
		return false;
	for (size_t i = 0; i < stack->frames.len; i++)
		if (stack->addresses.items[i] != stack->work.addresses.items[i] ||
		    stack->frames.items[i].code != stack->work.frames.items[i].code ||
		    stack->frames.items[i].ident != stack->work.frames.items[i].ident)
			return false;
	return true;
}

/*
 * The functions of a stack are known, but a caller was moving between the two copies. The first stack that
 * held is the sample; later readings of the same stack tell the lines that are missing.
 */
static void fill_lines(struct thread_stack *stack)
{
	if (!same_stack(stack))
		return;
	for (size_t i = 0; i < stack->frames.len; i++) {
		struct pbp_frame *held = &stack->work.frames.items[i];

		if (held->flags & PBP_FRAME_MOVED && !(stack->frames.items[i].flags & PBP_FRAME_MOVED)) {
			held->instr = stack->frames.items[i].instr;
			held->flags &= ~PBP_FRAME_MOVED;
		}
	}
}

static size_t count_moved(const struct thread_stack *stack)
{
	size_t count = 0;

	for (size_t i = 0; i < stack->work.frames.len; i++)
		count += !!(stack->work.frames.items[i].flags & PBP_FRAME_MOVED);
	return count;
}

static int hold(struct thread_stack *stack)
{
	int err;

	stack->work.frames.len = stack->work.addresses.len = 0;
	err = vec__reserve(&stack->work.frames, stack->frames.len)
		      ?: vec__reserve(&stack->work.addresses, stack->frames.len);
	if (err)
		return err;
	memcpy(stack->work.frames.items, stack->frames.items,
	       stack->frames.len * sizeof(*stack->frames.items));
	memcpy(stack->work.addresses.items, stack->addresses.items,
	       stack->frames.len * sizeof(*stack->addresses.items));
	stack->work.frames.len = stack->work.addresses.len = stack->frames.len;
	stack->work.held = true;
	return 0;
}

/* The stack that held becomes the result, as it is known by now. */
static void take_held(struct unwinder *unwinder, struct thread_stack *stack)
{
	memcpy(stack->frames.items, stack->work.frames.items,
	       stack->work.frames.len * sizeof(*stack->frames.items));
	memcpy(stack->addresses.items, stack->work.addresses.items,
	       stack->work.frames.len * sizeof(*stack->addresses.items));
	stack->frames.len = stack->addresses.len = stack->work.frames.len;
	stack->moved = count_moved(stack);
	unwinder->stats.moved += stack->moved;
	finish(stack, UNWIND_OK);
}

/* The walk came to the base. */
static void judge_held(struct unwinder *unwinder, struct thread_stack *stack, bool strict)
{
	if (!stack->frames.len && !stack->work.held) {
		finish(stack, UNWIND_NO_FRAMES);
		return;
	}
	if (!unwind_identify(unwinder, stack))
		return;
	if (strict)
		unwind_learn_calls(unwinder, stack);
	if (!unwind_prove_calls(unwinder, stack)) {
		unwinder->stats.retries += !stack->work.light;
		unwinder->stats.unproven += stack->work.light;
		return;
	}
	clear_moved(stack);
	if (stack->work.held)
		fill_lines(stack);
	else if (!stack->moved)
		finish(stack, UNWIND_OK);
	else if (hold(stack))
		finish(stack, UNWIND_UNREADABLE);
}

#define SWAP(a, b)                                                                                           \
	do {                                                                                                 \
		typeof(a) swap_ = (a);                                                                       \
		(a) = (b);                                                                                   \
		(b) = swap_;                                                                                 \
	} while (0)

/* What was read becomes what was read last. */
static void keep_last(struct thread_stack *stack)
{
	SWAP(stack->frames.items, stack->last_frames.items);
	SWAP(stack->frames.len, stack->last_frames.len);
	SWAP(stack->frames.cap, stack->last_frames.cap);
	SWAP(stack->addresses.items, stack->last_addresses.items);
	SWAP(stack->addresses.len, stack->last_addresses.len);
	SWAP(stack->addresses.cap, stack->last_addresses.cap);
}

/*
 * Is all that the last stack was made of as it was then, but for what its leaf is at? The bytes below the
 * leaf are those of suspended frames.
 */
static bool is_unchanged(const struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	const struct remote_segment *segments = unwinder->segments.items + stack->work.first_copies[1];
	py_addr leaf = stack->last_frames.len ? stack->last_addresses.items[0] : 0;
	struct frame_view now, then;
	size_t leaf_offset = SIZE_MAX;

	if (!stack->work.light || stack->work.marked || stack->moved || stack->truncated ||
	    stack->current_frame != leaf || !unwind_has_generation(unwinder) ||
	    stack->generation != stack->work.last_generation || stack->blocks.len != stack->last_blocks.len ||
	    memcmp(stack->blocks.items, stack->last_blocks.items,
		   stack->blocks.len * sizeof(*stack->blocks.items)))
		return false;
	for (size_t i = 0; i < stack->blocks.len; i++) {
		const struct unwind_block *block = &stack->blocks.items[i];
		size_t len = block->len;

		if (leaf - block->address < len && len - (leaf - block->address) >= layout->fr_bytes) {
			len = leaf - block->address;
			leaf_offset = block->offset + len;
		}
		if (segments[i].got < block->len || memcmp(stack->copies.items + block->offset,
							   stack->last_copies.items + block->offset, len))
			return false;
	}
	if (leaf_offset == SIZE_MAX)
		return false;
	now = view_frame(layout, stack->copies.items + leaf_offset);
	then = view_frame(layout, stack->last_copies.items + leaf_offset);
	if (!unwind_same_call(&now, &then) ||
	    !frame_is_live(&unwinder->target->offsets, &now, stack->copies.items + leaf_offset, false))
		return false;
	stack->last_frames.items[0].instr = now.instr;
	return true;
}

/* By both copies where they agree; *strict. */
static enum walk_end follow(struct unwinder *unwinder, struct thread_stack *stack, bool *strict,
			    py_addr *missing)
{
	enum walk_end end;

	*strict = !stack->work.light;
	stack->work.entered = false;
	if (stack->work.marked && unwind_find_marked(unwinder, stack) == SIZE_MAX)
		return WALK_TORN;
	if (!stack->work.light) {
		end = unwind_walk(unwinder, stack, stack->current_frame, true, missing);
		if (end != WALK_TORN || !frames_show_life(&unwinder->target->offsets))
			return end;
		*strict = false;
	}
	end = unwind_walk_second(unwinder, stack, missing);
	/*
	 * What is the same in both copies may have been left behind by calls that are over, if no frame runs.
	 */
	if (stack->work.light || stack->work.entered)
		unwind_mark_changed(stack);
	return end;
}

static void judge(struct unwinder *unwinder, struct thread_stack *stack, bool slow)
{
	bool strict = true;
	py_addr missing = 0;
	enum walk_end end;

	end = unwind_take_state(unwinder, stack);
	if (end == WALK_HELD && !slow && is_unchanged(unwinder, stack)) {
		keep_last(stack); /* and back again: what was last is what is now */
		stack->same = true;
		stack->work.same = stack->frames.len - 1;
		finish(stack, UNWIND_OK);
		return;
	}
	unwind_take_copies(unwinder, stack);
	if (end == WALK_HELD)
		end = follow(unwinder, stack, &strict, &missing);
	switch (end) {
	case WALK_HELD:
		if (!slow)
			judge_held(unwinder, stack, strict);
		break;
	case WALK_MISSED:
		stack->work.learned = true;
		if (unwind_learn(unwinder, stack, missing))
			stack->work.failure = UNWIND_UNREADABLE;
		break;
	case WALK_TORN:
		unwinder->stats.retries += !stack->work.light;
		unwinder->stats.unproven += stack->work.light;
		stack->work.failure = UNWIND_TORN;
		break;
	case WALK_GONE:
		unwinder->stats.stale++;
		finish(stack, UNWIND_GONE);
		break;
	case WALK_UNREADABLE:
		stack->work.failure = UNWIND_UNREADABLE;
		break;
	}
	/* Not by one copy, then by two. Where a prediction failed, the next one may do. */
	if (end != WALK_MISSED)
		stack->work.light = false;
	if (stack->work.marked && !stack->work.done)
		unwind_read_below_marker(stack);
	if (!stack->work.done && stack->work.held &&
	    (!count_moved(stack) || stack->work.tries++ == MOVED_TRIES))
		take_held(unwinder, stack);
}

enum pace { PACE_USUAL, PACE_SLOW, PACE_INTERRUPTED };

/* How long the call took, against what calls of its size took before. */
static enum pace pace_of(struct unwinder *unwinder, uint64_t ns)
{
	uint64_t bytes = 0, expected, usual, ratio;

	for (size_t i = 0; i < unwinder->segments.len; i++)
		bytes += unwinder->segments.items[i].len;
	expected = 500 + 200 * unwinder->segments.len + bytes / 4;
	usual = expected * unwinder->slowness / 256;
	ratio = ns * 256 / expected;
	unwinder->paced = min_u64(unwinder->paced + 1, PACED_CALLS);
	unwinder->slowness +=
		((int64_t)min_u64(ratio, 2 * unwinder->slowness) - (int64_t)unwinder->slowness) /
		(int64_t)unwinder->paced;
	unwinder->slowness = max_u64(unwinder->slowness, 64);
	return ns > 4 * usual + 4000 ? PACE_INTERRUPTED : ns > 3 * usual / 2 + 200 ? PACE_SLOW : PACE_USUAL;
}

/*
 * In a call so long that this process or the target was interrupted in the middle, two copies may agree by
 * chance; all the more where callers do not show that they have returned (3.11 to 3.13).
 */
static bool is_too_slow(struct unwinder *unwinder, const struct thread_stack *stack, enum pace pace)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;
	bool callers_show = offsets->tagged_frames || offsets->frame_state != PY_ABSENT;
	bool slow = pace == PACE_INTERRUPTED || (pace == PACE_SLOW && !stack->work.light && !callers_show);

	unwinder->stats.slow += slow;
	return slow;
}

static bool wants_generations(const struct unwinder *unwinder, struct thread_stack *const *stacks,
			      size_t count)
{
	if (!unwind_has_generation(unwinder))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!stacks[i]->work.done && stacks[i]->idents.len)
			return true;
	return false;
}

static int read_once(struct unwinder *unwinder, struct thread_stack *const *stacks, size_t count)
{
	enum pace pace;
	uint64_t start;
	int err = 0;

	unwinder->segments.len = 0;
	if (wants_generations(unwinder, stacks, count))
		err = unwind_plan_generations(unwinder);
	for (size_t i = 0; i < count && !err; i++) {
		if (stacks[i]->work.done)
			continue;
		err = unwind_plan_stack(unwinder, stacks[i]);
		if (err == -E2BIG) {
			unwind_forget_prediction(stacks[i]);
			finish(stacks[i], UNWIND_UNREADABLE);
			err = 0;
		}
	}
	err = err ?: unwind_plan_interps(unwinder);
	start = now_ns();
	err = err
		      ?: remote__read_batch(&unwinder->target->remote, unwinder->segments.items,
					    unwinder->segments.len);
	if (err)
		return err;
	pace = pace_of(unwinder, now_ns() - start);
	unwind_take_interps(unwinder);
	for (size_t i = 0; i < count; i++)
		if (!stacks[i]->work.done)
			judge(unwinder, stacks[i], is_too_slow(unwinder, stacks[i], pace));
	return 0;
}

/* ... and where it was read to. */
static void keep_copies(struct thread_stack *stack)
{
	SWAP(stack->copies.items, stack->last_copies.items);
	SWAP(stack->copies.len, stack->last_copies.len);
	SWAP(stack->copies.cap, stack->last_copies.cap);
	SWAP(stack->blocks.items, stack->last_blocks.items);
	SWAP(stack->blocks.len, stack->last_blocks.len);
	SWAP(stack->blocks.cap, stack->last_blocks.cap);
}

/* Much more is read than the stack needs: its functions come and go. */
static bool is_bloated(const struct thread_stack *stack)
{
	return stack->regions.len - stack->chunks + stack->idents.len > 4 * stack->last_frames.len + 16;
}

static void begin(struct unwinder *unwinder, struct thread_stack *stack)
{
	if (stack->result == UNWIND_OK && stack->frames.len) {
		keep_last(stack);
		keep_copies(stack);
		stack->frames.len = stack->addresses.len = 0;
	}
	unwinder->stats.readings++;
	/* A stack that stays the same does not say what it uses. */
	if (!stack->same && ++stack->readings >= (is_bloated(stack) ? TRIM_BLOATED : TRIM_READINGS)) {
		unwind_trim(stack);
		stack->readings = 0;
	}
	stack->same = false;
	stack->work.last_generation = stack->generation;
	if (unwind_has_generation(unwinder))
		stack->idents.len = 0; /* asked for again only if the generation has moved */
	stack->work.done = stack->work.held = stack->work.learned = false;
	/* One copy will do where its frames show that they are what they seem. */
	stack->work.light =
		!stack->still && frames_show_life(&unwinder->target->offsets) && stack->last_frames.len;
	stack->work.same = 0;
	stack->work.marked =
		stack->work.light && stack->marker.frame && stack->marker.index < stack->last_frames.len;
	if (stack->work.marked)
		unwind_skip_below_marker(stack);
	stack->work.tries = 0;
	stack->work.was_new = !stack->regions.len;
	stack->work.failure = UNWIND_TORN;
}

static size_t count_open(struct thread_stack *const *stacks, size_t count)
{
	size_t open = 0;

	for (size_t i = 0; i < count; i++)
		open += !stacks[i]->work.done;
	return open;
}

static void give_up(struct unwinder *unwinder, struct thread_stack *stack)
{
	if (stack->work.held) {
		take_held(unwinder, stack);
		return;
	}
	unwinder->stats.torn += stack->work.failure == UNWIND_TORN;
	stack->frames.len = stack->addresses.len = 0;
	finish(stack, stack->work.failure);
}

static void count_prediction(struct unwind_stats *stats, const struct thread_stack *stack)
{
	if (!stack->work.learned)
		stats->hits++;
	else if (stack->work.was_new)
		stats->misses++;
	else
		stats->partial++;
}

int unwinder__read(struct unwinder *unwinder, struct thread_stack *const *stacks, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count; i++)
		begin(unwinder, stacks[i]);
	for (int attempt = 0; attempt < ATTEMPTS && !err; attempt++) {
		err = read_once(unwinder, stacks, count);
		if (!count_open(stacks, count))
			break;
	}
	for (size_t i = 0; i < count && !err; i++) {
		if (!stacks[i]->work.done)
			give_up(unwinder, stacks[i]);
		unwind_take_activity(unwinder, stacks[i]);
		count_prediction(&unwinder->stats, stacks[i]);
		unwinder->stats.marked += stacks[i]->work.marked;
		unwind_read_below_marker(stacks[i]);
		if (unwinder->use_marker && stacks[i]->result == UNWIND_OK)
			unwind_place_marker(unwinder, stacks[i]);
	}
	return err;
}
