/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands below a wait: it belongs to the waiter in the table of functions, and has a table of its own.
 */
#include "out/blame_table.h"

#include "base/utf8.h"
#include "out/summary.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

static struct profile profile;
static struct buf buf;
static struct summary_style style;

static void start(void)
{
	cr_assert_eq(profile__init(&profile, 100000), 0);
	profile.unit = PROFILE_TIME;
	style = (struct summary_style){.group = GROUP_LINE, .max_rows = SUMMARY_ROWS};
}

static void stop(void)
{
	buf__free(&buf);
	profile__free(&profile);
}

TestSuite(blame_table, .init = start, .fini = stop);

/* Frames: "name" of x.py at line 3, "[note]", "[[wait]". The last one is NULL. */
static void add(uint64_t ms, ...)
{
	uint32_t node = TRIE_ROOT;
	const char *name;
	va_list names;

	va_start(names, ms);
	while ((name = va_arg(names, const char *))) {
		bool note = name[0] == '[', wait = note && name[1] == '[';
		struct frame frame = {.kind = note ? FRAME_SPECIAL : FRAME_PYTHON, .wait = wait};

		name += wait;
		frame.function = strtab__add(profile.strings, name, strlen(name));
		if (!note) {
			frame.file = strtab__add(profile.strings, "x.py", 4);
			frame.line = 3;
		}
		node = trie__child(&profile.trie, node, frame_table__add(&profile.frames, &frame));
	}
	va_end(names);
	trie__add(&profile.trie, node, ms * 1000000);
}

static const char *format(int (*format_)(const struct profile *profile, const struct summary_style *style,
					 struct buf *buf))
{
	buf__free(&buf);
	cr_assert_eq(format_(&profile, &style, &buf), 0);
	buf__addc(&buf, '\0');
	return buf.data;
}

#define WAITS "[[waits for the GIL]"

static void add_some(void)
{
	add(2500, "main", "burn", "[[holds the GIL]", NULL);
	add(1000, "main", "take", WAITS, "main", "burn", "[holder: on the CPU]", NULL);
	add(500, "main", "take", WAITS, "main", "nap", "[holder: sleep]", NULL);
	add(250, "main", "burn", WAITS, "main", "take", "[holder: on the CPU]", NULL);
	add(50, "main", "burn", WAITS, "[holder not seen]", NULL);
	add(200, "start", "main", "take", WAITS, "start", "main", "burn", "[holder: on the CPU]", NULL);
}

Test(blame_table, rows)
{
	add_some();
	cr_expect_str_eq(format(blame_table__format),
			 "\n"
			 "  waited%  seconds  waiter         held by        meanwhile\n"
			 "    60.0%    1.200  take (x.py:3)  burn (x.py:3)  on the CPU\n"
			 "    25.0%    0.500  take (x.py:3)  nap (x.py:3)   sleep\n"
			 "    12.5%    0.250  burn (x.py:3)  take (x.py:3)  on the CPU\n"
			 "     2.5%    0.050  burn (x.py:3)  -              [holder not seen]\n");
	style.max_rows = 1;
	cr_expect(strstr(format(blame_table__format), "\n    40.0%    0.800  ... and 3 more\n"), "%s", buf.data);
}

/* In a recording such words may be anybody's. */
Test(blame_table, hostile_words)
{
	add(500, "take", WAITS, "burn", "[holder: \x1b[31m]", NULL);
	add(400, "nap", "[[\x1b]0;title\a]", NULL);
	cr_expect(strstr(format(blame_table__format), "take (x.py:3)  burn (x.py:3)  \\x1b[31m\n"), "%s",
		  buf.data);
	cr_expect(strstr(format(summary__format), "\\x1b]0;title\\x07 "), "%s", buf.data);
	cr_expect(!strchr(buf.data, '\x1b'));
}

Test(blame_table, only_where_there_is_something_to_tell)
{
	add(2500, "main", "burn", "[[holds the GIL]", NULL);
	add(500, "main", "nap", "[[sleep]", NULL);
	cr_expect_str_eq(format(blame_table__format), "");
}

/* The holder's functions were not on the waiter's stack. */
Test(blame_table, functions_of_the_waiter)
{
	add_some();
	cr_expect_str_eq(format(summary__format),
			 "  self%  total%    held  waited  mostly             function  file:line\n"
			 "  62.2%   62.2%   2.500   0.300  holds the GIL      burn      x.py:3\n"
			 "  37.8%   37.8%   0.000   1.700  waits for the GIL  take      x.py:3\n"
			 "   0.0%  100.0%   0.000   0.000                     main      x.py:3\n"
			 "   0.0%    4.4%   0.000   0.000                     start     x.py:3\n");
	style.max_rows = 1;
	cr_expect(strstr(format(summary__format), "\n  37.8%           0.000   1.700                 ... and 3 more\n"),
		  "%s", buf.data);
}

Test(blame_table, waits_by_reason)
{
	struct profile_waits waits;

	add_some();
	cr_assert_eq(profile__waits(&profile, &waits), 0);
	cr_assert_eq(waits.items.len, 2);
	cr_expect_eq(waits.items.items[0].time_ns, 2500000000);
	cr_expect_eq(waits.items.items[1].time_ns, 2000000000);
	profile_waits__free(&waits);
}

Test(blame_table, hostile_and_long_names)
{
	char name[500];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	add(10, "evil\x1b[2J", WAITS, name, "[holder: on the CPU]", NULL);
	add(10, WAITS, "[holder: sleep]", NULL);
	style.width = 80;
	format(blame_table__format);
	cr_expect(!strchr(buf.data, '\x1b'), "%s", buf.data);
	cr_expect(strstr(buf.data, "evil\\x1b"), "%s", buf.data);
	for (char *line = buf.data, *end; (end = strchr(line, '\n')); line = end + 1)
		cr_expect_leq(utf8_width(line, (size_t)(end - line)), 80, "%.*s", (int)(end - line), line);
}
