/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frame table: a dense array of frames, and a hash index of chains for finding an equal one. The chains are
 * threaded through `next`, which runs parallel to `frames`.
 */
#include "agg/frame.h"

#define NO_ID UINT32_MAX

static uint64_t hash_frame(const struct frame *frame)
{
	uint64_t hash = hmap_seed();

	hash = hmap_mix(hash ^ ((uint64_t)frame->function << 32 | frame->file));
	hash = hmap_mix(hash ^ ((uint64_t)frame->line << 32 | frame->first_line));
	return hash ^ (uint64_t)frame->kind ^ (uint64_t)frame->approximate << 32 ^
	       (uint64_t)frame->wait << 33;
}

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->first_line == b->first_line && a->kind == b->kind && a->approximate == b->approximate &&
	       a->wait == b->wait;
}

uint32_t frame_table__add(struct frame_table *table, const struct frame *frame)
{
	uint64_t hash = hash_frame(frame), *head = hmap__get(&table->index, hash);
	uint32_t chain = head ? (uint32_t)*head : 0;

	for (uint32_t link = chain; link; link = table->next.items[link - 1])
		if (same_frame(&table->frames.items[link - 1], frame))
			return link - 1;

	if (table->frames.len >= NO_ID - 1)
		return NO_ID;
	/* Everything that can fail comes before the first change. */
	if (vec__reserve(&table->frames, 1) || vec__reserve(&table->next, 1))
		return NO_ID;
	if (hmap__set(&table->index, hash, table->frames.len + 1))
		return NO_ID;
	table->frames.items[table->frames.len++] = *frame;
	table->next.items[table->next.len++] = chain;
	return (uint32_t)table->frames.len - 1;
}

const struct frame *frame_table__get(const struct frame_table *table, uint32_t id)
{
	return &table->frames.items[id];
}

void frame_table__free(struct frame_table *table)
{
	if (!table)
		return;
	vec__free(&table->frames);
	vec__free(&table->next);
	hmap__free(&table->index);
}
