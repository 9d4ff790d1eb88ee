/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stack trie: a node is a path of frame ids from the root (outermost frame first); weights are added to the
 * node of a sample's leaf. Node 0 is the root. Nodes are never removed and never move in id, so ids may be
 * cached. A bound on the number of nodes keeps memory finite; trie__child then answers TRIE_FULL.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define TRIE_ROOT 0u
#define TRIE_FULL UINT32_MAX

struct trie_node {
	uint32_t frame;	 /* frame table id; UINT32_MAX at the root */
	uint32_t parent; /* node id; the root's is itself. Always smaller than the node's own id. */
	uint64_t self; /* weight of the samples that ended here (samples; see struct profile for the unit) */
};

struct trie {
	VEC(struct trie_node) nodes;
	struct hmap children; /* (parent << 32 | frame) -> node id */
	uint32_t max_nodes;   /* root included; at least 1 */
};

/* 0 or -ENOMEM. */
int trie__init(struct trie *trie, uint32_t max_nodes);
/*
 * The child of `parent` for `frame`, made if new. TRIE_FULL at the bound, when out of memory, or when the
 * parent is TRIE_FULL already.
 */
uint32_t trie__child(struct trie *trie, uint32_t parent, uint32_t frame);
void trie__add(struct trie *trie, uint32_t node, uint64_t weight);
/*
 * Total weight of every node (its own and all descendants'): an array of trie->nodes.len that the caller
 * frees; NULL when out of memory. One pass, since parents precede children.
 */
uint64_t *trie__totals(const struct trie *trie);
void trie__free(struct trie *trie);

/*
 * Depth-first walk in which every node but the root comes up twice, first when it is entered and, after all
 * its descendants, when it is left. Children come in the order of their ids. Takes no stack, so depth does
 * not matter.
 *
 *	while (trie_walk__next(&walk))
 *		if (walk.entering) ... walk.node ...
 */
struct trie_walk {
	const struct trie *trie; /* borrowed; must not grow meanwhile */
	uint32_t *first_child;	 /* by node; 0 = none, since the root is nobody's child */
	uint32_t *next_sibling;
	uint32_t node;
	bool entering;
};

/* 0 or -ENOMEM. */
int trie_walk__open(struct trie_walk *walk, const struct trie *trie);
bool trie_walk__next(struct trie_walk *walk);
void trie_walk__close(struct trie_walk *walk);
