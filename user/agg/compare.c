/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each side's frames are mapped to functions of both, its nodes to nodes of both; then the rows are counted
 * for each side as in profile.c.
 */
#include "agg/compare.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1u << 23) /* as many as two profiles have */

/* A side while it is laid over the other. */
struct side {
	struct compare *compare;
	const struct profile *profile;
	int number;
	uint32_t *frames; /* of the profile -> of both */
	uint32_t *nodes;  /* the same */
};

/* Of two versions of Python a file of the library is the same one: "python3.11" is "python3.*" in the key. */
static void add_file_key(struct buf *key, const char *file)
{
	static const char version[] = "python3.";
	const char *at;

	while ((at = strstr(file, version))) {
		buf__add(key, file, at + strlen(version) - file);
		buf__addc(key, '*');
		file = at + strlen(version);
		while (isdigit((unsigned char)*file))
			file++;
	}
	buf__adds(key, file);
}

/* What makes two functions the same, as a string of both. UINT32_MAX: out of memory. */
static uint32_t key_of(struct side *side, const struct frame *frame)
{
	const struct strtab *strings = side->profile->strings;
	struct buf key = {0};
	uint32_t id;

	buf__addf(&key, "%d ", frame->kind);
	buf__adds(&key, strtab__get(strings, frame->function));
	buf__addc(&key, '\n');
	add_file_key(&key, strtab__get(strings, frame->file));
	id = key.err ? UINT32_MAX : strtab__add(side->compare->both.strings, key.data, key.len);
	buf__free(&key);
	return id;
}

static uint32_t copy_text(struct side *side, uint32_t id)
{
	const struct strtab *strings = side->profile->strings;

	return strtab__add(side->compare->both.strings, strtab__get(strings, id), strtab__len(strings, id));
}

/* The new side comes first, so that its files and lines are shown. */
static int map_frame(struct side *side, struct hmap *known, uint32_t id)
{
	const struct frame *frame = frame_table__get(&side->profile->frames, id);
	struct frame function = {.kind = frame->kind, .wait = frame->wait, .line = frame->first_line};
	uint32_t key = key_of(side, frame);
	const uint64_t *same = hmap__get(known, key);

	if (same) {
		side->frames[id] = (uint32_t)*same;
		return 0;
	}
	function.function = copy_text(side, frame->function);
	function.file = copy_text(side, frame->file);
	function.first_line = function.line;
	side->frames[id] = frame_table__add(&side->compare->both.frames, &function);
	if (key == UINT32_MAX || function.function == UINT32_MAX || function.file == UINT32_MAX ||
	    side->frames[id] == UINT32_MAX)
		return -ENOMEM;
	return hmap__set(known, key, side->frames[id]);
}

static int add_weight(struct side *side, uint32_t node, uint64_t weight)
{
	struct compare *compare = side->compare;

	for (int i = 0; i < COMPARE_SIDES; i++)
		while (compare->self[i].len <= node)
			if (vec__push(&compare->self[i], 0))
				return -ENOMEM;
	compare->self[side->number].items[node] += weight;
	if (weight)
		trie__add(&compare->both.trie, node,
			  1 + (uint64_t)((double)weight / compare->total[side->number] * COMPARE_WHOLE));
	return 0;
}

static int lay_over(struct side *side, struct hmap *known)
{
	const struct trie *trie = &side->profile->trie;
	int err = 0;

	side->frames = calloc(side->profile->frames.frames.len ?: 1, sizeof(*side->frames));
	side->nodes = calloc(trie->nodes.len, sizeof(*side->nodes));
	if (!side->frames || !side->nodes)
		return -ENOMEM;
	side->compare->total[side->number] = profile__total(side->profile);
	side->compare->duration_ns[side->number] = side->profile->duration_ns;
	for (size_t id = 0; id < side->profile->frames.frames.len && !err; id++)
		err = map_frame(side, known, (uint32_t)id);
	for (size_t id = 0; id < trie->nodes.len && !err; id++) {
		const struct trie_node *node = &trie->nodes.items[id];

		if (id)
			side->nodes[id] = trie__child(&side->compare->both.trie, side->nodes[node->parent],
						      side->frames[node->frame]);
		err = side->nodes[id] == TRIE_FULL ? -ENOMEM : add_weight(side, side->nodes[id], node->self);
	}
	return err;
}

/* --- rows --- */

static void count_side(struct compare *compare, int side, const uint64_t *totals, const uint32_t *wait_nodes,
		       struct trie_walk *walk, uint32_t *on)
{
	const struct trie_node *nodes = compare->both.trie.nodes.items;

