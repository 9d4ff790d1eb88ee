/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a reading reads, and in which order.
 */
#include "py/unwind_parts.h"

#include "base/util.h"
#include "py/frame_view.h"

#include <errno.h>

#define SLACK_BYTES    384	   /* read beyond the last frame: the next call's */
#define COPY_BYTES_MAX (32u << 20) /* of one thread: UNWIND_FRAMES_MAX frames with some locals each */
#define JOIN_GAP       2048	   /* bytes between two single frames that are read for nothing */
#define JOIN_BYTES     65536
#define PAGE_BYTES     4096u

int unwind_add_segment(struct unwinder *unwinder, py_addr address, void *dest, size_t len)
{
	return vec__push(&unwinder->segments,
			 ((struct remote_segment){.addr = address, .dest = dest, .len = len}));
}

/* What is read ahead must not bring in a page that no frame has touched. */
size_t unwind_with_slack(const struct unwind_region *region, size_t need)
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
	if (count)
		qsort_r(stack->by_address.items, count, sizeof(uint32_t), compare_addresses,
			stack->regions.items);
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

	return unwind_add_segment(unwinder, block->address,
				  stack->copies.items + !copy * stack->copy_bytes + block->offset,
				  block->len);
}

static int plan_state(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	int err;

	stack->work.state_segment = unwinder->segments.len;
	err = unwind_add_segment(unwinder, stack->thread.tstate, stack->state, unwinder->thread_bytes);
	if (err || layout->cframe_frame == PBP_NONE)
		return err;
	stack->work.below = 0;
	return unwind_add_segment(unwinder, stack->cframe + layout->cframe_frame, stack->work.hop,
				  sizeof(stack->work.hop)) ?:
	       unwind_add_segment(unwinder, stack->cframe_below + layout->cframe_frame, &stack->work.below,
				  sizeof(stack->work.below));
}

/* The names where they were found. */
static int plan_names(struct unwinder *unwinder, struct unwind_ident *ident)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	int err = 0;

	memset(ident->names, 0, sizeof(ident->names));
	for (size_t i = 0; i < PY_IDENT_NAMES && !err; i++) {
		err = vec__push(&unwinder->segments,
				py_ident__head(layout, ident->expected.words, i, &ident->names[i]));
		if (!err && ident->expected.names[i].hash == PBP_STRING_NO_HASH)
			err = vec__push(&unwinder->segments,
					py_ident__tail(layout, ident->expected.words, i,
						       &ident->expected.names[i], &ident->names[i]));
	}
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
		err = unwind_add_segment(unwinder, ident->code + layout->co_ident, ident->words,
					 py_ident__bytes(layout));
		if (!err && ident->expected.known && py_ident__has_names(layout))
			err = plan_names(unwinder, ident);
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
 * have returned, nothing of the thread is read before its state: copying what it is about to write to makes
 * it wait, and it would be met too often where it calls a lot.
 */
int unwind_plan_stack(struct unwinder *unwinder, struct thread_stack *stack)
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

/* How much of each region both copies have. */
void unwind_take_copies(const struct unwinder *unwinder, struct thread_stack *stack)
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

/* The region whose copies hold `len` bytes at `address`; NULL. *hint: the chunk to try first. */
struct unwind_region *unwind_find_region(const struct thread_stack *stack, py_addr address, size_t len,
					 size_t *hint)
{
	const uint64_t *single;
	struct unwind_region *region;

	for (size_t tried = 0; tried < stack->chunks; tried++) {
		size_t i = *hint + tried < stack->chunks ? *hint + tried : *hint + tried - stack->chunks;

		region = &stack->regions.items[i];
		if (address - region->address >= region->got ||
		    region->got - (address - region->address) < len)
			continue;
		*hint = i;
		return region;
	}
	single = hmap__get(&stack->singles, address);
	region = single ? &stack->regions.items[*single] : NULL;
	return region && region->got >= len ? region : NULL;
}
