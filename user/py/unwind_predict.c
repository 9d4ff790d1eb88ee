/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the frames of a thread will lie next time: the used parts of the chunks of its data stack (CPython's
 * _PyStackChunk {previous, size, top, data[]}, 3.11 to 3.15), and frames that lie elsewhere: in generators,
 * on the C stack, and all of them before 3.11.
 */
#include "py/unwind_parts.h"

#include "base/util.h"
#include "py/frame_view.h"

#include <errno.h>

#define CHUNK_PREVIOUS	0
#define CHUNK_SIZE	8
#define CHUNK_TOP	16 /* words of data[] in use; kept up to date in all but the newest */
#define CHUNK_DATA	24
#define CHUNK_BYTES_MAX (16u << 20)
#define CHUNKS_MAX	2048
#define SINGLES_MAX UNWIND_FRAMES_MAX

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

		err = page_cache__read(&unwinder->pages, &unwinder->target->remote, at, header,
				       sizeof(header));
		if (err)
			break;
		size = load_u64(header + CHUNK_SIZE);
		if (size < CHUNK_DATA || size > CHUNK_BYTES_MAX)
			break;
		region.size = size;
		if (known && known->size == size)
			region = *known;
		if (found.len)
			region.len = max_u64(
				region.len,
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
		region->len = max_u64(region->len, unwind_with_slack(region, offset + bytes));
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
int unwind_learn(struct unwinder *unwinder, struct thread_stack *stack, py_addr at)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	py_addr base = unwind_base_of(unwinder, stack);
	uint8_t bytes[PBP_FRAME_BYTES];
	struct cycle cycle = {0};
	bool looked = false;
	size_t hint = 0, found = 0;
	int err = 0;

	page_cache__forget(&unwinder->pages);
	while (at && at != base && found < UNWIND_FRAMES_MAX && !has_cycled(&cycle, at)) {
		const struct unwind_region *region = unwind_find_region(stack, at, layout->fr_bytes, &hint);
		const uint8_t *frame = bytes;

		if (region) {
			frame = stack->copies.items + region->offset + (at - region->address);
		} else {
			err = page_cache__read(&unwinder->pages, &unwinder->target->remote, at, bytes,
					       min_u64(layout->fr_bytes, sizeof(bytes)))
				      ?: cover(unwinder, stack, at, &looked);
			if (err)
				break;
			found++;
		}
		at = view_frame(layout, frame).previous;
	}
	return found ? 0 : err ?: -EFAULT;
}

void unwind_trim(struct thread_stack *stack)
{
	size_t kept = 0, chunks = 0, idents = 0;

	for (size_t i = 0; i < stack->regions.len; i++) {
		struct unwind_region region = stack->regions.items[i];

		if (!region.used)
			continue;
		region.len = i < stack->chunks ? min_u64(region.len, unwind_with_slack(&region, region.used))
					       : region.len;
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

void unwind_forget_prediction(struct thread_stack *stack)
{
	stack->regions.len = stack->chunks = 0;
	stack->sorted = false;
	hmap__clear(&stack->singles);
}