	while (trie_walk__next(walk)) {
		uint32_t frame = nodes[walk->node].frame, owner = frame;
		uint32_t wait = wait_nodes[walk->node], above = nodes[wait].parent;
		struct compare_row *rows = compare->rows.items;
		/* Who is waited for is not on the stack. */
		bool is_own = wait == TRIE_ROOT || walk->node == wait;

		if (!walk->entering) {
			on[frame] -= is_own;
			continue;
		}
		/* What a function waited for is its own, whoever it is due to. */
		if (wait != TRIE_ROOT)
			owner = nodes[above != TRIE_ROOT ? above : wait].frame;
		rows[owner].self[side] += compare->self[side].items[walk->node];
		if (is_own && on[frame]++ == 0)
			rows[frame].total[side] += totals[walk->node];
	}
}

/* Of each node of one side, an array that the caller frees. */
static uint64_t *totals_of(const struct compare *compare, int side)
{
	const struct trie *trie = &compare->both.trie;
	uint64_t *totals = calloc(trie->nodes.len, sizeof(*totals));

	for (size_t id = trie->nodes.len; totals && id-- > 1;) {
		totals[id] += compare->self[side].items[id];
		totals[trie->nodes.items[id].parent] += totals[id];
	}
	return totals;
}

static int count_rows(struct compare *compare)
{
	size_t count = compare->both.frames.frames.len;
	uint32_t *on = calloc(count ?: 1, sizeof(*on)), *wait_nodes = profile__wait_nodes(&compare->both);
	int err = on && wait_nodes ? vec__reserve(&compare->rows, count) : -ENOMEM;

	for (uint32_t id = 0; id < count && !err; id++)
		compare->rows.items[compare->rows.len++] = (struct compare_row){.frame = id};
	for (int side = 0; side < COMPARE_SIDES && !err; side++) {
		uint64_t *totals = totals_of(compare, side);
		struct trie_walk walk = {0};

		err = totals ? trie_walk__open(&walk, &compare->both.trie) : -ENOMEM;
		if (!err)
			count_side(compare, side, totals, wait_nodes, &walk, on);
		trie_walk__close(&walk);
		free(totals);
	}
	free(wait_nodes);
	free(on);
	return err;
}

static double change_of(const struct compare *compare, const struct compare_row *row, bool self)
{
	const uint64_t *weights = self ? row->self : row->total;
	double change = compare__share(compare, COMPARE_NEW, weights[COMPARE_NEW]) -
			compare__share(compare, COMPARE_BASE, weights[COMPARE_BASE]);

	return change < 0 ? -change : change;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct compare_row *a = left, *b = right;
	double self = change_of(context, b, true) - change_of(context, a, true);
	double total = change_of(context, b, false) - change_of(context, a, false);

	return (self > 0) - (self < 0) ?: (total > 0) - (total < 0)
	       ?: (a->frame > b->frame) - (a->frame < b->frame);
}

/* Waits are in the rows of those that waited. */
static void drop_empty(struct compare *compare)
{
	size_t kept = 0;

	for (size_t i = 0; i < compare->rows.len; i++) {
		const struct compare_row *row = &compare->rows.items[i];

		if ((row->total[COMPARE_BASE] || row->total[COMPARE_NEW]) &&
		    !frame_table__get(&compare->both.frames, row->frame)->wait)
			compare->rows.items[kept++] = *row;
	}
	compare->rows.len = kept;
}

int compare__init(struct compare *compare, const struct profile *base, const struct profile *new)
{
	struct side sides[] = {{.compare = compare, .profile = new, .number = COMPARE_NEW},
			       {.compare = compare, .profile = base, .number = COMPARE_BASE}};
	struct hmap known = {0};
	int err;

	*compare = (struct compare){0};
	err = profile__init(&compare->both, NODES_MAX);
	for (size_t i = 0; i < COMPARE_SIDES && !err; i++)
		err = lay_over(&sides[i], &known);
	err = err ?: count_rows(compare);
	for (size_t i = 0; i < COMPARE_SIDES; i++) {
		free(sides[i].frames);
		free(sides[i].nodes);
	}
	hmap__free(&known);
	if (err)
		return err;
	drop_empty(compare);
	if (compare->rows.len)
		qsort_r(compare->rows.items, compare->rows.len, sizeof(*compare->rows.items), compare_rows,
			compare);
	return 0;
}

void compare__free(struct compare *compare)
{
	profile__free(&compare->both);
	for (int i = 0; i < COMPARE_SIDES; i++)
		vec__free(&compare->self[i]);
	vec__free(&compare->rows);
}

double compare__share(const struct compare *compare, int side, uint64_t weight)
{
	return compare->total[side] ? 100.0 * weight / compare->total[side] : 0;
}

double compare__per_second(const struct compare *compare, int side, uint64_t weight)
{
	return compare->duration_ns[side] ? 1e3 * weight / compare->duration_ns[side] : 0;
}
