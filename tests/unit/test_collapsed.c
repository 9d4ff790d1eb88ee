/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collapsed stacks, to the byte: text of a frame, merging, order, hostile names, and sizes.
 */
#include "out/writer.h"
#include "unit/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct profile profile;
static struct buf buf;

static void open_profile(void)
{
	cr_assert_eq(profile__init(&profile, 3000000), 0);
}

static void close_profile(void)
{
	buf__free(&buf);
	profile__free(&profile);
}

TestSuite(collapsed, .init = open_profile, .fini = close_profile);

static void check(enum group_by group, const char *want)
{
	buf__free(&buf);
	cr_assert_eq(collapsed_writer.write(&profile, group, &buf), 0);
	buf__addc(&buf, '\0');
	cr_assert_str_eq(buf.data, want);
}

Test(collapsed, empty_profile)
{
	check(GROUP_LINE, "");
	check(GROUP_FUNCTION, "");
	/* Nodes that no sample ended in give no line. */
	trie__child(&profile.trie, TRIE_ROOT,
		    fixture_frame(&profile, (struct fixture_frame){"f", "a.py", 1, 1}));
	check(GROUP_LINE, "");
}

Test(collapsed, appends)
{
	add_stack(&profile, 1, {"f", "a.py", 1, 1});
	buf__adds(&buf, "before\n");
	cr_assert_eq(collapsed_writer.write(&profile, GROUP_LINE, &buf), 0);
	buf__addc(&buf, '\0');
	cr_assert_str_eq(buf.data, "before\nf (a.py:1) 1\n");
}

Test(collapsed, approximate_lines)
{
	add_stack(&profile, 2, {"f", "a.py", 7, 3});
	add_approximate(&profile, 3, (struct fixture_frame){"f", "a.py", 7, 3});
	add_approximate(&profile, 4, (struct fixture_frame){"g", "a.py", 0, 3});
	check(GROUP_LINE, "g (a.py) 4\nf (a.py:~7) 3\nf (a.py:7) 2\n");
	check(GROUP_FUNCTION, "f (a.py:3) 5\ng (a.py:3) 4\n");
}

Test(collapsed, frames)
{
	add_stack(&profile, 9, {"MainThread", NULL, 0, 0}, {"<module>", "app/main.py", 12, 1},
		  {"Worker.run.<locals>.step", "app/work.py", 34, 30}, {"gone", "app/work.py", 0, 0});
	check(GROUP_LINE, "MainThread;<module> (app/main.py:12);Worker.run.<locals>.step (app/work.py:34);"
			  "gone (app/work.py) 9\n");
	check(GROUP_FUNCTION, "MainThread;<module> (app/main.py:1);Worker.run.<locals>.step (app/work.py:30);"
			      "gone (app/work.py) 9\n");
}

Test(collapsed, samples_without_a_stack)
{
	trie__add(&profile.trie, TRIE_ROOT, 2);
	check(GROUP_LINE, "[no stack] 2\n");
	add_stack(&profile, 3, {"[no stack]", NULL, 0, 0});
	check(GROUP_LINE, "[no stack] 5\n");
	add_stack(&profile, 1, {"", NULL, 0, 0}, {"", "", 0, 0});
	check(GROUP_LINE, "[no stack] 5\n[unnamed];[unnamed] () 1\n");
}

Test(collapsed, grouping_merges_stacks)
{
	add_stack(&profile, 1, {"f", "a.py", 4, 3}, {"g", "a.py", 9, 8});
	add_stack(&profile, 2, {"f", "a.py", 5, 3}, {"g", "a.py", 9, 8});
	add_stack(&profile, 4, {"f", "a.py", 5, 3}, {"g", "a.py", 10, 8});
	add_stack(&profile, 8, {"f", "a.py", 5, 3});
	check(GROUP_LINE, "f (a.py:5) 8\n"
			  "f (a.py:5);g (a.py:10) 4\n"
			  "f (a.py:5);g (a.py:9) 2\n"
			  "f (a.py:4);g (a.py:9) 1\n");
	check(GROUP_FUNCTION, "f (a.py:3) 8\n"
			      "f (a.py:3);g (a.py:8) 7\n");
}

/* Different frames, one text: an annotation that looks like a function, and two definitions on one line. */
Test(collapsed, equal_text_is_one_line)
{
	add_stack(&profile, 1, {"f", "a.py", 4, 3});
	add_stack(&profile, 2, {"f (a.py:4)", NULL, 0, 0});
	add_stack(&profile, 4, {"f", "a.py", 4, 2});
	add_stack(&profile, 8, {"f", "a.py:4", 0, 0});
	check(GROUP_LINE, "f (a.py:4) 15\n");
	check(GROUP_FUNCTION, "f (a.py:4) 10\nf (a.py:2) 4\nf (a.py:3) 1\n");
}

