/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stack trie: sharing of prefixes, the bound, totals, and the walk at depths that would overflow a
 * recursion.
 */
#include "agg/trie.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct trie trie;

static void open_trie(void)
{
	cr_assert_eq(trie__init(&trie, 2000000), 0);
}

static void close_trie(void)
{
	trie__free(&trie);
}

TestSuite(trie, .init = open_trie, .fini = close_trie);

Test(trie, root_alone)
{
	struct trie_walk walk;
	uint64_t *totals;

	cr_assert_eq(trie.nodes.len, 1);
	cr_assert_eq(trie.nodes.items[TRIE_ROOT].parent, TRIE_ROOT);
	cr_assert_eq(trie.nodes.items[TRIE_ROOT].frame, UINT32_MAX);
	trie__add(&trie, TRIE_ROOT, 3);
	totals = trie__totals(&trie);
	cr_assert_eq(totals[TRIE_ROOT], 3);
	free(totals);

	cr_assert_eq(trie_walk__open(&walk, &trie), 0);
	cr_assert_not(trie_walk__next(&walk));
	cr_assert_not(trie_walk__next(&walk));
	trie_walk__close(&walk);
}

Test(trie, paths_share_nodes)
{
	uint32_t a = trie__child(&trie, TRIE_ROOT, 0), b = trie__child(&trie, a, 0),
		 c = trie__child(&trie, a, 1);

	cr_assert_eq(a, 1);
	cr_assert_eq(trie__child(&trie, TRIE_ROOT, 0), a);
	cr_assert_eq(trie__child(&trie, a, 1), c);
	cr_assert_neq(b, c);
	cr_assert_neq(trie__child(&trie, b, 1), c, "same frame, other path");
	cr_assert_eq(trie.nodes.items[c].parent, a);
	cr_assert_eq(trie.nodes.items[c].frame, 1);
	cr_assert_eq(trie.nodes.len, 5);
}

Test(trie, totals)
{
	uint32_t a = trie__child(&trie, TRIE_ROOT, 10), b = trie__child(&trie, a, 11);
	uint32_t c = trie__child(&trie, a, 12), d = trie__child(&trie, TRIE_ROOT, 13);
	uint64_t *totals;

	trie__add(&trie, a, 1);
	trie__add(&trie, b, 2);
	trie__add(&trie, b, 2);
	trie__add(&trie, c, 8);
	trie__add(&trie, d, 16);
	totals = trie__totals(&trie);
	cr_assert_eq(totals[b], 4);
	cr_assert_eq(totals[c], 8);
	cr_assert_eq(totals[a], 13);
	cr_assert_eq(totals[d], 16);
	cr_assert_eq(totals[TRIE_ROOT], 29);
	free(totals);
}

Test(trie, bound_counts_the_root)
{
	struct trie small;
	uint32_t a, b;

	cr_assert_eq(trie__init(&small, 3), 0);
	a = trie__child(&small, TRIE_ROOT, 1);
	b = trie__child(&small, a, 1);
	cr_assert_eq(b, 2);
	cr_assert_eq(trie__child(&small, b, 1), TRIE_FULL);
	cr_assert_eq(trie__child(&small, TRIE_ROOT, 2), TRIE_FULL);
	cr_assert_eq(trie__child(&small, TRIE_FULL, 1), TRIE_FULL);
	/* What is known is still found, and nothing half-made is left. */
	cr_assert_eq(trie__child(&small, a, 1), b);
	cr_assert_eq(trie__child(&small, b, 1), TRIE_FULL);
	cr_assert_eq(small.nodes.len, 3);
	cr_assert_eq(small.children.len, 2);
	trie__free(&small);

	cr_assert_eq(trie__init(&small, 0), 0);
	cr_assert_eq(small.nodes.len, 1);
	cr_assert_eq(trie__child(&small, TRIE_ROOT, 0), TRIE_FULL);
	trie__free(&small);
	trie__free(NULL);
}

Test(trie, walk_enters_and_leaves_in_order)
{
	/*
	 *   1      4
	 *  / \
	 * 2   3
	 *      \
	 *       5
	 */
	static const struct {
		uint32_t node;
		bool entering;
	} want[] = {{1, true},	{2, true},  {2, false}, {3, true}, {5, true},
		    {5, false}, {3, false}, {1, false}, {4, true}, {4, false}};
	struct trie_walk walk;
	uint32_t one = trie__child(&trie, TRIE_ROOT, 0), three;

	trie__child(&trie, one, 0);
	three = trie__child(&trie, one, 1);
	trie__child(&trie, TRIE_ROOT, 1);
	trie__child(&trie, three, 0);
	cr_assert_eq(trie_walk__open(&walk, &trie), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		cr_assert(trie_walk__next(&walk));
		cr_assert_eq(walk.node, want[i].node, "step %zu", i);
		cr_assert_eq(walk.entering, want[i].entering, "step %zu", i);
	}
	cr_assert_not(trie_walk__next(&walk));
	cr_assert_not(trie_walk__next(&walk));
	trie_walk__close(&walk);
	trie_walk__close(NULL);
}

Test(trie, walk_of_a_deep_chain)
{
	enum { DEPTH = 1000000 };
	uint32_t node = TRIE_ROOT, deepest = 0, depth = 0;
	struct trie_walk walk;
	uint64_t *totals;

	for (uint32_t i = 0; i < DEPTH; i++)
		node = trie__child(&trie, node, 7);
	trie__add(&trie, node, 5);
	totals = trie__totals(&trie);
	cr_assert_eq(totals[1], 5);
	free(totals);

	cr_assert_eq(trie_walk__open(&walk, &trie), 0);
	while (trie_walk__next(&walk)) {
		depth += walk.entering ? 1 : -1;
		deepest = depth > deepest ? depth : deepest;
	}
	cr_assert_eq(deepest, DEPTH);
	cr_assert_eq(depth, 0);
	trie_walk__close(&walk);
}
