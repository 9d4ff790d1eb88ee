/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Views: grouping, pruning by size, and that no sample goes.
 */
#include "agg/view.h"
#include "made.h"
#include "unit/fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct profile profile;
static struct view view;
static const struct view_size any;

static void open_profile(void)
{
	cr_assert_eq(profile__init(&profile, 3000000), 0);
}

static void close_profile(void)
{
	view__free(&view);
	profile__free(&profile);
}

TestSuite(view, .init = open_profile, .fini = close_profile);

static void look(enum group_by group, const struct view_size *size)
{
	view__free(&view);
	cr_assert_eq(view__init(&view, &profile, group, size), 0);
}

/* "main:90;total:8 5", one a line, in the order of the nodes; names come without files. */
static const char *stacks_text(void)
{
	static char text[4096];
	struct view_stacks stacks;
	size_t len = 0;

	cr_assert_eq(view_stacks__open(&stacks, &view), 0);
	for (text[0] = '\0'; view_stacks__next(&stacks); len = strlen(text)) {
		for (uint32_t i = 0; i < stacks.depth; i++) {
			const struct frame *frame = frame_table__get(&view.frames, stacks.path[i]);

			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:%u", i ? ";" : "",
						strtab__get(profile.strings, frame->function), frame->line);
		}
		snprintf(text + len, sizeof(text) - len, " %llu\n", (unsigned long long)stacks.weight);
	}
	view_stacks__close(&stacks);
	return text;
}

static uint64_t view_sum(void)
{
	uint64_t sum = 0;

	for (size_t id = 0; id < view.trie.nodes.len; id++)
		sum += view.trie.nodes.items[id].self;
	return sum;
}

Test(view, empty)
{
	look(GROUP_LINE, &any);
	cr_expect_str_eq(stacks_text(), "");
	look(GROUP_FUNCTION, &any);
	cr_expect_str_eq(stacks_text(), "");
	cr_expect_eq(view.frames.frames.len, 0);
}

Test(view, groups)
{
	add_stack(&profile, 1, {"f", "a.py", 4, 3}, {"g", "a.py", 9, 8});
	add_stack(&profile, 2, {"f", "a.py", 5, 3}, {"g", "a.py", 9, 8});
	add_stack(&profile, 4, {"f", "a.py", 5, 2});
	look(GROUP_LINE, &any);
	cr_expect_str_eq(stacks_text(), "f:4;g:9 1\nf:5;g:9 2\nf:5 4\n");
	/* Two definitions of one name stay two, and so do lines of them that are equal. */
	look(GROUP_FUNCTION, &any);
	cr_expect_str_eq(stacks_text(), "f:3;g:8 3\nf:2 4\n");
	cr_expect_eq(frame_table__get(&view.frames, 0)->first_line, 3);
}

Test(view, samples_without_a_stack)
{
	trie__add(&profile.trie, TRIE_ROOT, 2);
	add_stack(&profile, 3, {"f", "a.py", 1, 1});
	look(GROUP_LINE, &any);
	cr_expect_str_eq(stacks_text(), "[no stack]:0 2\nf:1 3\n");
	look(GROUP_FUNCTION, &any);
	cr_expect_str_eq(stacks_text(), "[no stack]:0 2\nf:1 3\n");
}

/* Only frames that samples lead to are there, in order of their use. */
Test(view, frames_in_use)
{
	fixture_frame(&profile, (struct fixture_frame){"unused", "a.py", 1, 1});
	trie__child(&profile.trie, TRIE_ROOT,
		    fixture_frame(&profile, (struct fixture_frame){"no samples", "a.py", 1, 1}));
	add_stack(&profile, 3, {"f", "a.py", 1, 1});
	look(GROUP_LINE, &any);
	cr_expect_eq(view.frames.frames.len, 1);
	cr_expect_str_eq(stacks_text(), "f:1 3\n");
}

Test(view, prunes_the_smallest)
{
	const struct view_size size = {.node = 10, .max = 50};

	add_stack(&profile, 50, {"f", "a.py", 1, 1});
	add_stack(&profile, 9, {"f", "a.py", 1, 1}, {"big", "a.py", 2, 2});
	add_stack(&profile, 2, {"f", "a.py", 1, 1}, {"g", "a.py", 3, 3}, {"h", "a.py", 4, 4});
	add_stack(&profile, 1, {"f", "a.py", 1, 1}, {"g", "a.py", 3, 3}, {"i", "a.py", 5, 5});
	add_stack(&profile, 1, {"f", "a.py", 1, 1}, {"j", "a.py", 6, 6});
	look(GROUP_LINE, &size);
	cr_expect_eq(view.threshold, 4, "%llu", (unsigned long long)view.threshold);
	cr_expect_str_eq(stacks_text(), "f:1 50\nf:1;big:2 9\nf:1;[pruned]:0 4\n");
	cr_expect_eq(view.pruned, 4);
	cr_expect_eq(view.pruned_stacks, 3);
}

