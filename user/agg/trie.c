/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stack trie as one array of nodes in order of birth, so a parent always stands before its children: a
 * backward pass sees every node after all its descendants. Children are found through a hash of (parent,
 * frame); they are linked as lists only for a depth-first walk.
 */
#include "agg/trie.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NO_FRAME UINT32_MAX

int trie__init(struct trie *trie, uint32_t max_nodes)
{
	const struct trie_node root = {.frame = NO_FRAME, .parent = TRIE_ROOT};

	*trie = (struct trie){.max_nodes = max_nodes ?: 1};
	return vec__push(&trie->nodes, root);
}

static uint64_t child_key(uint32_t parent, uint32_t frame)
{
	return (uint64_t)parent << 32 | frame;
}

uint32_t trie__child(struct trie *trie, uint32_t parent, uint32_t frame)
{
	const struct trie_node node = {.frame = frame, .parent = parent};
	const uint64_t *known;
	uint32_t id;

	if (parent == TRIE_FULL)
		return TRIE_FULL;
	assert(parent < trie->nodes.len);
	known = hmap__get(&trie->children, child_key(parent, frame));
	if (known)
		return (uint32_t)*known;

	id = (uint32_t)trie->nodes.len;
	if (id >= trie->max_nodes || vec__reserve(&trie->nodes, 1) ||
	    hmap__set(&trie->children, child_key(parent, frame), id))
		return TRIE_FULL;
	trie->nodes.items[trie->nodes.len++] = node;
	return id;
}

void trie__add(struct trie *trie, uint32_t node, uint64_t weight)
{
	assert(node < trie->nodes.len);
	trie->nodes.items[node].self += weight;
}

uint64_t *trie__totals(const struct trie *trie)
{
	uint64_t *totals = calloc(trie->nodes.len ?: 1, sizeof(*totals));

	if (!totals)
		return NULL;
	for (size_t id = trie->nodes.len; id-- > 0;) {
		const struct trie_node *node = &trie->nodes.items[id];

		totals[id] += node->self;
		if (id != TRIE_ROOT)
			totals[node->parent] += totals[id];
	}
	return totals;
}

void trie__free(struct trie *trie)
{
	if (!trie)
		return;
	vec__free(&trie->nodes);
	hmap__free(&trie->children);
}

int trie_walk__open(struct trie_walk *walk, const struct trie *trie)
{
	size_t len = trie->nodes.len;

	*walk = (struct trie_walk){.trie = trie, .node = TRIE_ROOT, .entering = true};
	walk->first_child = calloc(len ?: 1, sizeof(*walk->first_child));
	walk->next_sibling = calloc(len ?: 1, sizeof(*walk->next_sibling));
	if (!walk->first_child || !walk->next_sibling) {
		trie_walk__close(walk);
		return -ENOMEM;
	}
	/* Putting the last one in front first leaves every list ascending. */
	for (size_t id = len; id-- > 1;) {
		uint32_t *head = &walk->first_child[trie->nodes.items[id].parent];

		walk->next_sibling[id] = *head;
		*head = (uint32_t)id;
	}
	return 0;
}

bool trie_walk__next(struct trie_walk *walk)
{
	uint32_t to;

	if (walk->entering) {
		to = walk->first_child[walk->node];
		walk->entering = to != 0;
		walk->node = to ?: walk->node;
	} else if (walk->node != TRIE_ROOT) {
		to = walk->next_sibling[walk->node];
		walk->entering = to != 0;
		walk->node = to ?: walk->trie->nodes.items[walk->node].parent;
	}
	return walk->node != TRIE_ROOT;
}

void trie_walk__close(struct trie_walk *walk)
{
	if (!walk)
		return;
	free(walk->first_child);
	free(walk->next_sibling);
	walk->first_child = walk->next_sibling = NULL;
}
