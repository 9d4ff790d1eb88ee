/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agg/estimate.h"

#include <criterion/criterion.h>

static struct trie trie;
static struct estimate estimate;
static uint32_t a, b, rest;

static void start(void)
{
	cr_assert_eq(trie__init(&trie, 100), 0);
	a = trie__child(&trie, TRIE_ROOT, 1);
	b = trie__child(&trie, TRIE_ROOT, 2);
	rest = trie__child(&trie, TRIE_ROOT, 3);
}

static void stop(void)
{
	estimate__free(&estimate);
	trie__free(&trie);
}

TestSuite(estimate, .init = start, .fini = stop);

static void expect(uint64_t of_a, uint64_t of_b, uint64_t of_rest)
{
	cr_expect_eq(trie.nodes.items[a].self, of_a, "a has %lu", trie.nodes.items[a].self);
	cr_expect_eq(trie.nodes.items[b].self, of_b, "b has %lu", trie.nodes.items[b].self);
	cr_expect_eq(trie.nodes.items[rest].self, of_rest, "the rest has %lu", trie.nodes.items[rest].self);
}

Test(estimate, in_proportion)
{
	uint64_t exact[ESTIMATE_KINDS] = {0, 4000};

	cr_assert_eq(estimate__add(&estimate, a, 1, 100), 0);
	cr_assert_eq(estimate__add(&estimate, a, 1, 200), 0);
	cr_assert_eq(estimate__add(&estimate, b, 1, 100), 0);
	estimate__settle(&estimate, &trie, exact, rest);
	expect(3000, 1000, 0);
	estimate__settle(&estimate, &trie, exact, rest);
	expect(3000, 1000, 0);
	/* From then on only what has come since. */
	exact[1] += 500;
	cr_assert_eq(estimate__add(&estimate, b, 1, 1), 0);
	estimate__settle(&estimate, &trie, exact, rest);
	expect(3000, 1500, 0);
}

Test(estimate, kinds_are_apart)
{
	const uint64_t exact[ESTIMATE_KINDS] = {10, 0, 0, 0, 0, 0, 0, 70};

	cr_assert_eq(estimate__add(&estimate, a, 0, 1000), 0);
	cr_assert_eq(estimate__add(&estimate, a, 3, 1000), 0);
	cr_assert_eq(estimate__add(&estimate, b, 7, 1), 0);
	estimate__settle(&estimate, &trie, exact, rest);
	expect(10, 70, 0);
}

Test(estimate, without_samples)
{
	const uint64_t exact[ESTIMATE_KINDS] = {0, 0, 900};

	estimate__settle(&estimate, &trie, exact, rest);
	expect(0, 0, 900);
}

Test(estimate, what_is_left_out)
{
	const uint64_t exact[ESTIMATE_KINDS] = {100};

	cr_assert_eq(estimate__add(&estimate, a, 0, 1), 0);
	cr_assert_eq(estimate__add(&estimate, ESTIMATE_HIDDEN, 0, 3), 0);
	estimate__settle(&estimate, &trie, exact, rest);
	expect(25, 0, 0);
	cr_expect_eq(estimate.hidden, 75);
}

/* ... or all of it, where nobody is to have what nothing was sampled of. */
Test(estimate, rest_left_out)
{
	const uint64_t exact[ESTIMATE_KINDS] = {0, 0, 900};

	estimate__settle(&estimate, &trie, exact, ESTIMATE_HIDDEN);
	expect(0, 0, 0);
	cr_expect_eq(estimate.hidden, 900);
}

/* Times of years, in nanoseconds. */
Test(estimate, large)
{
	const uint64_t year = 31536000ull * 1000000000, exact[ESTIMATE_KINDS] = {100 * year};

	cr_assert_eq(estimate__add(&estimate, a, 0, 30 * year), 0);
	cr_assert_eq(estimate__add(&estimate, b, 0, 10 * year), 0);
	estimate__settle(&estimate, &trie, exact, rest);
	expect(75 * year, 25 * year, 0);
}
