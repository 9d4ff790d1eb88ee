/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames are put into lines, and lines into files, each numbered as it is met; one walk over the trie counts,
 * as in profile.c. Then files and lines are put in order.
 */
#include "agg/heat.h"

#include "agg/profile.h"
#include "base/util.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* A line while it is counted. */
struct spot {
	struct heat_line line;
	uint32_t file; /* index in files */
	uint32_t on;   /* how often it is on the path of the walk */
	uint64_t most; /* self of its function */
};

struct counting {
	const struct trie *trie;
	const struct frame_table *frames;
	const struct strtab *strings;
	struct heat *heat;
	struct hmap file_of;  /* name -> index in heat->files */
	struct hmap spot_of;  /* file << 32 | line -> index in spots */
	struct hmap note_of;  /* text -> index in heat->notes */
	uint32_t *wait_of;    /* of each node: the wait that it stands below, or is; TRIE_ROOT: none */
	uint32_t *frame_spot; /* of each frame; NONE: it is no line */
	uint64_t *frame_self;
	uint32_t *file_on;
	VEC(struct spot) spots;
};

static int place_frame(struct counting *counting, uint32_t id)
{
	const struct frame *frame = frame_table__get(counting->frames, id);
	struct heat *heat = counting->heat;
	struct spot spot = {.line = {.line = frame->line, .function = frame->function}};
	uint32_t number;

	counting->frame_spot[id] = NONE;
	if (frame->kind != FRAME_PYTHON)
		return 0;
	spot.file = hmap__number(&counting->file_of, frame->file, heat->files.len);
	if (spot.file == heat->files.len && vec__push(&heat->files, (struct heat_file){.name = frame->file}))
		return -ENOMEM;
	if (spot.file == NONE)
		return -ENOMEM;
	number = hmap__number(&counting->spot_of, (uint64_t)spot.file << 32 | frame->line,
			      counting->spots.len);
	if (number == NONE || (number == counting->spots.len && vec__push(&counting->spots, spot)))
		return -ENOMEM;
	counting->spots.items[number].line.approximate |= frame->approximate;
	counting->frame_spot[id] = number;
	return 0;
}

static int place_frames(struct counting *counting)
{
	size_t count = counting->frames->frames.len;
	int err = 0;

	counting->frame_spot = calloc(count ?: 1, sizeof(*counting->frame_spot));
	counting->frame_self = calloc(count ?: 1, sizeof(*counting->frame_self));
	if (!counting->frame_spot || !counting->frame_self)
		return -ENOMEM;
	for (size_t id = 0; id < count && !err; id++)
		err = place_frame(counting, (uint32_t)id);
	counting->file_on = calloc(counting->heat->files.len ?: 1, sizeof(*counting->file_on));
	return err ?: counting->file_on ? 0 : -ENOMEM;
}

static int add_note(struct counting *counting, uint32_t frame, uint64_t self)
{
	struct heat_note note = {.text = frame_table__get(counting->frames, frame)->function};
	uint32_t number = hmap__number(&counting->note_of, note.text, counting->heat->notes.len);

	if (number == NONE ||
	    (number == counting->heat->notes.len && vec__push(&counting->heat->notes, note)))
		return -ENOMEM;
	counting->heat->notes.items[number].self += self;
	return 0;
}

/*
 * The frame whose own a node's weight is: what is waited for is of the one that waits, whoever it is due to.
 */
static uint32_t frame_of(const struct counting *counting, uint32_t id)
{
	const struct trie_node *nodes = counting->trie->nodes.items;
	uint32_t wait = counting->wait_of[id], above = nodes[wait].parent;

	if (wait == TRIE_ROOT)
		return nodes[id].frame;
	return above != TRIE_ROOT && counting->frame_spot[nodes[above].frame] != NONE ? nodes[above].frame
										      : nodes[wait].frame;
}

static int add_self(struct counting *counting, uint32_t id)
{
	const struct trie_node *node = &counting->trie->nodes.items[id];
	uint32_t frame = frame_of(counting, id), number = counting->frame_spot[frame];
	struct spot *spot;

	if (!node->self)
		return 0;
	if (number == NONE)
		return add_note(counting, frame, node->self);
	spot = &counting->spots.items[number];
	spot->line.self += node->self;
	counting->heat->files.items[spot->file].self += node->self;
	counting->frame_self[frame] += node->self;
	return 0;
}

