/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of a thread's segments in a batch: its single frames, its chunks from the oldest to the newest, the
 * thread state, and all of them again backwards. So what changes most, the top of the data stack, lies next to
 * the thread state on both sides, and little time passes between the three.
 *
 * Chunks: CPython's _PyStackChunk {previous, size, top, data[]}, 3.11 to 3.15. Before 3.11 every frame is an
 * object of its own: then all regions are single frames.
 */
#include "py/unwind.h"

#include "base/util.h"
#include "py/frame_view.h"
#include "py/marker.h"

#include <errno.h>
#include <time.h>

#define ATTEMPTS	   16
#define MOVED_TRIES	   3  /* further readings to find out the line of a caller that was moving */
#define TRIM_READINGS	   64 /* readings after which what they did not need is not predicted any more */
#define SLACK_BYTES	   384 /* read beyond the last frame: the next call's */
#define CHUNK_PREVIOUS	   0
#define CHUNK_SIZE	   8
#define CHUNK_TOP	   16 /* words of data[] in use; kept up to date in all but the newest */
#define CHUNK_DATA	   24
#define CHUNK_BYTES_MAX	   (16u << 20)
#define CHUNKS_MAX	   2048
#define COPY_BYTES_MAX	   (32u << 20) /* of one thread: UNWIND_FRAMES_MAX frames with some locals each */
#define JOIN_GAP	   2048 /* bytes between two single frames that are read for nothing */
#define JOIN_BYTES	   65536
#define SINGLES_MAX	   16384
#define LINKS_MAX	   (4 * UNWIND_FRAMES_MAX) /* steps of a chain, entry markers included */
#define CALLEE_BYTES	   2048 /* of a frame: a callee that lies farther up is not looked for */
#define RETURNS_MAX	   64	/* calls that may have ended or begun while a stack was read */
#define CALLS_MAX	   (1u << 18)
#define CALLS_LEARNED	   64 /* of one stack, from the leaf on */
#define IDENTS_MAX	   8192
#define MARKER_NEAR	   32 /* frames that are rather read again than the marker moved */
#define MARKER_LEAST	   64 /* frames below it that make it worthwhile */
#define INTERPRETERS_MAX   1024
#define PAGE_BYTES	   4096u
#define GIL_LAST_HOLDER	   8 /* struct _gil_runtime_state, Include/internal/pycore_gil.h, GIL builds */
#define GIL_LOCKED	   16
#define GIL_BYTES	   24
#define KNOWN_IDENTS_MAX   65536
#define KNOWN_CODES_MAX	   65536

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

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
	cover_field(&end, offsets->thread_last_profiled, 8);
	cover_field(&end, offsets->thread_last_profiled_seq, 8);
	return end;
}

static void widen(uint32_t *first, uint32_t *end, uint32_t offset, uint32_t width)
{
	if (!offset || offset == PY_ABSENT)
		return;
	*first = min_u64(*first, offset);
	*end = max_u64(*end, offset + width);
}

/* The fields that change lie within a few hundred bytes of each other in every version that has them. */
static void choose_interp_span(struct unwinder *unwinder)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	uint32_t first = UINT32_MAX, end = 0;

	widen(&first, &end, layout->in_threads_head, 8);
	widen(&first, &end, layout->in_gc_collecting, 4);
	widen(&first, &end, layout->in_generation, 8);
	if (end <= first || end - first > UNWIND_INTERP_BYTES)
		return;
	unwinder->interp_first = first;
	unwinder->interp_len = end - first;
}

void unwinder__init(struct unwinder *unwinder, struct py_target *target)
{
	*unwinder = (struct unwinder){.target = target, .slowness = 256};
	unwinder->thread_bytes = min_u64(thread_bytes(&target->offsets), UNWIND_THREAD_BYTES);
	choose_interp_span(unwinder);
}

void unwinder__free(struct unwinder *unwinder)
{
	vec__free(&unwinder->interps);
	vec__free(&unwinder->gils);
	vec__free(&unwinder->segments);
	hmap__free(&unwinder->idents);
	hmap__free(&unwinder->calls);
	hmap__free(&unwinder->codes);
	page_cache__free(&unwinder->pages);
}

void thread_stack__init(struct thread_stack *stack, const struct py_thread *thread)
{
	*stack = (struct thread_stack){.thread = *thread};
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

/* --- interpreters --- */

static int add_gil(struct unwinder *unwinder, py_addr address)
{
	struct unwind_gil gil = {.address = address};

	if (!address || unwinder->target->offsets.free_threaded)
		return 0;
	for (size_t i = 0; i < unwinder->gils.len; i++)
		if (unwinder->gils.items[i].address == address)
			return 0;
	return vec__push(&unwinder->gils, gil);
}

static int read_interp(struct unwinder *unwinder, struct unwind_interp *interp, py_addr *next)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;
	struct remote_segment segments[] = {
		{.addr = interp->address + offsets->interp_next, .dest = next, .len = 8},
		{.addr = interp->address + offsets->interp_id, .dest = &interp->id, .len = 8},
		{.addr = interp->address + offsets->interp_threads_head, .dest = &interp->threads_head, .len = 8},
		{.addr = interp->address + offsets->interp_ceval_gil, .dest = &interp->gil, .len = 8},
	};
	size_t count = ARRAY_SIZE(segments) - (offsets->interp_ceval_gil == PY_ABSENT);
	int err = remote__read_batch(&unwinder->target->remote, segments, count);

	for (size_t i = 0; i < count && !err; i++)
		err = segments[i].got < segments[i].len ? -EFAULT : 0;
	return err;
}

int unwinder__find_interpreters(struct unwinder *unwinder)
{
	struct py_target *target = unwinder->target;
	py_addr at = 0;
	int err = remote__read(&target->remote, target->runtime + target->offsets.runtime_interpreters_head,
			       &at, 8);

	unwinder->interps.len = 0;
	unwinder->gils.len = 0;
	while (!err && at && unwinder->interps.len < INTERPRETERS_MAX) {
		struct unwind_interp interp = {.address = at};

		err = read_interp(unwinder, &interp, &at) ?: vec__push(&unwinder->interps, interp)
							  ?: add_gil(unwinder, interp.gil);
	}
	return err == -EFAULT ? 0 : err;
}