/* Even where nothing fits, the samples are there. */
Test(view, nothing_fits)
{
	const struct view_size size = {.node = 100, .max = 1};

	add_stack(&profile, 50, {"f", "a.py", 1, 1});
	look(GROUP_LINE, &size);
	cr_expect_str_eq(stacks_text(), "[pruned]:0 50\n");
}

/* A chain that is a sample longer at each depth makes paths of a square's size. */
Test(view, long_paths_are_bounded)
{
	const struct view_size size = {.stack = 10, .stack_frame = 4, .max = 1u << 20};
	uint32_t node = TRIE_ROOT, frame = fixture_frame(&profile, (struct fixture_frame){"f", "a.py", 1, 1});
	struct view_stacks stacks;
	uint64_t frames = 0;

	for (int i = 0; i < 20000; i++) {
		node = trie__child(&profile.trie, node, frame);
		trie__add(&profile.trie, node, 1);
		profile.samples++;
	}
	look(GROUP_LINE, &size);
	cr_expect_eq(view_sum(), profile.samples);
	cr_assert_eq(view_stacks__open(&stacks, &view), 0);
	while (view_stacks__next(&stacks))
		frames += stacks.depth;
	view_stacks__close(&stacks);
	cr_expect(frames * size.stack_frame <= size.max && frames * size.stack_frame > size.max / 4,
		  "%llu frames", (unsigned long long)frames);
}

/* 2000 frames with a name of 64 KB are 131 MB where each of them says it, and 64 KB where it is said once. */
Test(view, long_names_count_as_often_as_they_are_written)
{
	struct view_size size = {.max = 16u << 20};
	uint32_t node = TRIE_ROOT;
	char name[65537] = "";

	memset(name, 'n', sizeof(name) - 1);
	for (uint32_t line = 1; line <= 2000; line++)
		node = trie__child(&profile.trie, node,
				   fixture_frame(&profile, (struct fixture_frame){name, "a.py", line, 1}));
	trie__add(&profile.trie, node, 7);
	look(GROUP_LINE, &size);
	cr_expect_eq(view.pruned, 0);
	size.texts = TEXTS_IN_FRAMES;
	look(GROUP_LINE, &size);
	cr_expect_str_eq(stacks_text(), "[pruned]:0 7\n");
	look(GROUP_FUNCTION, &size);
	cr_expect_eq(view.pruned, 0);
	size.texts = TEXTS_IN_STACKS;
	look(GROUP_FUNCTION, &size);
	cr_expect_str_eq(stacks_text(), "[pruned]:0 7\n");
	cr_expect_eq(view.pruned, 7);
	cr_expect_eq(view.pruned_stacks, 1);
}

/* A control character is five bytes of JSON, and "<" six of a page. */
Test(view, texts_count_escaped)
{
	struct view_size size = {.max = 3000};
	char name[1001] = "";

	memset(name, 'n', sizeof(name) - 1);
	add_stack(&profile, 1, {name, "a.py", 1, 1});
	look(GROUP_LINE, &size);
	cr_expect_eq(view.pruned, 0);
	memset(name, '<', sizeof(name) - 1);
	add_stack(&profile, 1, {name, "a.py", 2, 2});
	look(GROUP_LINE, &size);
	cr_expect_eq(view.pruned, 2);
	size.max = 8000;
	look(GROUP_LINE, &size);
	cr_expect_eq(view.pruned, 0);
	memset(name, '\x1b', sizeof(name) - 1);
	add_stack(&profile, 1, {name, "a.py", 3, 3});
	look(GROUP_LINE, &size);
	cr_expect_eq(view.pruned, 3);
}

/* Whatever the bound: sums, parents before children, a size within the bound, and the less the smaller it is.
 */
Test(view, properties)
{
	size_t last = 0;

	make_profile(&profile, "2000");
	for (size_t max = 1000; max < 400000; max *= 2) {
		const struct view_size size = {.frame = 5, .node = 10, .max = max};

		for (int group = GROUP_LINE; group <= GROUP_FUNCTION; group++) {
			uint64_t pruned = 0;

			look(group, &size);
			cr_assert_eq(view_sum(), profile.samples * profile__unit(&profile));
			for (size_t id = 1; id < view.trie.nodes.len; id++) {
				const struct trie_node *node = &view.trie.nodes.items[id];

				cr_assert_lt(node->parent, id);
				if (!strcmp(strtab__get(
						    profile.strings,
						    frame_table__get(&view.frames, node->frame)->function),
					    "[pruned]"))
					pruned += node->self;
			}
			cr_assert_eq(pruned, view.pruned);
			cr_assert(view.trie.nodes.len <= 2 + max / size.node, "%zu nodes in %zu bytes",
				  view.trie.nodes.len, max);
		}
		cr_assert_geq(view.trie.nodes.len, last);
		last = view.trie.nodes.len;
	}
}
