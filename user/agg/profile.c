/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The profile and its flat view. Rows are counted in one walk over the trie: a row's total grows by a node's
 * whole subtree exactly when the row enters the current path, so recursion counts a sample once.
 */
#include "agg/profile.h"

#include "base/util.h"

#include <stdlib.h>
#include <string.h>

int profile__init(struct profile *profile, uint32_t max_nodes)
{
	int err;

	*profile = (struct profile){0};
	err = strtab__new(&profile->strings);
	if (!err)
		err = trie__init(&profile->trie, max_nodes);
	if (err)
		profile__free(profile);
	return err;
}

void profile__free(struct profile *profile)
{
	if (!profile)
		return;
	trie__free(&profile->trie);
	frame_table__free(&profile->frames);
	listings__free(&profile->listings);
	strtab__free(profile->strings);
	profile->strings = NULL;
}

uint64_t profile__total(const struct profile *profile)
{
	uint64_t sum = 0;

	for (size_t id = 0; id < profile->trie.nodes.len; id++)
		sum += profile->trie.nodes.items[id].self;
	return sum;
}

uint64_t profile__value(const struct profile *profile, uint64_t weight)
{
	uint64_t unit = profile__unit(profile);

	return (weight + unit / 2) / unit;
}

static int compare_waits(const void *left, const void *right)
{
	const struct profile_wait *a = left, *b = right;

	return (b->time_ns > a->time_ns) - (b->time_ns < a->time_ns)
		       ?: (a->reason > b->reason) - (a->reason < b->reason);
}

uint32_t *profile_wait_nodes(const struct trie *trie, const struct frame_table *frames)
{
	uint32_t *waits = calloc(trie->nodes.len ?: 1, sizeof(*waits));

	for (size_t id = 1; waits && id < trie->nodes.len; id++) {
		const struct trie_node *node = &trie->nodes.items[id];

		waits[id] = waits[node->parent];
		if (!waits[id] && frame_table__get(frames, node->frame)->wait)
			waits[id] = (uint32_t)id;
	}
	return waits;
}

uint32_t *profile__wait_nodes(const struct profile *profile)
{
	return profile_wait_nodes(&profile->trie, &profile->frames);
}

int profile__waits(const struct profile *profile, struct profile_waits *out)
{
	uint32_t *wait_nodes = profile__wait_nodes(profile);
	struct hmap index = {0};
	int err = wait_nodes ? 0 : -ENOMEM;

	*out = (struct profile_waits){0};
	for (size_t id = 1; id < profile->trie.nodes.len && !err; id++) {
		const struct trie_node *nodes = profile->trie.nodes.items;
		const struct frame *frame =
			frame_table__get(&profile->frames, nodes[wait_nodes[id] ?: id].frame);
		const uint64_t *known = frame->wait ? hmap__get(&index, frame->function) : NULL;

		if (known) {
			out->items.items[*known].time_ns += nodes[id].self;
		} else if (frame->wait && nodes[id].self) {
			struct profile_wait wait = {.reason = frame->function, .time_ns = nodes[id].self};

			err = hmap__set(&index, frame->function, out->items.len)
				      ?: vec__push(&out->items, wait);
		}
	}
	free(wait_nodes);
	hmap__free(&index);
	if (out->items.len)
		qsort(out->items.items, out->items.len, sizeof(*out->items.items), compare_waits);
	return err;
}

void profile_waits__free(struct profile_waits *waits)
{
	vec__free(&waits->items);
}