/* On the way down and, with `entering` false, up again. */
static void pass(struct counting *counting, uint32_t frame, bool entering, uint64_t total)
{
	uint32_t number = counting->frame_spot[frame];
	struct spot *spot = number == NONE ? NULL : &counting->spots.items[number];

	if (!spot)
		return;
	if (!entering) {
		spot->on--;
		counting->file_on[spot->file]--;
		return;
	}
	if (spot->on++ == 0)
		spot->line.total += total;
	if (counting->file_on[spot->file]++ == 0)
		counting->heat->files.items[spot->file].total += total;
}

static int count(struct counting *counting)
{
	uint64_t *totals = trie__totals(counting->trie);
	struct trie_walk walk = {0};
	int err;

	counting->wait_of = profile_wait_nodes(counting->trie, counting->frames);
	err = totals && counting->wait_of ? trie_walk__open(&walk, counting->trie) : -ENOMEM;

	while (!err && trie_walk__next(&walk)) {
		const struct trie_node *node = &counting->trie->nodes.items[walk.node];

		/* Who is waited for is not on the stack. */
		if (counting->wait_of[walk.node] == TRIE_ROOT)
			pass(counting, node->frame, walk.entering, totals[walk.node]);
		if (walk.entering)
			err = add_self(counting, walk.node);
	}
	trie_walk__close(&walk);
	free(totals);
	return err;
}

/* Of several in one line, as of comprehensions and lambdas. */
static void choose_functions(struct counting *counting)
{
	for (size_t id = 0; id < counting->frames->frames.len; id++) {
		struct spot *spot = counting->frame_spot[id] == NONE
					    ? NULL
					    : &counting->spots.items[counting->frame_spot[id]];

		if (!spot || counting->frame_self[id] <= spot->most)
			continue;
		spot->most = counting->frame_self[id];
		spot->line.function = frame_table__get(counting->frames, (uint32_t)id)->function;
	}
}

/* --- order --- */

static int compare_spots(const void *left, const void *right)
{
	const struct spot *a = left, *b = right;

	return compare_u64(a->file, b->file) ?: compare_u64(a->line.line, b->line.line);
}

static int compare_files(const void *left, const void *right, void *strings)
{
	const struct heat_file *a = left, *b = right;

	return compare_u64(b->self, a->self) ?: compare_u64(b->total, a->total)
	       ?: strcmp(strtab__get(strings, a->name), strtab__get(strings, b->name));
}

static int compare_notes(const void *left, const void *right, void *strings)
{
	const struct heat_note *a = left, *b = right;

	return compare_u64(b->self, a->self)
		       ?: strcmp(strtab__get(strings, a->text), strtab__get(strings, b->text));
}

static int put_in_order(struct counting *counting)
{
	struct heat *heat = counting->heat;
	size_t kept = 0;

	if (vec__reserve(&heat->lines, counting->spots.len))
		return -ENOMEM;
	if (counting->spots.len)
		qsort(counting->spots.items, counting->spots.len, sizeof(*counting->spots.items),
		      compare_spots);
	for (size_t i = 0; i < counting->spots.len; i++) {
		const struct spot *spot = &counting->spots.items[i];
		struct heat_file *file = &heat->files.items[spot->file];

		/* Frames can be known without a sample. */
		if (!spot->line.total)
			continue;
		if (!file->line_count++)
			file->first_line = heat->lines.len;
		heat->lines.items[heat->lines.len++] = spot->line;
	}
	for (size_t i = 0; i < heat->files.len; i++)
		if (heat->files.items[i].line_count)
			heat->files.items[kept++] = heat->files.items[i];
	heat->files.len = kept;
	if (kept)
		qsort_r(heat->files.items, kept, sizeof(*heat->files.items), compare_files,
			(void *)counting->strings);
	if (heat->notes.len)
		qsort_r(heat->notes.items, heat->notes.len, sizeof(*heat->notes.items), compare_notes,
			(void *)counting->strings);
	return 0;
}

int heat__init(struct heat *heat, const struct trie *trie, const struct frame_table *frames,
	       const struct strtab *strings)
{
	struct counting counting = {.trie = trie, .frames = frames, .strings = strings, .heat = heat};
	int err;

	*heat = (struct heat){0};
	err = place_frames(&counting);
	if (!err)
		err = count(&counting);
	if (!err) {
		choose_functions(&counting);
		err = put_in_order(&counting);
	}
	hmap__free(&counting.file_of);
	hmap__free(&counting.spot_of);
	hmap__free(&counting.note_of);
	free(counting.wait_of);
	free(counting.frame_spot);
	free(counting.frame_self);
	free(counting.file_on);
	vec__free(&counting.spots);
	return err;
}

void heat__free(struct heat *heat)
{
	vec__free(&heat->files);
	vec__free(&heat->lines);
	vec__free(&heat->notes);
}
