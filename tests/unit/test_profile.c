/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flat view: self and total counts under recursion, both groupings, order, and sizes at which anything
 * worse than linear would not come back.
 */
#include "agg/profile.h"
#include "unit/fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct profile profile;
static struct profile_rows rows;

static void open_profile(void)
{
	cr_assert_eq(profile__init(&profile, 3000000), 0);
}

static void close_profile(void)
{
	profile_rows__free(&rows);
	profile__free(&profile);
}

TestSuite(profile, .init = open_profile, .fini = close_profile);

static void make_rows(enum group_by group, size_t want)
{
	profile_rows__free(&rows);
	cr_assert_eq(profile__rows(&profile, group, &rows), 0);
	cr_assert_eq(rows.rows.len, want, "%zu rows", rows.rows.len);
}

static void check_row(size_t i, const char *function, uint32_t line, uint64_t self, uint64_t total)
{
	const struct profile_row *row = &rows.rows.items[i];

	cr_assert_str_eq(strtab__get(profile.strings, row->function), function, "row %zu", i);
	cr_assert_eq(row->line, line, "row %zu: line %u", i, row->line);
	cr_assert_eq(row->self, self, "row %zu: self %llu", i, (unsigned long long)row->self);
	cr_assert_eq(row->total, total, "row %zu: total %llu", i, (unsigned long long)row->total);
}

Test(profile, no_samples)
{
	make_rows(GROUP_LINE, 0);
	make_rows(GROUP_FUNCTION, 0);
	/* A frame that was seen but has no sample, e.g. since the trie was full. */
	fixture_frame(&profile, (struct fixture_frame){"f", "a.py", 1, 1});
	make_rows(GROUP_LINE, 0);
	trie__add(&profile.trie, TRIE_ROOT, 1);
	make_rows(GROUP_LINE, 0);
	profile__free(NULL);
	profile_rows__free(NULL);
}

Test(profile, one_sample_of_one_frame)
{
	add_stack(&profile, 1, {"f", "a.py", 5, 3});
	make_rows(GROUP_LINE, 1);
	check_row(0, "f", 5, 1, 1);
	cr_assert_str_eq(strtab__get(profile.strings, rows.rows.items[0].file), "a.py");
	make_rows(GROUP_FUNCTION, 1);
	check_row(0, "f", 3, 1, 1);
}

Test(profile, callers_count_in_total_only)
{
	add_stack(&profile, 2, {"main", "a.py", 1, 1}, {"f", "a.py", 5, 3});
	add_stack(&profile, 3, {"main", "a.py", 1, 1}, {"g", "a.py", 9, 8});
	make_rows(GROUP_LINE, 3);
	check_row(0, "g", 9, 3, 3);
	check_row(1, "f", 5, 2, 2);
	check_row(2, "main", 1, 0, 5);
}

Test(profile, recursion_counts_once)
{
	add_stack(&profile, 1, {"f", "a.py", 5, 3});
	add_stack(&profile, 2, {"f", "a.py", 5, 3}, {"f", "a.py", 5, 3}, {"f", "a.py", 5, 3});
	add_stack(&profile, 4, {"f", "a.py", 5, 3}, {"g", "a.py", 9, 8}, {"f", "a.py", 5, 3});
	/* After leaving f, another f counts again. */
	add_stack(&profile, 8, {"g", "a.py", 9, 8}, {"f", "a.py", 5, 3});
	make_rows(GROUP_LINE, 2);
	check_row(0, "f", 5, 15, 15);
	check_row(1, "g", 9, 0, 12);
}

/* A wait is no row of its own, nor does it hide that its function is on the path already. */
Test(profile, waits_are_of_their_function)
{
	struct frame sleep = {.kind = FRAME_SPECIAL, .wait = true};
	struct profile_waits waits;
	uint32_t f = fixture_frame(&profile, (struct fixture_frame){"f", "a.py", 5, 3}), outer, inner, wait;

	sleep.function = fixture_string(&profile, "[sleep]");
	wait = frame_table__add(&profile.frames, &sleep);
	outer = trie__child(&profile.trie, TRIE_ROOT, f);
	inner = trie__child(&profile.trie, outer, f);
	trie__add(&profile.trie, inner, 1);
	trie__add(&profile.trie, trie__child(&profile.trie, inner, wait), 4);
	trie__add(&profile.trie, trie__child(&profile.trie, outer, wait), 2);
	make_rows(GROUP_LINE, 1);
	check_row(0, "f", 5, 7, 7);
	cr_assert_eq(rows.rows.items[0].wait, sleep.function);
	trie__add(&profile.trie, outer, 8);
	make_rows(GROUP_FUNCTION, 1);
	check_row(0, "f", 3, 15, 15);
	cr_assert_eq(rows.rows.items[0].wait, 0, "most of it on the CPU");

	/* One without a function is a row. */
	trie__add(&profile.trie, trie__child(&profile.trie, TRIE_ROOT, wait), 20);
	make_rows(GROUP_LINE, 2);
	check_row(0, "[sleep]", 0, 20, 20);
	cr_assert_eq(profile__total(&profile), 35);
	cr_assert_eq(profile__waits(&profile, &waits), 0);
	cr_assert(waits.items.len == 1 && waits.items.items[0].time_ns == 26 &&
		  waits.items.items[0].reason == sleep.function);
	profile_waits__free(&waits);
}

Test(profile, recursion_through_other_lines)
{
	add_stack(&profile, 1, {"f", "a.py", 4, 3}, {"f", "a.py", 5, 3});
	make_rows(GROUP_LINE, 2);
	check_row(0, "f", 5, 1, 1);
	check_row(1, "f", 4, 0, 1);
	make_rows(GROUP_FUNCTION, 1);
	check_row(0, "f", 3, 1, 1);
}

