/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples by files and lines: recursion counts once, waits are of the line that waits, nothing goes.
 */
#include "agg/heat.h"
#include "made.h"

#include <criterion/criterion.h>

static struct profile profile;
static struct heat heat;

static void begin(void)
{
	cr_assert_eq(profile__init(&profile, 100000), 0);
}

static void end(void)
{
	heat__free(&heat);
	profile__free(&profile);
}

TestSuite(heat, .init = begin, .fini = end);

static void count(void)
{
	uint64_t sum = profile.trie.nodes.items[TRIE_ROOT].self;

	cr_assert_eq(heat__init(&heat, &profile.trie, &profile.frames, profile.strings), 0);
	for (size_t i = 0; i < heat.files.len; i++)
		sum += heat.files.items[i].self;
	for (size_t i = 0; i < heat.notes.len; i++)
		sum += heat.notes.items[i].self;
	cr_expect_eq(sum, profile__total(&profile), "a sample is gone");
}

static const struct heat_file *file_named(const char *name)
{
	for (size_t i = 0; i < heat.files.len; i++)
		if (!strcmp(strtab__get(profile.strings, heat.files.items[i].name), name))
			return &heat.files.items[i];
	cr_assert_fail("no file %s", name);
	return NULL;
}

static void expect_line(const char *file, uint32_t line, uint64_t self, uint64_t total, const char *function)
{
	const struct heat_file *found = file_named(file);

	for (size_t i = found->first_line; i < found->first_line + found->line_count; i++) {
		const struct heat_line *at = &heat.lines.items[i];

		if (at->line != line)
			continue;
		cr_expect_eq(profile__value(&profile, at->self), self, "%s:%u self %lu", file, line,
			     at->self);
		cr_expect_eq(profile__value(&profile, at->total), total, "%s:%u total %lu", file, line,
			     at->total);
		cr_expect_str_eq(strtab__get(profile.strings, at->function), function);
		return;
	}
	cr_expect_fail("no line %u in %s", line, file);
}

Test(heat, shop)
{
	make_profile(&profile, "shop");
	count();
	cr_expect_str_eq(strtab__get(profile.strings, heat.files.items[0].name),
			 "/usr/lib/python3.12/json/decoder.py");
	cr_expect_eq(profile__value(&profile, heat.files.items[0].self), 50);
	cr_expect_eq(profile__value(&profile, file_named("/srv/shop/main.py")->total), 95);
	expect_line("/srv/shop/main.py", 61, 0, 75, "serve");
	expect_line("/srv/shop/main.py", 90, 0, 95, "<module>");
	expect_line("/srv/shop/tree.py", 8, 7, 27, "total"); /* three times in one stack */
	expect_line("/srv/shop/tree.py", 6, 20, 20, "total");
	cr_expect(heat.lines.items[file_named("/srv/shop/price.py")->first_line].approximate);
	cr_assert_eq(heat.notes.len, 1);
	cr_expect_str_eq(strtab__get(profile.strings, heat.notes.items[0].text), "[no Python frames]");
	/* in order of their numbers */
	for (size_t i = 0; i < heat.files.len; i++)
		for (size_t k = 1; k < heat.files.items[i].line_count; k++)
			cr_expect_lt(heat.lines.items[heat.files.items[i].first_line + k - 1].line,
				     heat.lines.items[heat.files.items[i].first_line + k].line);
}

/* Whom a wait is due to stands below it: the time is the waiter's, and that line was not executing. */
Test(heat, of_a_holder)
{
	struct frame wait = {
		.kind = FRAME_SPECIAL, .function = made_text(&profile, "[waits for the GIL]"), .wait = true};
	uint32_t node;

	MADE_STACK(&profile, 3, MADE_FRAME("hold", "b.py", 9, 8));
	node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("want", "a.py", 5, 1));
	node = trie__child(&profile.trie, node, frame_table__add(&profile.frames, &wait));
	node = made_add_frame(&profile, node, MADE_FRAME("hold", "b.py", 9, 8));
	node = made_add_frame(&profile, node, MADE_NOTE("[holder: sleep]", FRAME_SPECIAL));
	made_add_weight(&profile, node, 2);
	count();
	cr_expect_eq(heat.notes.len, 0);
	expect_line("a.py", 5, 2, 2, "want");
	expect_line("b.py", 9, 3, 3, "hold");
	cr_expect_eq(profile__value(&profile, file_named("b.py")->total), 3);
}

/* Two functions in one line, one of them hotter; and what it waits for is the line's own. */
Test(heat, of_one_line)
{
	struct frame wait = {.kind = FRAME_SPECIAL, .function = made_text(&profile, "[sleep]"), .wait = true};
	uint32_t node;

	MADE_STACK(&profile, 3, MADE_FRAME("f", "a.py", 5, 1), MADE_FRAME("f.<lambda>", "a.py", 5, 5));
	node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("f", "a.py", 5, 1));
	node = trie__child(&profile.trie, node, frame_table__add(&profile.frames, &wait));
	made_add_weight(&profile, node, 2);
	count();
	cr_expect_eq(heat.notes.len, 0);
	cr_expect_eq(heat.lines.len, 1);
	expect_line("a.py", 5, 5, 5, "f.<lambda>");
}

Test(heat, nothing)
{
	count();
	cr_expect_eq(heat.files.len + heat.lines.len + heat.notes.len, 0);
}
