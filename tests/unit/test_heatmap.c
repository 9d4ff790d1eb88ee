/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The code in a heatmap: what of large files is shown, and how lines are. The whole of it: test_formats.c.
 */
#include "made.h"
#include "out/writer.h"

#include <criterion/criterion.h>

static struct profile profile;
static struct buf file;

static void begin(void)
{
	cr_assert_eq(profile__init(&profile, 100000), 0);
	profile.period_ns = 1;
}

static void end(void)
{
	buf__free(&file);
	profile__free(&profile);
}

TestSuite(heatmap, .init = begin, .fini = end);

static void write_page(void)
{
	file.len = 0;
	cr_assert_eq(heatmap_writer.write(&profile, GROUP_LINE, &file), 0);
	buf__addc(&file, '\0');
}

static void expect(const char *text)
{
	cr_expect(strstr(file.data, text), "no %s", text);
}

static void add_file(const char *name, uint32_t line, const char *text)
{
	MADE_STACK(&profile, 1, ((struct made_frame){"f", name, line, 1, FRAME_PYTHON}));
	made_add_code(&profile, name, LISTING_READ, text);
}

Test(heatmap, lines)
{
	add_file("a.py", 1, "unix\nwindows\r\nmac\rlast");
	write_page();
	expect("\"count\":4,\"code\":[[1,[\"unix\",\n\"windows\",\n\"mac\",\n\"last\"]]]");
}

Test(heatmap, characters)
{
	add_file("a.py", 1, "\tx\n ab\ty\n\"\\x1b\"\x1b\x7f\xff\n\xe2\x80\xae");
	write_page();
	expect("\"        x\",\n\" ab     y\",\n\"\\\"\\\\x1b\\\"\xe2\x90\x9b\xe2\x90\xa1\xef\xbf\xbd\",\n"
	       "\"\xe2\x9f\xa8U+202E\xe2\x9f\xa9\"");
}

/* Of a line of 10,000 bytes its beginning; of a character of three bytes nothing is cut in two. */
Test(heatmap, long_line)
{
	char text[10001];

	memset(text, 'x', 10000);
	memcpy(text + 399, "\xe2\x82\xac", 3);
	text[10000] = '\0';
	add_file("a.py", 1, text);
	write_page();
	expect("xx \xe2\x80\xa6 9601 more bytes\"");
}

/* 25 lines before and behind each one with samples; what lies between is left out, and counted. */
Test(heatmap, large_file)
{
	struct buf text = {0};

	for (int line = 1; line <= 5000; line++)
		buf__addf(&text, "line %d\n", line);
	buf__addc(&text, '\0');
	add_file("a.py", 100, text.data);
	MADE_STACK(&profile, 1, ((struct made_frame){"g", "a.py", 130, 1, FRAME_PYTHON}));
	MADE_STACK(&profile, 1, ((struct made_frame){"h", "a.py", 4999, 1, FRAME_PYTHON}));
	write_page();
	expect("\"count\":5000,\"code\":[[75,[\"line 75\",");
	expect("\"line 155\"]],\n[4974,[\"line 4974\",");
	expect("\"line 5000\"]]]");
	cr_expect(!strstr(file.data, "\"line 74\"") && !strstr(file.data, "\"line 156\""));
	buf__free(&text);
}

/* What is beyond the size of a page is left out from the coolest file on, and said to be. */
Test(heatmap, size)
{
	struct buf text = {0};
	char name[20];

	for (int line = 1; line <= 3000; line++)
		buf__addf(&text, "%0399d\n", line);
	buf__addc(&text, '\0');
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%02d.py", i);
		add_file(name, 1, text.data);
	}
	write_page();
	cr_expect_lt(file.len, 11u << 20);
	expect("{\"name\":\"07.py\",\"self\":1,\"total\":1,\"note\":null");
	expect("{\"name\":\"08.py\",\"self\":1,\"total\":1,\"note\":\"No code: there is more in hotter files "
	       "than fits");
	buf__free(&text);
}

Test(heatmap, why_there_is_no_code)
{
	static const struct {
		enum listing_state state;
		const char *words;
	} cases[] = {{LISTING_NO_FILE, "No file"},	    {LISTING_MISSING, "no file of this name"},
		     {LISTING_DENIED, "may not read"},	    {LISTING_NO_TEXT, "no text"},
		     {LISTING_TOO_LARGE, "too large"},	    {LISTING_SLOW, "too long"},
		     {LISTING_FAILED, "could not be read"}, {LISTING_GONE, "ended before"},
		     {LISTING_NOT_READ, "than is kept"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[20];

		snprintf(name, sizeof(name), "%zu.py", i);
		MADE_STACK(&profile, 1, ((struct made_frame){"f", name, 1, 1, FRAME_PYTHON}));
		made_add_code(&profile, name, cases[i].state, NULL);
	}
	MADE_STACK(&profile, 1, MADE_FRAME("f", "other.py", 1, 1));
	add_file("empty.py", 3, "");
	write_page();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect(cases[i].words);
	expect("Its code was not read.");
	expect("is empty now");
	listings__free(&profile.listings);
	write_page();
	expect("not in a recording");
}