/* Same name, same file: told apart by first line when grouping by function, by executing line otherwise. */
Test(profile, what_a_group_is)
{
	add_stack(&profile, 1, {"f", "a.py", 5, 3});
	add_stack(&profile, 2, {"f", "a.py", 5, 4});
	add_stack(&profile, 4, {"f", "b.py", 5, 3});
	add_stack(&profile, 8, {"f", NULL, 0, 0});
	make_rows(GROUP_FUNCTION, 4);
	check_row(0, "f", 0, 8, 8);
	cr_assert_eq(rows.rows.items[0].kind, FRAME_SPECIAL);
	check_row(1, "f", 3, 4, 4);
	check_row(2, "f", 4, 2, 2);
	check_row(3, "f", 3, 1, 1);
	make_rows(GROUP_LINE, 3);
	check_row(2, "f", 5, 3, 3);
}

Test(profile, order_is_total)
{
	add_stack(&profile, 1, {"b", "x.py", 2, 1});
	add_stack(&profile, 1, {"b", "x.py", 1, 1});
	add_stack(&profile, 1, {"b", "w.py", 9, 1});
	add_stack(&profile, 1, {"a", "z.py", 9, 1});
	add_stack(&profile, 1, {"c", "c.py", 1, 1}, {"d", "c.py", 1, 1});
	add_stack(&profile, 1, {"c", "c.py", 1, 1});
	make_rows(GROUP_LINE, 6);
	check_row(0, "c", 1, 1, 2);
	check_row(1, "a", 9, 1, 1);
	check_row(2, "b", 9, 1, 1);
	check_row(3, "b", 1, 1, 1);
	check_row(4, "b", 2, 1, 1);
	check_row(5, "d", 1, 1, 1);
}

Test(profile, weights_beyond_32_bits)
{
	add_stack(&profile, 1ull << 40, {"f", "a.py", 1, 1}, {"g", "a.py", 2, 2});
	add_stack(&profile, 1ull << 41, {"f", "a.py", 1, 1});
	make_rows(GROUP_LINE, 2);
	check_row(0, "f", 1, 1ull << 41, 3ull << 40);
	check_row(1, "g", 2, 1ull << 40, 1ull << 40);
}

static uint32_t numbered_frame(uint32_t number)
{
	return frame_table__add(&profile.frames,
				&(struct frame){.function = 0, .line = number, .first_line = number});
}

/* A chain of 100,000 calls and a comb of 1000 stacks of 2000 frames: quadratic work would take minutes. */
Test(profile, deep_stacks, .timeout = 60)
{
	uint32_t node = TRIE_ROOT;

	for (uint32_t i = 0; i < 100000; i++) {
		node = trie__child(&profile.trie, node, numbered_frame(1 + i % 3));
		trie__add(&profile.trie, node, 1);
	}
	for (uint32_t tooth = 0; tooth < 1000; tooth++) {
		node = trie__child(&profile.trie, TRIE_ROOT, numbered_frame(10 + tooth));
		for (uint32_t i = 0; i < 2000; i++)
			node = trie__child(&profile.trie, node, numbered_frame(4));
		trie__add(&profile.trie, node, 1);
	}
	make_rows(GROUP_LINE, 1004);
	check_row(0, "", 1, 33334, 100000);
	check_row(1, "", 2, 33333, 99999);
	check_row(2, "", 3, 33333, 99998);
	check_row(3, "", 4, 1000, 1000);
	check_row(4, "", 10, 0, 1);
}

/* Counted again in the plainest way, on random tries with much recursion. */
Test(profile, agrees_with_ancestor_walks)
{
	unsigned int seed = 7;

	for (int round = 0; round < 50; round++) {
		uint64_t self[6] = {0}, total[6] = {0};

		profile__free(&profile);
		open_profile();
		for (uint32_t i = 0; i < 6; i++)
			numbered_frame(i);
		for (int i = 0; i < 400; i++)
			trie__child(&profile.trie, (uint32_t)rand_r(&seed) % profile.trie.nodes.len,
				    (uint32_t)rand_r(&seed) % 6);
		for (uint32_t id = 1; id < profile.trie.nodes.len; id++) {
			uint64_t weight = (uint64_t)rand_r(&seed) % 4;
			bool seen[6] = {0};

			trie__add(&profile.trie, id, weight);
			self[profile.trie.nodes.items[id].frame] += weight;
			for (uint32_t up = id; up != TRIE_ROOT; up = profile.trie.nodes.items[up].parent)
				seen[profile.trie.nodes.items[up].frame] = true;
			for (int i = 0; i < 6; i++)
				total[i] += seen[i] ? weight : 0;
		}
		profile_rows__free(&rows);
		cr_assert_eq(profile__rows(&profile, GROUP_LINE, &rows), 0);
		for (size_t i = 0; i < rows.rows.len; i++) {
			cr_assert_eq(rows.rows.items[i].self, self[rows.rows.items[i].line]);
			cr_assert_eq(rows.rows.items[i].total, total[rows.rows.items[i].line]);
		}
	}
}

Test(profile, total)
{
	cr_expect_eq(profile__total(&profile), 0);
	add_stack(&profile, 3, {"f", "a.py", 1, 1}, {"g", "a.py", 2, 2});
	add_stack(&profile, 4, {"f", "a.py", 1, 1});
	trie__add(&profile.trie, TRIE_ROOT, 5);
	cr_expect_eq(profile__total(&profile), 12);
}
