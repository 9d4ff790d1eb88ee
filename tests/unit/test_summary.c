/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The summary table, to the byte where it matters, and its width with names of any length and script.
 */
#include "base/utf8.h"
#include "out/summary.h"
#include "unit/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct profile profile;
static struct buf buf;
static struct summary_style style;

static void open_profile(void)
{
	cr_assert_eq(profile__init(&profile, 100000), 0);
	style = (struct summary_style){.group = GROUP_LINE, .max_rows = SUMMARY_ROWS, .width = 80};
}

static void close_profile(void)
{
	buf__free(&buf);
	profile__free(&profile);
}

TestSuite(summary, .init = open_profile, .fini = close_profile);

static void format(void)
{
	buf__free(&buf);
	cr_assert_eq(summary__format(&profile, &style, &buf), 0);
	buf__addc(&buf, '\0');
}

static void check(const char *want)
{
	format();
	cr_assert_str_eq(buf.data, want);
}

/* No line is wider, none ends in a blank. */
static void check_width(size_t columns)
{
	size_t widest = 0;

	for (char *line = buf.data, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t width = utf8_width(line, (size_t)(end - line));

		cr_assert_leq(width, columns, "%zu columns: %.*s", width, (int)(end - line), line);
		cr_assert(end > line && end[-1] != ' ', "trailing blank: %.*s|", (int)(end - line), line);
		widest = width > widest ? width : widest;
	}
	cr_assert_gt(widest, 30);
}

Test(summary, no_rows)
{
	check("");
	trie__add(&profile.trie, TRIE_ROOT, 1);
	profile.samples = 1;
	check("");
}

Test(summary, one_sample)
{
	add_stack(&profile, 1, {"f", "a.py", 7, 3});
	check("  self%  total%  samples  function  file:line\n"
	      " 100.0%  100.0%        1  f         a.py:7\n");
	style.group = GROUP_FUNCTION;
	check("  self%  total%  samples  function  file:line\n"
	      " 100.0%  100.0%        1  f         a.py:3\n");
}

Test(summary, approximate_lines)
{
	add_stack(&profile, 2, {"f", "a.py", 7, 3});
	add_approximate(&profile, 3, (struct fixture_frame){"f", "a.py", 7, 3});
	check("  self%  total%  samples  function  file:line\n"
	      "  60.0%   60.0%        3  f         a.py:~7\n"
	      "  40.0%   40.0%        2  f         a.py:7\n");
	style.group = GROUP_FUNCTION;
	check("  self%  total%  samples  function  file:line\n"
	      " 100.0%  100.0%        5  f         a.py:3\n");
}

Test(summary, table)
{
	add_stack(&profile, 612, {"<module>", "app/main.py", 3, 1},
		  {"work.<locals>.inner", "app/work.py", 14, 12});
	add_stack(&profile, 380, {"<module>", "app/main.py", 3, 1}, {"load", "app/io.py", 0, 0});
	add_stack(&profile, 8, {"[kernel thread]", NULL, 0, 0});
	check("  self%  total%  samples  function             file:line\n"
	      "  61.2%   61.2%      612  work.<locals>.inner  app/work.py:14\n"
	      "  38.0%   38.0%      380  load                 app/io.py\n"
	      "   0.8%    0.8%        8  [kernel thread]\n"
	      "   0.0%   99.2%        0  <module>             app/main.py:3\n");
}

Test(summary, color)
{
	add_stack(&profile, 95, {"hot", "a.py", 1, 1});
	add_stack(&profile, 5, {"cold", "a.py", 2, 2});
	style.color = true;
	check("\x1b[1m  self%  total%  samples  function  file:line\x1b[0m\n"
	      "\x1b[1;31m  95.0%\x1b[0m   95.0%       95  \x1b[1;31mhot\x1b[0m       a.py:1\n"
	      "   5.0%    5.0%        5  cold      a.py:2\n");
}

Test(summary, rest_is_summed_up)
{
	char name[8];

	for (uint32_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%02u", i);
		add_stack(&profile, 100 - i, {name, "a.py", i + 1, 1});
	}
	style.max_rows = 2;
	check("  self%  total%  samples  function  file:line\n"
	      "   5.5%    5.5%      100  f00       a.py:1\n"
	      "   5.5%    5.5%       99  f01       a.py:2\n"
	      "  89.0%             1611  ... and 18 more\n");
	style.max_rows = 19;
	format();
	cr_assert_not_null(strstr(buf.data, "... and 1 more\n"));
	style.max_rows = 20;
	format();
	cr_assert_null(strstr(buf.data, "more"));
	style.max_rows = 0;
	format();
	cr_assert_null(strstr(buf.data, "more"));
	cr_assert_not_null(strstr(buf.data, "f19"));
}

Test(summary, long_texts_share_the_width)
{
	static char longest[10000];

	add_stack(&profile, 1,
		  {"Application.handle_request.<locals>.dispatch_to_controller.<locals>.wrapper",
		   "/usr/lib/python3/dist-packages/framework/controllers/dispatch.py", 1234, 1});
	check("  self%  total%  samples  function                            file:line\n"
	      " 100.0%  100.0%        1  Application.handl…<locals>.wrapper  …/dispatch.py:1234\n");
	check_width(80);
	style.width = 120;
	format();
	check_width(120);
	cr_assert_not_null(strstr(buf.data, "…/framework/controllers/dispatch.py:1234\n"));
	style.width = 0;
	format();
	cr_assert_not_null(strstr(buf.data, "dispatch_to_controller"));
	cr_assert_not_null(strstr(buf.data, "/usr/lib/python3/dist-packages"));
	/* One that is longer than any line should be pushes its own place only. */
	memset(longest, 'f', sizeof(longest) - 1);
	add_stack(&profile, 1, {longest, "a.py", 1, 1});
	format();
	cr_expect_leq(strcspn(buf.data, "\n"), 150, "%.300s", buf.data);
	cr_expect_not_null(strstr(buf.data, "f  a.py:1\n"), "no place behind it");
}