static struct unwind_interp *find_interp(const struct unwinder *unwinder, py_addr address)
{
	for (size_t i = 0; i < unwinder->interps.len; i++)
		if (unwinder->interps.items[i].address == address)
			return &unwinder->interps.items[i];
	return NULL;
}

const struct unwind_interp *unwinder__interp(const struct unwinder *unwinder, py_addr address)
{
	return find_interp(unwinder, address);
}

static bool has_generation(const struct unwinder *unwinder)
{
	return unwinder->target->layout.in_generation && unwinder->interp_len;
}

/* --- what is to be read --- */

static int add_segment(struct unwinder *unwinder, py_addr address, void *dest, size_t len)
{
	return vec__push(&unwinder->segments,
			 ((struct remote_segment){.addr = address, .dest = dest, .len = len}));
}

/* What is read ahead must not bring in a page that no frame has touched. */
static size_t with_slack(const struct unwind_region *region, size_t need)
{
	uint64_t page_end = (region->address + need + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);

	return min_u64(min_u64(need + SLACK_BYTES, page_end - region->address), region->size);
}

static int compare_addresses(const void *a, const void *b, void *regions)
{
	const struct unwind_region *all = regions;
	py_addr x = all[*(const uint32_t *)a].address, y = all[*(const uint32_t *)b].address;

	return (x > y) - (x < y);
}

