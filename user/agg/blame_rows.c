/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See blame_rows.h.
 */
#include "agg/blame_rows.h"

#include "base/util.h"

#include <stdlib.h>

#define NONE UINT32_MAX

static int compare_keys(const void *left, const void *right)
{
	const struct blame_row *a = left, *b = right;

	return compare_u64(a->waiter, b->waiter) ?: compare_u64(a->holder, b->holder)
	       ?: compare_u64(a->state, b->state);
}

static int compare_times(const void *left, const void *right)
{
	const struct blame_row *a = left, *b = right;

	return compare_u64(b->time_ns, a->time_ns) ?: compare_keys(a, b);
}

/*
 * A node below a wait: its own frame is the state, the one above it the holder, the one above the wait the
 * waiter.
 */
static struct blame_row row_of(const struct blame_rows *rows, const struct profile *profile, uint32_t id,
			       uint32_t wait)
{
	const struct trie_node *nodes = profile->trie.nodes.items;
	const uint32_t *groups = rows->groups.of_frame;
	uint32_t above = nodes[wait].parent, parent = nodes[id].parent;

	return (struct blame_row){.waiter = above == TRIE_ROOT ? NONE : groups[nodes[above].frame],
				  .holder = parent == wait ? NONE : groups[nodes[parent].frame],
				  .state = frame_table__get(&profile->frames, nodes[id].frame)->function,
				  .time_ns = nodes[id].self};
}

static void merge(struct blame_rows *rows)
{
	struct blame_row *items = rows->rows.items;
	size_t kept = 0;

	if (!rows->rows.len)
		return;
	qsort(items, rows->rows.len, sizeof(*items), compare_keys);
	for (size_t i = 0; i < rows->rows.len; i++) {
		if (kept && !compare_keys(&items[kept - 1], &items[i]))
			items[kept - 1].time_ns += items[i].time_ns;
		else
			items[kept++] = items[i];
	}
	rows->rows.len = kept;
	qsort(items, kept, sizeof(*items), compare_times);
}

int blame_rows__init(struct blame_rows *rows, const struct profile *profile, enum group_by group)
{
	uint32_t *waits = profile__wait_nodes(profile);
	int err;

	*rows = (struct blame_rows){0};
	err = profile_groups__init(&rows->groups, profile, group) ?: waits ? 0 : -ENOMEM;
	for (size_t id = 1; id < profile->trie.nodes.len && !err; id++)
		if (waits[id] && waits[id] != id && profile->trie.nodes.items[id].self)
			err = vec__push(&rows->rows, row_of(rows, profile, (uint32_t)id, waits[id]));
	free(waits);
	merge(rows);
	return err;
}

void blame_rows__free(struct blame_rows *rows)
{
	profile_groups__free(&rows->groups);
	vec__free(&rows->rows);
}