/* What one of them does not need, the other one gets. */
Test(summary, short_text_leaves_room)
{
	add_stack(&profile, 1,
		  {"f", "/usr/lib/python3/dist-packages/framework/controllers/dispatch.py", 1234, 1});
	format();
	check_width(80);
	cr_assert_not_null(strstr(buf.data, "…/framework/controllers/dispatch.py:1234\n"), "%s", buf.data);
	profile__free(&profile);
	open_profile();
	add_stack(&profile, 1, {"a_function_name_of_forty_characters_1234", "a.py", 1, 1});
	format();
	check_width(80);
	cr_assert_not_null(strstr(buf.data, "a_function_name_of_forty_characters_1234"), "%s", buf.data);
}

/* Without a slash in reach the end of the name itself is kept. */
Test(summary, long_file_name)
{
	add_stack(&profile, 1,
		  {"some_function_with_quite_a_long_name", "/srv/a_module_whose_name_does_not_fit_in_here.py",
		   1, 1});
	format();
	check_width(80);
	cr_assert_not_null(strstr(buf.data, "  some_function…_a_long_name  …does_not_fit_in_here.py:1\n"),
			   "%s", buf.data);
}

Test(summary, wide_and_combining_characters)
{
	/* Six ideographs take twelve columns; "é" of two characters takes one. */
	add_stack(&profile, 2,
		  {"\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd\xe6\x95\xb0", "a.py", 1, 1});
	add_stack(&profile, 1,
		  {"caf"
		   "e\xcc\x81",
		   "a.py", 2, 2});
	check("  self%  total%  samples  function      file:line\n"
	      "  66.7%   66.7%        2  "
	      "\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd\xe6\x95\xb0\xe5\x87\xbd\xe6\x95\xb0  a.py:1\n"
	      "  33.3%   33.3%        1  cafe\xcc\x81          a.py:2\n");
}

Test(summary, hostile_names)
{
	add_stack(&profile, 1, {"\x1b[2J\n", "\xff\xe2\x80\xae.py", 1, 1});
	check("  self%  total%  samples  function     file:line\n"
	      " 100.0%  100.0%        1  \\x1b[2J\\x0a  \\xff\\u202e.py:1\n");
}

/* Counts of any size move the columns, but stay in line. */
Test(summary, huge_counts)
{
	add_stack(&profile, 10000000000000000000ull, {"f", "a.py", 1, 1});
	add_stack(&profile, 1, {"g", "a.py", 2, 2});
	check("  self%  total%               samples  function  file:line\n"
	      " 100.0%  100.0%  10000000000000000000  f         a.py:1\n"
	      "   0.0%    0.0%                     1  g         a.py:2\n");
}

/* Weights are time: whole samples where each stands for a period, else seconds, and what they were spent on.
 */
Test(summary, units)
{
	profile.period_ns = 10101010;
	add_stack(&profile, 3 * 10101010, {"f", "a.py", 1, 1});
	format();
	check("  self%  total%  samples  function  file:line\n"
	      " 100.0%  100.0%        3  f         a.py:1\n");
	profile.unit = PROFILE_TIME;
	format();
	check("  self%  total%  seconds  mostly  function  file:line\n"
	      " 100.0%  100.0%    0.030  on CPU  f         a.py:1\n");
}

/* A wait is its function's own time; which of several: the longest. */
Test(summary, waits)
{
	struct frame sleep = {.kind = FRAME_SPECIAL, .wait = true}, lock = sleep;
	uint32_t node, f;

	profile.unit = PROFILE_TIME;
	sleep.function = strtab__add(profile.strings, "[sleep]", 7);
	lock.function = strtab__add(profile.strings, "[I/O: epoll_wait]", 17);
	f = frame_table__add(&profile.frames,
			     &(struct frame){.function = strtab__add(profile.strings, "f", 1),
					     .file = strtab__add(profile.strings, "a.py", 4),
					     .line = 1});
	node = trie__child(&profile.trie, TRIE_ROOT, f);
	trie__add(&profile.trie, node, 1000000);
	trie__add(&profile.trie, trie__child(&profile.trie, node, frame_table__add(&profile.frames, &sleep)),
		  5000000);
	trie__add(&profile.trie, trie__child(&profile.trie, node, frame_table__add(&profile.frames, &lock)),
		  14000000);
	format();
	check("  self%  total%  seconds  mostly           function  file:line\n"
	      " 100.0%  100.0%    0.020  I/O: epoll_wait  f         a.py:1\n");
}

/*
 * Every width, names of all kinds and lengths: never wider than asked from 60 columns on, never a crash
 * below.
 */
Test(summary, any_width)
{
	static const char *const pieces[] = {
		"a", "/", "name_", "\xe4\xb8\xad", "e\xcc\x81", "\xf0\x9f\x98\x80", "\xff", "."};
	unsigned int seed = 5;

	for (int round = 0; round < 400; round++) {
		profile__free(&profile);
		open_profile();
		for (int i = 0; i < 5; i++) {
			char texts[2][256] = {"", ""};

			for (int part = rand_r(&seed) % 80; part > 0; part--)
				strcat(texts[part % 2], pieces[(size_t)rand_r(&seed) % 8]);
			add_stack(&profile, (uint64_t)i + 1, {texts[0], texts[1], 1, 1});
		}
		style.width = (unsigned int)round % 200 + 1;
		format();
		if (style.width >= 60)
			check_width(style.width);
	}
}