static int sort_singles(struct thread_stack *stack)
{
	size_t count = stack->regions.len - stack->chunks;

	if (stack->sorted && stack->by_address.len == count)
		return 0;
	stack->by_address.len = 0;
	if (vec__reserve(&stack->by_address, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		stack->by_address.items[i] = stack->chunks + i;
	stack->by_address.len = count;
	stack->sorted = true;
	qsort_r(stack->by_address.items, count, sizeof(uint32_t), compare_addresses, stack->regions.items);
	return 0;
}

static int add_block(struct thread_stack *stack, struct unwind_region *region, size_t *bytes)
{
	struct unwind_block block = {.address = region->address, .len = region->len, .offset = *bytes};

	region->offset = *bytes;
	region->block = stack->blocks.len;
	*bytes += region->len;
	return vec__push(&stack->blocks, block);
}

/* A single frame that lies close behind the last block's end is read along with it. */
static bool join_block(struct thread_stack *stack, struct unwind_region *region, size_t *bytes)
{
	struct unwind_block *block = &stack->blocks.items[stack->blocks.len - 1];
	size_t distance = region->address - block->address;

	if (distance > block->len + JOIN_GAP || distance + region->len > JOIN_BYTES)
		return false;
	region->offset = block->offset + distance;
	region->block = stack->blocks.len - 1;
	block->len = max_u64(block->len, distance + region->len);
	*bytes = block->offset + block->len;
	return true;
}

/* Where everything is copied to: a segment costs some 0.2 us whatever its length. */
static int place_copies(struct thread_stack *stack)
{
	bool joined = false; /* is the last block one of single frames? */
	size_t bytes = 0;
	int err = sort_singles(stack);

	stack->blocks.len = 0;
	for (size_t i = 0; i < stack->chunks && !err; i++)
		if (!stack->regions.items[i].skip)
			err = add_block(stack, &stack->regions.items[i], &bytes);
	for (size_t i = 0; i < stack->by_address.len && !err; i++) {
		struct unwind_region *region = &stack->regions.items[stack->by_address.items[i]];

		if (region->skip)
			continue;
		if (!joined || !join_block(stack, region, &bytes))
			err = add_block(stack, region, &bytes);
		joined = true;
	}
	stack->copy_bytes = bytes;
	stack->copies.len = 0;
	if (!err && bytes > COPY_BYTES_MAX)
		err = -E2BIG;
	return err ?: vec__reserve(&stack->copies, 2 * bytes + 1);
}

static int plan_copy(struct unwinder *unwinder, struct thread_stack *stack, int copy, size_t i)
{
	const struct unwind_block *block = &stack->blocks.items[i];

	return add_segment(unwinder, block->address,
			   stack->copies.items + !copy * stack->copy_bytes + block->offset, block->len);
}

static int plan_state(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	int err;

	stack->work.state_segment = unwinder->segments.len;
	err = add_segment(unwinder, stack->thread.tstate, stack->state, unwinder->thread_bytes);
	if (!err && layout->cframe_frame != PBP_NONE)
		err = add_segment(unwinder, stack->cframe + layout->cframe_frame, &stack->work.hop, 8);
	return err;
}

static int plan_idents(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	int err = 0;

	for (size_t i = 0; i < stack->idents.len && !err; i++) {
		struct unwind_ident *ident = &stack->idents.items[i];

		ident->first_segment = unwinder->segments.len;
		memset(ident->words, 0, sizeof(ident->words));
		err = add_segment(unwinder, ident->code + layout->co_ident, ident->words,
				  min_u64(layout->co_ident_bytes, sizeof(ident->words)));
	}
	return err;
}

/* Newest chunk last ... */
static int plan_first_copy(struct unwinder *unwinder, struct thread_stack *stack)
{
	int err = 0;

	stack->work.first_copies[0] = unwinder->segments.len;
	for (size_t i = stack->blocks.len; i-- > 0 && !err;)
		err = plan_copy(unwinder, stack, 0, i);
	return err;
}

/* ... and first. */
static int plan_second_copy(struct unwinder *unwinder, struct thread_stack *stack)
{
	int err = 0;

	stack->work.first_copies[1] = unwinder->segments.len;
	for (size_t i = 0; i < stack->blocks.len && !err; i++)
		err = plan_copy(unwinder, stack, 1, i);
	return err;
}

/*
 * What changes most, the top of the data stack, lies next to the thread state. Where frames show whether they
 * have returned, nothing of the thread is read before its state: copying what it is about to write to makes it
 * wait, and it would be met too often where it calls a lot.
 */
static int plan_stack(struct unwinder *unwinder, struct thread_stack *stack)
{
	int err = place_copies(stack);

	if (stack->work.light)
		return err ?: plan_second_copy(unwinder, stack) ?: plan_state(unwinder, stack) ?:
		       plan_idents(unwinder, stack);
	if (frames_show_life(&unwinder->target->offsets))
		return err ?: plan_second_copy(unwinder, stack) ?: plan_state(unwinder, stack) ?:
		       plan_idents(unwinder, stack) ?: plan_first_copy(unwinder, stack);
	return err ?: plan_first_copy(unwinder, stack) ?: plan_state(unwinder, stack) ?:
	       plan_idents(unwinder, stack) ?: plan_second_copy(unwinder, stack);
}

/* The generation first and last: identities read in between hold for it only if it is the same. */
static int plan_generations(struct unwinder *unwinder)
{
	int err = 0;

	for (size_t i = 0; i < unwinder->interps.len && !err; i++) {
		struct unwind_interp *interp = &unwinder->interps.items[i];

		err = add_segment(unwinder, interp->address + unwinder->target->layout.in_generation,
				  &interp->generation_before, 8);
	}
	return err;
}

static int plan_interps(struct unwinder *unwinder)
{
	int err = 0;

	for (size_t i = 0; i < unwinder->interps.len && !err; i++) {
		struct unwind_interp *interp = &unwinder->interps.items[i];

		interp->segment = unwinder->segments.len;
		err = add_segment(unwinder, interp->address + unwinder->interp_first, interp->bytes,
				  unwinder->interp_len);
	}
	for (size_t i = 0; i < unwinder->gils.len && unwinder->want_gils && !err; i++) {
		struct unwind_gil *gil = &unwinder->gils.items[i];

		gil->segment = unwinder->segments.len;
		err = add_segment(unwinder, gil->address, gil->bytes, GIL_BYTES);
	}
	return err;
}

static void take_interps(struct unwinder *unwinder)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	uint32_t first = unwinder->interp_first;

	for (size_t i = 0; i < unwinder->interps.len; i++) {
		struct unwind_interp *interp = &unwinder->interps.items[i];

		interp->readable = unwinder->interp_len &&
				   unwinder->segments.items[interp->segment].got == unwinder->interp_len;
		if (!interp->readable)
			continue;
		interp->threads_head = load_u64(interp->bytes + layout->in_threads_head - first);
		interp->collecting = layout->in_gc_collecting &&
				     load_u32(interp->bytes + layout->in_gc_collecting - first);
		interp->generation =
			layout->in_generation ? load_u64(interp->bytes + layout->in_generation - first) : 0;
	}
	for (size_t i = 0; i < unwinder->gils.len; i++) {
		struct unwind_gil *gil = &unwinder->gils.items[i];
		bool whole = unwinder->want_gils &&
			     unwinder->segments.items[gil->segment].got == GIL_BYTES;

		gil->holder = whole && load_u32(gil->bytes + GIL_LOCKED) == 1
				      ? load_u64(gil->bytes + GIL_LAST_HOLDER)
				      : 0;
	}
}

/* How much of each region both copies have. */
static void take_copies(const struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct remote_segment *segments = unwinder->segments.items;
	size_t count = stack->blocks.len;

	for (size_t i = 0; i < stack->regions.len; i++) {
		struct unwind_region *region = &stack->regions.items[i];
		size_t before, got;

		region->got = 0;
		if (region->skip)
			continue;
		before = region->offset - stack->blocks.items[region->block].offset;
		got = segments[stack->work.first_copies[1] + region->block].got;

		if (!stack->work.light)
			got = min_u64(got,
				      segments[stack->work.first_copies[0] + count - 1 - region->block].got);
		region->got = got > before ? min_u64(got - before, region->len) : 0;
	}
	for (size_t i = 0; i < stack->idents.len; i++)
		stack->idents.items[i].got = segments[stack->idents.items[i].first_segment].got;
}

/* --- following the chain in the copies --- */

static py_addr base_of(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	uint16_t offset = unwinder->target->layout.ts_base_frame;

	return offset == PBP_NONE ? 0 : stack->thread.tstate + offset;
}

/* The region whose copies hold `len` bytes at `address`; NULL. *hint: the chunk to try first. */
static struct unwind_region *find_region(const struct thread_stack *stack, py_addr address, size_t len,
					 size_t *hint)
{
	const uint64_t *single;
	struct unwind_region *region;

	for (size_t tried = 0; tried < stack->chunks; tried++) {
		size_t i = *hint + tried < stack->chunks ? *hint + tried : *hint + tried - stack->chunks;

		region = &stack->regions.items[i];
		if (address - region->address >= region->got || region->got - (address - region->address) < len)
			continue;
		*hint = i;
		return region;
	}
	single = hmap__get(&stack->singles, address);
	region = single ? &stack->regions.items[*single] : NULL;
	return region && region->got >= len ? region : NULL;
}

enum walk_end { WALK_HELD, WALK_MISSED, WALK_TORN, WALK_GONE, WALK_UNREADABLE };

/* pbp_frame.flags during a walk */
#define FRAME_CHANGED (1u << 31) /* the frame is not the same in both copies */

static int note_frame(struct thread_stack *stack, py_addr address, const struct frame_view *view, uint32_t flags)
{
	struct pbp_frame frame = {.code = view->code, .instr = view->instr, .flags = flags};

	return vec__push(&stack->frames, frame) ?: vec__push(&stack->addresses, address);
}

static bool same_call(const struct frame_view *a, const struct frame_view *b)
{
	return a->previous == b->previous && a->owner == b->owner && (a->other || a->code == b->code);
}

/* A step of a walk in the two copies. */
struct step {
	struct unwind_region *region;
	const uint8_t *bytes; /* of the frame in the second copy */
	struct frame_view before, after;
};

static bool take_step(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, size_t *hint,
		      struct step *step)
{
	const struct pbp_target *layout = &unwinder->target->layout;

	step->region = find_region(stack, at, layout->fr_bytes, hint);
	if (!step->region)
		return false;
	step->bytes = stack->copies.items + step->region->offset + (at - step->region->address);
	step->after = view_frame(layout, step->bytes);
	step->before = stack->work.light ? step->after : view_frame(layout, step->bytes + stack->copy_bytes);
	return true;
}

/* Is there a frame in the second copy that has not returned? Entry markers never lie in the data stack. */
static bool is_live(const struct unwinder *unwinder, const struct thread_stack *stack, const struct step *step,
		    bool is_caller)
{
	if (step->after.other)
		return step->region >= stack->regions.items + stack->chunks;
	return frame_is_live(&unwinder->target->offsets, &step->after, step->bytes, is_caller);
}

/*
 * Is the frame the same call in both copies, which no other one has replaced meanwhile? The equality alone could
 * be that of bytes which an earlier call left behind.
 */
static bool is_stable(const struct unwinder *unwinder, const struct thread_stack *stack, const struct step *step,
		      bool is_caller)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;

	if (!same_call(&step->before, &step->after))
		return false;
	return !frames_show_life(offsets) ||
	       ((stack->work.light ||
		 frame_is_live(offsets, &step->before, step->bytes + stack->copy_bytes, is_caller)) &&
		is_live(unwinder, stack, step, is_caller));
}