int profile_groups__init(struct profile_groups *groups, const struct profile *profile, enum group_by group)
{
	size_t len = profile->frames.frames.len;

	*groups = (struct profile_groups){0};
	groups->of_frame = calloc(len ?: 1, sizeof(*groups->of_frame));
	if (!groups->of_frame)
		return -ENOMEM;
	for (size_t id = 0; id < len; id++) {
		struct frame frame = *frame_table__get(&profile->frames, (uint32_t)id);

		if (group == GROUP_FUNCTION) {
			frame.line = frame.first_line;
			frame.approximate = false;
		}
		frame.first_line = 0;
		groups->of_frame[id] = frame_table__add(&groups->groups, &frame);
		if (groups->of_frame[id] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

void profile_groups__free(struct profile_groups *groups)
{
	if (!groups)
		return;
	frame_table__free(&groups->groups);
	free(groups->of_frame);
	groups->of_frame = NULL;
}

/* One row for each group, nothing counted yet. */
static int make_rows(const struct frame_table *groups, struct profile_rows *out)
{
	int err = vec__reserve(&out->rows, groups->frames.len);

	for (size_t id = 0; !err && id < groups->frames.len; id++) {
		const struct frame *frame = frame_table__get(groups, (uint32_t)id);

		out->rows.items[out->rows.len++] = (struct profile_row){
			.function = frame->function,
			.file = frame->file,
			.line = frame->line,
			.approximate = frame->approximate,
			.kind = frame->kind,
		};
	}
	return err;
}

/* Of each row, the self weight by what was waited for: row << 32 | frame -> weight. */
static int add_wait(struct hmap *waits, uint32_t row, uint32_t frame, uint64_t weight)
{
	uint64_t key = (uint64_t)row << 32 | frame, *known = hmap__get(waits, key);

	if (!known)
		return hmap__set(waits, key, weight);
	*known += weight;
	return 0;
}

/* What most of a row's self weight is, of the waits and the time on the CPU. */
static void choose_waits(const struct hmap *waits, const struct frame_table *frames, struct profile_rows *out)
{
	uint64_t *most = calloc(out->rows.len ?: 1, sizeof(*most)),
		 * on_cpu = calloc(out->rows.len ?: 1, sizeof(*on_cpu));
	const struct hmap_slot *slot;

	for (size_t row = 0; most && on_cpu && row < out->rows.len; row++)
		on_cpu[row] = out->rows.items[row].self;
	for (size_t i = 0; most && on_cpu && (slot = hmap__next(waits, &i));) {
		uint32_t row = slot->key >> 32, frame = (uint32_t)slot->key;

		on_cpu[row] -= slot->value;
		/* The smaller id of two equal ones: the order of the slots is a random one. */
		if (slot->value > most[row] ||
		    (slot->value == most[row] &&
		     frame_table__get(frames, frame)->function < out->rows.items[row].wait)) {
			most[row] = slot->value;
			out->rows.items[row].wait = frame_table__get(frames, frame)->function;
		}
	}
	for (size_t row = 0; most && on_cpu && row < out->rows.len; row++)
		if (on_cpu[row] >= most[row])
			out->rows.items[row].wait = 0;
	free(most);
	free(on_cpu);
}

/*
 * The row that a node's self weight is counted in: a wait, and what stands below it, belongs to the frame
 * that it was in.
 */
static uint32_t row_of(const struct profile *profile, const uint32_t *row_of_frame, uint32_t wait,
		       uint32_t id)
{
	const struct trie_node *nodes = profile->trie.nodes.items;
	uint32_t parent = nodes[wait].parent;

	return row_of_frame[nodes[!wait ? id : parent != TRIE_ROOT ? parent : wait].frame];
}

static int count_rows(const struct profile *profile, const uint32_t *row_of_frame, struct profile_rows *out)
{
	const struct trie *trie = &profile->trie;
	uint32_t *on_path = calloc(out->rows.len ?: 1, sizeof(*on_path));
	uint32_t *wait_nodes = profile__wait_nodes(profile);
	uint64_t *totals = trie__totals(trie);
	struct trie_walk walk = {0};
	struct hmap waits = {0};
	int err = on_path && totals && wait_nodes ? trie_walk__open(&walk, trie) : -ENOMEM;

	while (!err && trie_walk__next(&walk)) {
		const struct trie_node *node = &trie->nodes.items[walk.node];
		uint32_t id = row_of_frame[node->frame], wait = wait_nodes[walk.node];
		uint32_t row = row_of(profile, row_of_frame, wait, walk.node);
		/*
		 * Not what a wait is for, which is not on the stack, nor the wait, but where it is all there
		 * is.
		 */
		bool is_own = !wait || (walk.node == wait && row == id);

		if (!walk.entering) {
			on_path[id] -= is_own;
			continue;
		}
		out->rows.items[row].self += node->self;
		out->rows.items[row].waited += wait && walk.node != wait ? node->self : 0;
		if (is_own && on_path[id]++ == 0)
			out->rows.items[id].total += totals[walk.node];
		if (!is_own && row != row_of_frame[trie->nodes.items[wait].frame])
			err = add_wait(&waits, row, trie->nodes.items[wait].frame, node->self);
	}
	if (!err)
		choose_waits(&waits, &profile->frames, out);
	trie_walk__close(&walk);
	hmap__free(&waits);
	free(wait_nodes);
	free(totals);
	free(on_path);
	return err;
}

/* Frames can be known without a sample, e.g. when the trie had no room for their stack. */
static void drop_empty(struct profile_rows *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < out->rows.len; i++)
		if (out->rows.items[i].total)
			out->rows.items[kept++] = out->rows.items[i];
	out->rows.len = kept;
}

/* A total order on distinct rows, so that the same profile always gives the same report. */
static int compare_rows(const void *left, const void *right, void *strings)
{
	const struct profile_row *a = left, *b = right;

	return compare_u64(b->self, a->self) ?: compare_u64(b->total, a->total)
	       ?: strcmp(strtab__get(strings, a->function), strtab__get(strings, b->function))
	       ?: strcmp(strtab__get(strings, a->file), strtab__get(strings, b->file))
	       ?: compare_u64(a->line, b->line) ?: compare_u64(a->kind, b->kind)
	       ?: compare_u64(a->approximate, b->approximate);
}

int profile__rows(const struct profile *profile, enum group_by group, struct profile_rows *out)
{
	struct profile_groups groups;
	int err;

	*out = (struct profile_rows){0};
	err = profile_groups__init(&groups, profile, group);
	if (!err)
		err = make_rows(&groups.groups, out);
	if (!err)
		err = count_rows(profile, groups.of_frame, out);
	profile_groups__free(&groups);
	if (err) {
		profile_rows__free(out);
		return err;
	}

	drop_empty(out);
	if (out->rows.len)
		qsort_r(out->rows.items, out->rows.len, sizeof(*out->rows.items), compare_rows,
			profile->strings);
	return 0;
}

void profile_rows__free(struct profile_rows *rows)
{
	if (rows)
		vec__free(&rows->rows);
}