/* No name can end a line or a frame early, or pretend to be another stack. */
Test(collapsed, hostile_names)
{
	add_stack(&profile, 3, {"a;b", "x\ny.py", 1, 1});
	add_stack(&profile, 2, {"\x1b]0;title\x07", "\xe2\x80\xae.py", 1, 1});
	add_stack(&profile, 1, {"a\\x3bb", "\xff.py", 1, 1});
	check(GROUP_LINE, "a\\x3bb (x\\x0ay.py:1) 3\n"
			  "\\x1b]0\\x3btitle\\x07 (\\u202e.py:1) 2\n"
			  "a\\\\x3bb (\\xff.py:1) 1\n");
}

Test(collapsed, order_is_count_then_text)
{
	/* Byte order of whole lines: "a" < "a b" < "a;b", though "a;b" is below "a" in the tree. */
	add_stack(&profile, 1, {"a", NULL, 0, 0}, {"b", NULL, 0, 0});
	add_stack(&profile, 1, {"a b", NULL, 0, 0});
	add_stack(&profile, 1, {"a", NULL, 0, 0});
	add_stack(&profile, 1, {"a<", NULL, 0, 0});
	add_stack(&profile, 1, {"\xc3\xa9", NULL, 0, 0});
	add_stack(&profile, 20, {"z", NULL, 0, 0});
	add_stack(&profile, 3, {"y", NULL, 0, 0});
	check(GROUP_LINE, "z 20\ny 3\na 1\na b 1\na;b 1\na< 1\n\xc3\xa9 1\n");
}

/* Random tries: counts add up, lines are in order and distinct, the order of arrival does not matter. */
Test(collapsed, properties)
{
	static const char *const names[] = {"a", "a b", "a;", "b", "a (x)", "\\x3b", ";"};
	unsigned int seed = 3;

	for (int round = 0; round < 200; round++) {
		uint64_t sum = 0, last_count = UINT64_MAX;
		char *line, *state = NULL, last[4096] = "";

		profile__free(&profile);
		buf__free(&buf);
		open_profile();
		for (int i = 0; i < 100; i++) {
			struct fixture_frame frames[6];
			size_t len = (size_t)rand_r(&seed) % 7;

			for (size_t j = 0; j < len; j++)
				frames[j] = (struct fixture_frame){names[(size_t)rand_r(&seed) % 7],
								   rand_r(&seed) % 2 ? "x" : NULL,
								   (uint32_t)rand_r(&seed) % 2, 1};
			fixture_stack(&profile, (uint64_t)rand_r(&seed) % 3, frames, len);
		}
		cr_assert_eq(collapsed_writer.write(&profile, GROUP_LINE, &buf), 0);
		buf__addc(&buf, '\0');
		for (line = strtok_r(buf.data, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
			char *space = strrchr(line, ' ');
			uint64_t count = strtoull(space + 1, NULL, 10);

			*space = '\0';
			cr_assert(count < last_count || (count == last_count && strcmp(last, line) < 0),
				  "'%s' %llu after '%s' %llu", line, (unsigned long long)count, last,
				  (unsigned long long)last_count);
			snprintf(last, sizeof(last), "%s", line);
			last_count = count;
			sum += count;
		}
		cr_assert_eq(sum, profile.samples);
	}
}

/* 200 stacks of 5000 frames that part only at the end, and one of 100,000 frames. */
Test(collapsed, deep_stacks, .timeout = 60)
{
	uint32_t frames[2], node = TRIE_ROOT;
	size_t lines = 0;

	frames[0] = fixture_frame(&profile,
				  (struct fixture_frame){"package.module.recursive", "src/deep.py", 10, 9});
	frames[1] = fixture_frame(&profile,
				  (struct fixture_frame){"package.module.other", "src/deep.py", 20, 19});
	for (int i = 0; i < 100000; i++) {
		node = trie__child(&profile.trie, node, frames[0]);
		if (i >= 4800 && i < 5000)
			trie__add(&profile.trie, trie__child(&profile.trie, node, frames[1]), 1);
	}
	trie__add(&profile.trie, node, 1);
	cr_assert_eq(collapsed_writer.write(&profile, GROUP_LINE, &buf), 0);
	for (size_t i = 0; i < buf.len; i++)
		lines += buf.data[i] == '\n';
	cr_assert_eq(lines, 201);
	cr_assert_gt(buf.len, 100000 * strlen("package.module.recursive (src/deep.py:10);"));
}

/* A million nodes, most of them without samples of their own, merged to a few by function. */
Test(collapsed, a_million_nodes, .timeout = 60)
{
	uint32_t node;

	for (uint32_t branch = 0; branch < 1000; branch++) {
		node = trie__child(
			&profile.trie, TRIE_ROOT,
			fixture_frame(&profile, (struct fixture_frame){"f", "a.py", branch + 1, 1}));
		for (int i = 0; i < 999; i++)
			node = trie__child(
				&profile.trie, node,
				frame_table__add(&profile.frames, &profile.frames.frames.items[0]));
		trie__add(&profile.trie, node, 1);
	}
	cr_assert_eq(profile.trie.nodes.len, 1000001);
	cr_assert_eq(collapsed_writer.write(&profile, GROUP_FUNCTION, &buf), 0);
	cr_assert_eq(buf.len, 1000 * strlen("f (a.py:1);") + strlen("1000\n"));
	cr_assert_eq(memcmp(buf.data + buf.len - 6, " 1000\n", 6), 0);
}