static py_addr marked_frame(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	return load_u64(stack->state + unwinder->target->offsets.thread_last_profiled);
}

/*
 * Where the marked frame is in the last stack: the interpreter has moved the mark once for each frame that has
 * returned since. SIZE_MAX: it does not add up; another profiler may have written it.
 */
static size_t find_marked(const struct unwinder *unwinder, const struct thread_stack *stack)
{
	uint64_t seq = load_u64(stack->state + unwinder->target->offsets.thread_last_profiled_seq);
	uint64_t index = stack->marker.index + (seq - stack->marker.seq);
	py_addr frame = marked_frame(unwinder, stack);

	return frame && index < stack->last_addresses.len && stack->last_addresses.items[index] == frame ? index
												     : SIZE_MAX;
}

/* The frame at `at` is the marked one and has been noted: all its callers are as they were. */
static enum walk_end append_last(struct thread_stack *stack, py_addr at)
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

/*
 * Everything from `at` to the base; *missing is the frame that no copy has. With `strict` every frame has to be
 * the same in both copies; else the second copy is followed, and what differs is marked.
 */
static enum walk_end walk(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, bool strict,
			  py_addr *missing)
{
	py_addr marked = stack->work.marked ? marked_frame(unwinder, stack) : 0;
	py_addr base = base_of(unwinder, stack);
	/* The last link of a whole chain: from 3.12 on a marker, with a sentinel behind it from 3.15 on. */
	bool has_markers = unwinder->target->layout.fr_first_other_owner, ended = !at || !has_markers;
	struct cycle cycle = {0};
	struct step step;
	size_t hint = 0;

	stack->frames.len = stack->addresses.len = 0;
	stack->truncated = false;
	for (size_t links = 0; at && at != base; links++) {
		uint32_t flags = 0;

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
		if (!is_stable(unwinder, stack, &step, stack->frames.len)) {
			if (strict || !is_live(unwinder, stack, &step, stack->frames.len))
				return WALK_TORN;
			flags = FRAME_CHANGED;
		} else if (step.before.instr != step.after.instr) {
			flags = PBP_FRAME_MOVED;
		}
		/* In one chunk callers lie below: a chain that climbs is made of other things than frames. */
		if (step.after.previous - step.region->address < step.region->size && step.after.previous >= at)
			return WALK_TORN;
		step.region->used = max_u64(step.region->used, at - step.region->address +
								       unwinder->target->layout.fr_bytes);
		if (step.after.other) {
			if (stack->frames.len)
				stack->frames.items[stack->frames.len - 1].flags |= PBP_FRAME_C_BELOW;
		} else if (note_frame(stack, at, &step.after, flags)) {
			return WALK_UNREADABLE;
		}
		if (marked && at == marked)
			return append_last(stack, at);
		at = step.after.previous;
		ended = !base && (step.after.other || !has_markers);
	}
	return ended || stack->truncated || (base && at == base) ? WALK_HELD : WALK_TORN;
}

/* The first code object met tells where the type of all is; py/verify.c may have met one at the attach. */
static bool is_code_type(struct py_target *target, py_addr type)
{
	char name[sizeof("code")] = "";
	py_addr name_addr = 0;

	if (target->code_type)
		return type == target->code_type;
	if (remote__read(&target->remote, type + target->offsets.type_name, &name_addr, sizeof(name_addr)) ||
	    remote__read(&target->remote, name_addr, name, sizeof(name)) || memcmp(name, "code", sizeof(name)))
		return false;
	target->code_type = type;
	return true;
}

/* Has a code object been met at this address, or does one lie there now? */
static bool is_code(struct unwinder *unwinder, py_addr code)
{
	struct py_target *target = unwinder->target;
	uint64_t type = 0, units = 0;
	struct remote_segment segments[] = {
		{.addr = code + target->offsets.object_type, .dest = &type, .len = sizeof(type)},
		{.addr = code + target->offsets.var_object_size, .dest = &units, .len = sizeof(units)},
	};

	if (hmap__get(&unwinder->codes, code))
		return true;
	if (remote__read_batch(&target->remote, segments, ARRAY_SIZE(segments)) ||
	    segments[0].got < sizeof(type) || !is_code_type(target, type) || segments[1].got < sizeof(units))
		return false;
	if (unwinder->codes.len >= KNOWN_CODES_MAX)
		hmap__clear(&unwinder->codes);
	hmap__set(&unwinder->codes, code, units);
	return true;
}

/*
 * Does the instruction pointer of a frame that changed lie in its code? The two are written one after the other.
 * Free-threaded builds keep copies of the bytecode elsewhere.
 */
static bool instr_fits(const struct unwinder *unwinder, const struct pbp_frame *frame)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;
	const uint64_t *units = hmap__get(&unwinder->codes, frame->code);

	if (offsets->code_adaptive == PY_ABSENT || unwinder->target->layout.fr_instr_is_index ||
	    offsets->code_co_tlbc != PY_ABSENT)
		return true;
	/* Before 3.13 a frame that has not started points one unit before its code. */
	return units && frame->instr + 2 - (frame->code + offsets->code_adaptive) <= 2 * *units + 2;
}

/* Is there a Python frame in the second copy that has not returned? Other bytes may look like one. */
static bool is_frame(struct unwinder *unwinder, struct thread_stack *stack, py_addr at, size_t *hint,
		     struct step *step)
{
	return take_step(unwinder, stack, at, hint, step) && !step->after.other &&
	       is_live(unwinder, stack, step, false) && is_code(unwinder, step->after.code);
}

/* A frame in the second copy that was called from `caller`; 0. */
static py_addr find_callee(struct unwinder *unwinder, struct thread_stack *stack, py_addr caller)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	struct step step;
	size_t hint = 0;
	struct unwind_region *region = find_region(stack, caller, layout->fr_bytes, &hint);
	py_addr from = caller + layout->fr_bytes, end;

	end = region ? min_u64(region->address + region->got, from + CALLEE_BYTES) : 0;
	for (py_addr at = from; region && at + layout->fr_bytes <= end; at += 8) {
		const uint8_t *bytes = stack->copies.items + region->offset + (at - region->address);

		if (load_u64(bytes + layout->fr_previous) == caller &&
		    is_frame(unwinder, stack, at, &hint, &step))
			return at;
	}
	for (size_t i = stack->chunks; i < stack->regions.len; i++) {
		py_addr at = stack->regions.items[i].address;

		if (take_step(unwinder, stack, at, &hint, &step) && step.after.previous == caller &&
		    is_frame(unwinder, stack, at, &hint, &step))
			return at;
	}
	return 0;
}

/*
 * A frame to begin from: what was the current frame some 0.5 us before; if it has returned, its caller, and so on;
 * if something else lies there now, a frame of the last stack that is there still. 0: there is none.
 */
static py_addr find_start(struct unwinder *unwinder, struct thread_stack *stack)
{
	py_addr at = stack->current_frame, base = base_of(unwinder, stack);
	struct step step;
	size_t hint = 0;

	for (int i = 0; i < RETURNS_MAX && at && at != base; i++) {
		if (is_frame(unwinder, stack, at, &hint, &step))
			return at;
		/*
		 * One that has returned still tells who called it, as an entry marker does; what is no frame any
		 * more tells nothing.
		 */
		if (!step.region || step.after.other != is_live(unwinder, stack, &step, false))
			break;
		at = step.after.previous;
	}
	for (size_t i = 0; i < stack->last_addresses.len; i++)
		if (is_frame(unwinder, stack, stack->last_addresses.items[i], &hint, &step))
			return stack->last_addresses.items[i];
	return 0;
}

/*
 * The stack of the second copy, where frames show whether they have returned. A copy takes some 0.1 us, enough
 * for its lower part to be of another stack than its upper part, so what differs from the other copy stands
 * for a call only if that call is known (prove_calls).
 */
static enum walk_end walk_second(struct unwinder *unwinder, struct thread_stack *stack, py_addr *missing)
{
	py_addr at = stack->current_frame, base = base_of(unwinder, stack), callee;
	struct step step;
	size_t hint = 0;

	if (!at || at == base)
		return walk(unwinder, stack, at, false, missing);
	if (!take_step(unwinder, stack, at, &hint, &step)) {
		*missing = at;
		return WALK_MISSED;
	}
	at = find_start(unwinder, stack);
	if (!at)
		return WALK_TORN;
	for (int i = 0; i < RETURNS_MAX && (callee = find_callee(unwinder, stack, at)); i++)
		at = callee;
	return walk(unwinder, stack, at, false, missing);
}

/* What the thread state says, and where its chain begins. */
static enum walk_end take_state(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	const struct remote_segment *segment = &unwinder->segments.items[stack->work.state_segment];
	const struct unwind_interp *interp = find_interp(unwinder, stack->thread.interp);
	const uint8_t *state = stack->state;

	if (segment->got < segment->len || load_u64(state + layout->ts_interp) != stack->thread.interp ||
	    load_u64(state + layout->ts_thread_id) != stack->thread.thread_id)
		return WALK_GONE;
	stack->current_frame = load_u64(state + layout->ts_frame);
	if (layout->cframe_frame != PBP_NONE) {
		py_addr cframe = stack->current_frame;

		if (cframe != stack->cframe) {
			stack->cframe = cframe;
			return WALK_TORN;
		}
		if (cframe && segment[1].got < 8)
			return WALK_UNREADABLE;
		stack->current_frame = cframe ? stack->work.hop : 0;
	}
	stack->flags = 0;
	if (layout->ts_attached != PBP_NONE &&
	    (load_u32(state + layout->ts_attached) & layout->ts_attached_mask) == layout->ts_attached_want)
		stack->flags |= PBP_SAMPLE_ATTACHED;
	if (layout->ts_exception != PBP_NONE && load_u64(state + layout->ts_exception))
		stack->flags |= PBP_SAMPLE_RAISING;
	if (interp && interp->readable && interp->collecting)
		stack->flags |= PBP_SAMPLE_GC;
	stack->generation = interp && interp->readable ? interp->generation : 0;
	return WALK_HELD;
}

/* --- making a prediction --- */

static int index_singles(struct thread_stack *stack)
{
	int err = 0;

	hmap__clear(&stack->singles);
	stack->sorted = false;
	for (size_t i = stack->chunks; i < stack->regions.len && !err; i++)
		err = hmap__set(&stack->singles, stack->regions.items[i].address, i);
	return err;
}

static const struct unwind_region *known_chunk(const struct thread_stack *stack, py_addr address)
{
	for (size_t i = 0; i < stack->chunks; i++)
		if (stack->regions.items[i].address == address)
			return &stack->regions.items[i];
	return NULL;
}

/* The chunks as they are linked now, newest first; those that are known keep what is known of them. */
static int find_chunks(struct unwinder *unwinder, struct thread_stack *stack)
{
	uint32_t at_offset = unwinder->target->offsets.thread_datastack_chunk;
	VEC(struct unwind_region) found = {0};
	py_addr at = at_offset == PY_ABSENT ? 0 : load_u64(stack->state + at_offset);
	int err = 0;

	while (at && !err && found.len < CHUNKS_MAX) {
		const struct unwind_region *known = known_chunk(stack, at);
		struct unwind_region region = {.address = at, .len = CHUNK_DATA};
		uint8_t header[CHUNK_DATA];
		uint64_t size;

		err = page_cache__read(&unwinder->pages, &unwinder->target->remote, at, header, sizeof(header));
		if (err)
			break;
		size = load_u64(header + CHUNK_SIZE);
		if (size < CHUNK_DATA || size > CHUNK_BYTES_MAX)
			break;
		region.size = size;
		if (known && known->size == size)
			region = *known;
		if (found.len)
			region.len = max_u64(region.len,
					     min_u64(size, CHUNK_DATA + min_u64(load_u64(header + CHUNK_TOP), size) * 8));
		region.got = 0;
		err = vec__push(&found, region);
		at = load_u64(header + CHUNK_PREVIOUS);
	}
	if (err && err != -EFAULT) {
		vec__free(&found);
		return err;
	}
	for (size_t i = stack->chunks; i < stack->regions.len; i++)
		if (vec__push(&found, stack->regions.items[i]))
			break;
	stack->chunks = found.len - (stack->regions.len - stack->chunks);
	vec__free(&stack->regions);
	stack->regions.items = found.items;
	stack->regions.len = found.len;
	stack->regions.cap = found.cap;
	return index_singles(stack);
}

static bool extend_chunk(struct thread_stack *stack, py_addr address, size_t bytes)
{
	for (size_t i = 0; i < stack->chunks; i++) {
		struct unwind_region *region = &stack->regions.items[i];
		size_t offset = address - region->address;

		if (offset >= region->size || region->size - offset < bytes)
			continue;
		region->len = max_u64(region->len, with_slack(region, offset + bytes));
		return true;
	}
	return false;
}

/* Let the next reading cover the frame at `address`. *looked: the chunks have been looked up already. */
static int cover(struct unwinder *unwinder, struct thread_stack *stack, py_addr address, bool *looked)
{
	size_t bytes = unwinder->target->layout.fr_bytes;
	struct unwind_region region = {.address = address, .size = bytes, .len = bytes, .used = bytes};
	int err = 0;

	if (extend_chunk(stack, address, bytes))
		return 0;
	if (!*looked) {
		*looked = true;
		err = find_chunks(unwinder, stack);
		if (err || extend_chunk(stack, address, bytes))
			return err;
	}
	if (hmap__get(&stack->singles, address))
		return 0;
	if (stack->regions.len - stack->chunks >= SINGLES_MAX)
		return -E2BIG;
	return vec__push(&stack->regions, region)
		       ?: hmap__set(&stack->singles, address, stack->regions.len - 1);
}

/*
 * Follow the chain from the frame that the copies lack, by reads of its own where it must, and have all that
 * it needs covered. What is found is a prediction and no more. 0 when there is something new to read.
 */
static int learn(struct unwinder *unwinder, struct thread_stack *stack, py_addr at)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	py_addr base = base_of(unwinder, stack);
	uint8_t bytes[PBP_FRAME_BYTES];
	struct cycle cycle = {0};
	bool looked = false;
	size_t hint = 0, found = 0;
	int err = 0;

	page_cache__forget(&unwinder->pages);
	while (at && at != base && found < UNWIND_FRAMES_MAX && !has_cycled(&cycle, at)) {
		const struct unwind_region *region = find_region(stack, at, layout->fr_bytes, &hint);
		const uint8_t *frame = bytes;

		if (region) {
			frame = stack->copies.items + region->offset + (at - region->address);
		} else {
			err = page_cache__read(&unwinder->pages, &unwinder->target->remote, at, bytes,
					       min_u64(layout->fr_bytes, sizeof(bytes))) ?:
			      cover(unwinder, stack, at, &looked);
			if (err)
				break;
			found++;
		}
		at = view_frame(layout, frame).previous;
	}
	return found ? 0 : err ?: -EFAULT;
}

static void trim(struct thread_stack *stack)
{
	size_t kept = 0, chunks = 0, idents = 0;

	for (size_t i = 0; i < stack->regions.len; i++) {
		struct unwind_region region = stack->regions.items[i];

		if (!region.used)
			continue;
		region.len = i < stack->chunks ? min_u64(region.len, with_slack(&region, region.used)) : region.len;
		region.used = 0;
		chunks += i < stack->chunks;
		stack->regions.items[kept++] = region;
	}
	stack->regions.len = kept;
	stack->chunks = chunks;
	index_singles(stack);
	for (size_t i = 0; i < stack->idents.len; i++) {
		if (!stack->idents.items[i].used)
			continue;
		stack->idents.items[idents] = stack->idents.items[i];
		stack->idents.items[idents++].used = false;
	}
	stack->idents.len = idents;
}

/* --- identities --- */

static uint32_t stamp_of(const struct unwind_interp *interp)
{
	return hmap_mix(interp->address ^ hmap_mix(interp->generation)) | 1;
}

/* They lie in the order in which the frames were met. */
static struct unwind_ident *find_ident(struct thread_stack *stack, py_addr code)
{
	for (size_t tried = 0; tried < stack->idents.len; tried++) {
		size_t i = (stack->work.ident_hint + tried) % stack->idents.len;

		if (stack->idents.items[i].code != code)
			continue;
		stack->work.ident_hint = i + 1;
		return &stack->idents.items[i];
	}
	return NULL;
}

static void remember_ident(struct unwinder *unwinder, const struct unwind_interp *interp, py_addr code,
			   uint32_t ident)
{
	if (!interp || !has_generation(unwinder) || interp->generation != interp->generation_before)
		return;
	if (unwinder->idents.len >= KNOWN_IDENTS_MAX)
		hmap__clear(&unwinder->idents);
	hmap__set(&unwinder->idents, code, (uint64_t)ident << 32 | stamp_of(interp));
}

/* The identity of a code object at the instant of the reading. False: not known yet, or there is none. */
static bool ident_of(struct unwinder *unwinder, struct thread_stack *stack, const struct unwind_interp *interp,
		     py_addr code, uint32_t *out)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	struct unwind_ident *ident = NULL;
	const uint64_t *known = interp && interp->readable && has_generation(unwinder)
					? hmap__get(&unwinder->idents, code)
					: NULL;

	*out = 0;
	if (known && (uint32_t)*known == stamp_of(interp)) {
		unwinder->stats.ident_hits++;
		*out = *known >> 32;
		return true;
	}
	ident = find_ident(stack, code);
	if (!ident) {
		if (stack->idents.len >= IDENTS_MAX ||
		    vec__push(&stack->idents, ((struct unwind_ident){.code = code, .used = true})))
			return true;
		return false;
	}
	ident->used = true;
	unwinder->stats.ident_reads++;
	if (!is_code(unwinder, code))
		return false;
	if (ident->got == min_u64(layout->co_ident_bytes, sizeof(ident->words))) {
		*out = view_ident(layout, ident->words);
		remember_ident(unwinder, interp, code, *out);
	}
	return true;
}

static bool identify(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct unwind_interp *interp = find_interp(unwinder, stack->thread.interp);
	bool whole = true;

	if (unwinder->target->layout.co_ident == PBP_NONE)
		return true;
	stack->work.ident_hint = 0;
	for (size_t i = 0; i < stack->frames.len; i++) {
		struct pbp_frame *frame = &stack->frames.items[i];

		if (i && frame->code == frame[-1].code)
			frame->ident = frame[-1].ident;
		else
			whole &= ident_of(unwinder, stack, interp, frame->code, &frame->ident);
	}
	return whole;
}

/* --- calls --- */

static uint64_t call_key(const struct pbp_frame *caller, const struct pbp_frame *callee)
{
	return hmap_mix(hmap_mix(caller->code ^ (uint64_t)caller->ident << 32) ^ caller->instr) ^
	       hmap_mix(callee->code ^ (uint64_t)callee->ident << 32);
}

/* Calls in a stack that was the same in both copies have happened: an instruction that calls a function. */
static void learn_calls(struct unwinder *unwinder, const struct thread_stack *stack)
{
	size_t count = min_u64(stack->frames.len, CALLS_LEARNED);
	const struct pbp_frame *frames = stack->frames.items;

	if (unwinder->calls.len >= CALLS_MAX)
		hmap__clear(&unwinder->calls);
	for (size_t i = 1; i < count; i++)
		if (!(frames[i].flags & PBP_FRAME_MOVED))
			hmap__set(&unwinder->calls, call_key(&frames[i], &frames[i - 1]), 1);
}

/*
 * An instruction that has called a function some times keeps the function's version, which is its code object's:
 * the inline cache of the CALL family, {u16 counter, u32 version} behind the instruction (3.12 and later,
 * Include/internal/pycore_code.h, _PyCallCache). Other instructions have other things there, so that only
 * equality says something.
 */
#define CALL_CACHE_VERSION 4 /* bytes from the instruction */

static bool caches_call(struct unwinder *unwinder, const struct pbp_frame *caller, const struct pbp_frame *callee)
{
	uint32_t version = 0;

	return unwinder->target->layout.co_ident_bytes == 4 && callee->ident &&
	       !remote__read(&unwinder->target->remote, caller->instr + CALL_CACHE_VERSION, &version, 4) &&
	       version == callee->ident;
}

static bool is_known_call(struct unwinder *unwinder, const struct pbp_frame *caller,
			  const struct pbp_frame *callee)
{
	uint64_t key = call_key(caller, callee);

	if (hmap__get(&unwinder->calls, key))
		return true;
	if (!caches_call(unwinder, caller, callee))
		return false;
	hmap__set(&unwinder->calls, key, 1);
	return true;
}

/*
 * Frames that differ in the two copies belong together if the one is known to call the other at that
 * instruction. False: they may not.
 */
static bool prove_calls(struct unwinder *unwinder, struct thread_stack *stack)
{
	struct pbp_frame *frames = stack->frames.items;
	bool callee_changed, changed = false;

	stack->moved = 0;
	for (size_t i = 0; i < stack->frames.len; i++) {
		callee_changed = changed;
		changed = frames[i].flags & FRAME_CHANGED;
		if (frames[i].flags & (FRAME_CHANGED | PBP_FRAME_MOVED) && !instr_fits(unwinder, &frames[i]))
			return false;
		frames[i].flags &= ~FRAME_CHANGED;
		if (!i) {
			frames[i].flags &= ~PBP_FRAME_MOVED; /* the leaf runs */
			continue;
		}
		if (!changed && !callee_changed && !(frames[i].flags & PBP_FRAME_MOVED))
			continue;
		if (is_known_call(unwinder, &frames[i], &frames[i - 1])) {
			frames[i].flags &= ~PBP_FRAME_MOVED;
			continue;
		}
		if (changed || callee_changed)
			return false;
		stack->moved++;
	}
	return true;
}

/* What an instruction pointer says that was not the same in both copies is not passed on. */
static void clear_moved(struct thread_stack *stack)
{
	for (size_t i = 1; i < stack->frames.len; i++)
		if (stack->frames.items[i].flags & PBP_FRAME_MOVED)
			stack->frames.items[i].instr = 0;
}

/* Of one copy alone only that is sure which was so in the last stack too, from the base on. */
static void mark_changed(struct thread_stack *stack)
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

/* --- one reading --- */

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
 * The functions of a stack are known, but a caller was moving between the two copies. The first stack that held
 * is the sample; later readings of the same stack tell the lines that are missing.
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
	err = vec__reserve(&stack->work.frames, stack->frames.len) ?:
	      vec__reserve(&stack->work.addresses, stack->frames.len);
	if (err)
		return err;
	memcpy(stack->work.frames.items, stack->frames.items, stack->frames.len * sizeof(*stack->frames.items));
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
	if (!identify(unwinder, stack))
		return;
	if (strict)
		learn_calls(unwinder, stack);
	if (!prove_calls(unwinder, stack)) {
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

static void read_below_marker(struct thread_stack *stack)
{
	for (size_t i = 0; i < stack->regions.len; i++)
		stack->regions.items[i].skip = false;
	stack->work.marked = false;
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
 * Is all that the last stack was made of as it was then, but for what its leaf is at? The bytes below the leaf are
 * those of suspended frames.
 */
static bool is_unchanged(const struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	const struct remote_segment *segments = unwinder->segments.items + stack->work.first_copies[1];
	py_addr leaf = stack->last_frames.len ? stack->last_addresses.items[0] : 0;
	struct frame_view now, then;
	size_t leaf_offset = SIZE_MAX;

	if (!stack->work.light || stack->work.marked || stack->moved || stack->truncated ||
	    stack->current_frame != leaf || !has_generation(unwinder) ||
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
	if (!same_call(&now, &then) ||
	    !frame_is_live(&unwinder->target->offsets, &now, stack->copies.items + leaf_offset, false))
		return false;
	stack->last_frames.items[0].instr = now.instr;
	return true;
}

/* By both copies where they agree; *strict. */
static enum walk_end follow(struct unwinder *unwinder, struct thread_stack *stack, bool *strict, py_addr *missing)
{
	enum walk_end end;

	*strict = !stack->work.light;
	if (stack->work.marked && find_marked(unwinder, stack) == SIZE_MAX)
		return WALK_TORN;
	if (stack->work.light) {
		end = walk_second(unwinder, stack, missing);
		mark_changed(stack);
		return end;
	}
	end = walk(unwinder, stack, stack->current_frame, true, missing);
	if (end != WALK_TORN || !frames_show_life(&unwinder->target->offsets))
		return end;
	*strict = false;
	return walk_second(unwinder, stack, missing);
}

static void judge(struct unwinder *unwinder, struct thread_stack *stack, bool slow)
{
	bool strict = true;
	py_addr missing = 0;
	enum walk_end end;

	end = take_state(unwinder, stack);
	if (end == WALK_HELD && !slow && is_unchanged(unwinder, stack)) {
		keep_last(stack); /* and back again: what was last is what is now */
		stack->same = true;
		finish(stack, UNWIND_OK);
		return;
	}
	take_copies(unwinder, stack);
	if (end == WALK_HELD)
		end = follow(unwinder, stack, &strict, &missing);
	switch (end) {
	case WALK_HELD:
		if (!slow)
			judge_held(unwinder, stack, strict);
		break;
	case WALK_MISSED:
		stack->work.learned = true;
		if (learn(unwinder, stack, missing))
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
		read_below_marker(stack);
	if (!stack->work.done && stack->work.held && (!count_moved(stack) || stack->work.tries++ == MOVED_TRIES))
		take_held(unwinder, stack);
}

/*
 * Did the call take so much longer than usual that this process or the target was interrupted in the middle? Then
 * two copies may agree by chance; less of a danger where frames show whether they have returned.
 */
static bool was_slow(struct unwinder *unwinder, uint64_t ns)
{
	bool shows_life = frames_show_life(&unwinder->target->offsets);
	uint64_t bytes = 0, expected, usual, ratio;
	bool slow;

	for (size_t i = 0; i < unwinder->segments.len; i++)
		bytes += unwinder->segments.items[i].len;
	expected = 500 + 200 * unwinder->segments.len + bytes / 4;
	usual = expected * unwinder->slowness / 256;
	ratio = ns * 256 / expected;
	slow = ns > (shows_life ? 4 * usual + 4000 : 3 * usual / 2 + 200);
	unwinder->slowness +=
		((int64_t)min_u64(ratio, 2 * unwinder->slowness) - (int64_t)unwinder->slowness) / 16;
	unwinder->slowness = max_u64(unwinder->slowness, 64);
	unwinder->stats.slow += slow;
	return slow;
}

static void forget_prediction(struct thread_stack *stack)
{
	stack->regions.len = stack->chunks = 0;
	stack->sorted = false;
	hmap__clear(&stack->singles);
}

static bool wants_generations(const struct unwinder *unwinder, struct thread_stack *const *stacks, size_t count)
{
	if (!has_generation(unwinder))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!stacks[i]->work.done && stacks[i]->idents.len)
			return true;
	return false;
}

static int read_once(struct unwinder *unwinder, struct thread_stack *const *stacks, size_t count)
{
	uint64_t start;
	bool slow;
	int err = 0;

	unwinder->segments.len = 0;
	if (wants_generations(unwinder, stacks, count))
		err = plan_generations(unwinder);
	for (size_t i = 0; i < count && !err; i++) {
		if (stacks[i]->work.done)
			continue;
		err = plan_stack(unwinder, stacks[i]);
		if (err == -E2BIG) {
			forget_prediction(stacks[i]);
			finish(stacks[i], UNWIND_UNREADABLE);
			err = 0;
		}
	}
	err = err ?: plan_interps(unwinder);
	start = now_ns();
	err = err ?: remote__read_batch(&unwinder->target->remote, unwinder->segments.items, unwinder->segments.len);
	if (err)
		return err;
	slow = was_slow(unwinder, now_ns() - start);
	take_interps(unwinder);
	for (size_t i = 0; i < count; i++)
		if (!stacks[i]->work.done)
			judge(unwinder, stacks[i], slow);
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

/* What holds a frame above the marker is read, and the newest chunk. */
static void skip_below_marker(struct thread_stack *stack)
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
 * Mark the frame that has been there for two readings, if none close to it is marked. Afterwards it must be there
 * still: a mark on a frame that had returned would move with another one.
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

static void place_marker(struct unwinder *unwinder, struct thread_stack *stack)
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

	while (marked < stack->addresses.len && stack->addresses.items[marked] != marked_frame(unwinder, stack))
		marked++;
	if (stack->marker.frame && marked < stack->addresses.len && marked <= stable + MARKER_NEAR) {
		stack->marker.frame = stack->addresses.items[marked];
		stack->marker.index = marked;
		stack->marker.seq = load_u64(stack->state + offsets->thread_last_profiled_seq);
		return;
	}
	stack->marker.frame = 0;
	/* Set already, and not by this program: another profiler is at work. */
	if (!stack->marker.ours && marked_frame(unwinder, stack))
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

static void begin(struct unwinder *unwinder, struct thread_stack *stack)
{
	if (stack->result == UNWIND_OK && stack->frames.len) {
		keep_last(stack);
		keep_copies(stack);
		stack->frames.len = stack->addresses.len = 0;
	}
	unwinder->stats.readings++;
	/* A stack that stays the same does not say what it uses. */
	if (!stack->same && ++stack->readings % TRIM_READINGS == 0)
		trim(stack);
	stack->same = false;
	stack->work.last_generation = stack->generation;
	if (has_generation(unwinder))
		stack->idents.len = 0; /* asked for again only if the generation has moved */
	stack->work.done = stack->work.held = stack->work.learned = false;
	/* One copy will do where its frames show that they are what they seem. */
	stack->work.light = frames_show_life(&unwinder->target->offsets) && stack->last_frames.len;
	stack->work.same = 0;
	stack->work.marked = stack->work.light && stack->marker.frame && stack->marker.index < stack->last_frames.len;
	if (stack->work.marked)
		skip_below_marker(stack);
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
		count_prediction(&unwinder->stats, stacks[i]);
		unwinder->stats.marked += stacks[i]->work.marked;
		read_below_marker(stacks[i]);
		if (unwinder->use_marker && stacks[i]->result == UNWIND_OK)
			place_marker(unwinder, stacks[i]);
	}
	return err;
}
