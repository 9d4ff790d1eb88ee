/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two forms of a dump: every word in its place, and nothing that a target makes up gets through as it is.
 */
#include "out/dump_writer.h"

#include "base/util.h"
#include "base/utf8.h"
#include "json_check.h"
#include "base/json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct dump dump;
static struct buf buf;

static uint32_t str(const char *text)
{
	return strtab__add(dump.strings, text, strlen(text));
}

static struct dump_thread *add_thread(int64_t interpreter, struct dump_thread thread)
{
	struct dump_interpreter new = {.id = interpreter};
	struct dump_interpreter *last =
		dump.interpreters.len ? &dump.interpreters.items[dump.interpreters.len - 1] : NULL;

	if (!last || last->id != interpreter) {
		cr_assert_eq(vec__push(&dump.interpreters, new), 0);
		last = &dump.interpreters.items[dump.interpreters.len - 1];
	}
	cr_assert_eq(vec__push(&last->threads, thread), 0);
	return &last->threads.items[last->threads.len - 1];
}

static struct dump_frame *add_frame(struct dump_thread *thread, struct dump_frame frame)
{
	cr_assert_eq(vec__push(&thread->frames, frame), 0);
	return &thread->frames.items[thread->frames.len - 1];
}

static void begin(void)
{
	cr_assert_eq(dump__init(&dump, 4711), 0);
	dump.command = str("python app.py");
	snprintf(dump.version, sizeof(dump.version), "3.15.0");
	dump.readings = 2;
	dump.consistent = true;
}

static void end(void)
{
	dump__free(&dump);
	buf__free(&buf);
}

TestSuite(dump, .init = begin, .fini = end);

static const char *write_text(unsigned int width, bool color)
{
	struct dump_style style = {width, color};

	buf.len = 0;
	cr_assert_eq(dump__write_text(&dump, &style, &buf), 0);
	buf__addc(&buf, '\0');
	return buf.data;
}

static const char *write_json(void)
{
	buf.len = 0;
	cr_assert_eq(dump__write_json(&dump, &buf), 0);
	cr_assert(json_is_valid(buf.data, buf.len), "%.*s", (int)buf.len, buf.data);
	buf__addc(&buf, '\0');
	return buf.data;
}

#define expect_text(words) cr_expect_str_eq(write_text(0, false), words, "it is:\n%s", buf.data)
#define expect_json(words) cr_expect(strstr(write_json(), words), "%s is not in:\n%s", words, buf.data)

static void add_ordinary(void)
{
	struct dump_thread *thread = add_thread(0, (struct dump_thread){.tid = 4711,
									.inner_id = 4711,
									.ident = 0x7f00,
									.name = str("MainThread"),
									.name_is_python = true,
									.main = true,
									.run = DUMP_RUNNING,
									.gil = DUMP_GIL_HOLDS,
									.exception = DUMP_EXCEPTION_HANDLED,
									.consistent = true});
	struct dump_local locals[] = {{str("n"), str("41"), true, false},
				      {str("x"), str("'y'"), false, true}};

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(vec__push(&thread->locals, locals[i]), 0);
	add_frame(thread, (struct dump_frame){.function = str("leaf"),
					      .file = str("/srv/app.py"),
					      .line = 12,
					      .first_line = 10,
					      .source = str("total += step(total)"),
					      .from_c = true,
					      .has_locals = true,
					      .local_count = 2});
	add_frame(thread, (struct dump_frame){.function = str("<module>"), .file = str("/srv/app.py")});
	add_thread(0, (struct dump_thread){.tid = 4713,
					   .inner_id = 3,
					   .name = str("worker"),
					   .run = DUMP_WAITING,
					   .wait = "futex",
					   .gil = DUMP_GIL_WAITS,
					   .stack = DUMP_STACK_EMPTY,
					   .consistent = true});
}

Test(dump, text)
{
	add_ordinary();
	expect_text("Process 4711: python app.py\n"
		    "Python 3.15.0, 2 threads; two readings agree\n"
		    "\n"
		    "Thread 4711 (MainThread) holds the GIL, on CPU, handling an exception\n"
		    "    leaf (/srv/app.py:12)\n"
		    "        total += step(total)\n"
		    "          n = 41\n"
		    "          x = (changing) 'y'\n"
		    "    <module> (/srv/app.py)\n"
		    "\n"
		    "Thread 4713 [3 inside] (worker) waits for the GIL\n"
		    "    [no Python frames]\n");
}

/* What stands still can be read, and is told apart from what only waits. */
Test(dump, halted)
{
	add_thread(0, (struct dump_thread){
			      .tid = 4711, .name = str("a"), .run = DUMP_STOPPED, .consistent = true});
	add_thread(0, (struct dump_thread){.tid = 4712,
					   .name = str("b"),
					   .run = DUMP_FROZEN,
					   .wait = "futex",
					   .consistent = true});
	dump.inner_pid = 3;
	dump.halted = str("frozen with its cgroup /x");
	expect_text("Process 4711 [3 inside]: python app.py\n"
		    "Python 3.15.0, 2 threads; two readings agree\n"
		    "It is frozen with its cgroup /x\n"
		    "\n"
		    "Thread 4711 (a) stopped\n"
		    "\n"
		    "Thread 4712 (b) frozen (futex)\n");
	expect_json("\"inner_pid\": 3, ");
	expect_json("\"halted\": \"frozen with its cgroup /x\", ");
	expect_json("\"state\": \"frozen\", \"waits_in\": \"futex\"");
}

Test(dump, approximate_line)
{
	add_frame(add_thread(0, (struct dump_thread){.tid = 4711, .name = str("main"), .consistent = true}),
		  (struct dump_frame){
			  .function = str("hot"), .file = str("a.py"), .line = 7, .approximate = true});
	expect_text("Process 4711: python app.py\n"
		    "Python 3.15.0, 1 thread; two readings agree\n"
		    "\n"
		    "Thread 4711 (main) in an unknown state\n"
		    "    hot (a.py:~7)\n");
	expect_json("\"line\": 7, \"first_line\": null, \"source\": null, \"line_approximate\": true, ");
}

Test(dump, json)
{
	add_ordinary();
	expect_json("{\"pid\": 4711, \"inner_pid\": null, \"command\": \"python app.py\", \"python\": "
		    "\"3.15.0\", \"halted\": null, \"consistent\": "
		    "true, "
		    "\"readings\": 2, \"interpreters\": [\n{\"id\": 0, ");
	expect_json(
		"{\"tid\": 4711, \"native_id\": 4711, \"ident\": 32512, \"name\": \"MainThread\", "
		"\"name_source\": \"python\", \"main\": true, \"state\": \"running\", \"waits_in\": null, "
		"\"gil\": \"holds\", \"exception\": \"handling\", \"collecting_garbage\": false, "
		"\"consistent\": true, \"stack\": \"read\", \"truncated\": false, \"frames\": [\n");
	expect_json("{\"function\": \"leaf\", \"file\": \"/srv/app.py\", \"line\": 12, \"first_line\": 10, "
		    "\"source\": \"total += step(total)\", \"line_approximate\": false, \"from_c\": true, "
		    "\"started_gc\": false}, \n");
	expect_json("{\"function\": \"<module>\", \"file\": \"/srv/app.py\", \"line\": null, "
		    "\"first_line\": null, \"source\": null, ");
	expect_json("\"waits_in\": \"futex\", \"gil\": \"waits\", \"exception\": \"unknown\"");
	expect_json("\"native_threads\": []}\n");
	cr_expect_null(strstr(write_json(), "locals"));
	dump.with_locals = true;
	expect_json(
		"\"locals\": [{\"name\": \"n\", \"value\": \"41\", \"argument\": true, \"changed\": false}, "
		"{\"name\": \"x\", \"value\": \"'y'\", \"argument\": false, \"changed\": true}]}");
	expect_json("\"locals\": null}");
}

/* What was asked for and is not there is told. */
Test(dump, locals_that_are_not_read)
{
	add_ordinary();
	write_text(0, false);
	cr_expect_null(strstr(buf.data, "not read"));
	dump.with_locals = true;
	write_text(0, false);
	cr_expect(strstr(buf.data, "two readings agree\nVariables of this version are not read\n\n"), "%s",
		  buf.data);
	cr_expect_null(strstr(buf.data, "[variables not read]"));
	dump.locals_known = true;
	write_text(0, false);
	cr_expect_null(strstr(buf.data, "of this version"));
	cr_expect(strstr(buf.data, "          x = (changing) 'y'\n    <module> (/srv/app.py)\n"
				   "          [variables not read]\n"),
		  "%s", buf.data);
}

Test(dump, threads_that_cannot_be_told)
{
	struct dump_thread *thread;

	dump.readings = 20;
	add_thread(0, (struct dump_thread){.ident = 0x7f00, .stack = DUMP_STACK_CHANGING});
	add_thread(0, (struct dump_thread){
			      .tid = 2, .run = DUMP_WAITING, .wait = "read", .stack = DUMP_STACK_UNREADABLE});
	thread = add_thread(7, (struct dump_thread){.tid = 3,
						    .name = str("gc"),
						    .run = DUMP_RUNNING,
						    .gil = DUMP_GIL_NONE,
						    .exception = DUMP_EXCEPTION_RAISED,
						    .collects = true,
						    .truncated = true});
	add_frame(thread,
		  (struct dump_frame){.function = str("[code freed before it was read]"), .collects = true});
	cr_assert_eq(vec__push(&dump.natives,
			       ((struct dump_native){
				       .tid = 9, .inner_id = 3, .name = str("pool"), .run = DUMP_RUNNING})),
		     0);
	expect_text("Process 4711: python app.py\n"
		    "Python 3.15.0, 3 threads in 2 interpreters; 3 changed during each of 20 readings\n"
		    "\n"
		    "Thread 0x7f00 () in interpreter 0 in an unknown state\n"
		    "    [it changed during every reading]\n"
		    "\n"
		    "Thread 2 () in interpreter 0 idle (read)\n"
		    "    [it leads to memory that cannot be read]\n"
		    "\n"
		    "Thread 3 (gc) in interpreter 7 on CPU, raising an exception, collecting garbage\n"
		    "    [changed while it was read; as it was at one instant:]\n"
		    "    [garbage collection]\n"
		    "    [code freed before it was read]\n"
		    "    [truncated]\n"
		    "\n"
		    "Thread 9 [3 inside] (pool) runs no Python code, on CPU\n");
	expect_json("{\"tid\": null, \"native_id\": null, ");
	expect_json("{\"tid\": 9, \"native_id\": 3, \"name\": \"pool\", \"state\": \"running\", "
		    "\"waits_in\": null}]}");
}

/* No line is wider than asked for, but that of a function and its place may be if the name alone is too wide.
 */
Test(dump, narrow)
{
	struct dump_thread *thread =
		add_thread(0, (struct dump_thread){.tid = 1, .name = str("n"), .consistent = true});
	const char *line, *next;
	char wide[600];

	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	dump.command = str(wide);
	add_frame(thread,
		  (struct dump_frame){
			  .function = str("f"), .file = str(wide), .line = 123456, .source = str(wide)});
	write_text(80, false);
	for (line = buf.data; *line; line = next + 1) {
		next = strchr(line, '\n');
		cr_assert(next);
		cr_expect_leq(utf8_width(line, next - line), 80, "%.*s", (int)(next - line), line);
	}
	cr_expect(strstr(buf.data, "    f (\xe2\x80\xa6xxx"));
	cr_expect(strstr(buf.data, "x:123456)\n"));
	for (unsigned int width = 1; width < 80; width++)
		write_text(width, true);
}

static const char hostile[] = "a\x1b[31m\n\t\x7f\"\\'\xff\xc2\x9b\xe2\x80\xae\xed\xa0\x80{}<b>";

Test(dump, hostile_names)
{
	struct dump_thread *thread =
		add_thread(0, (struct dump_thread){.tid = 1, .name = str(hostile), .consistent = true});

	dump.with_locals = true;
	dump.command = str(hostile);
	cr_assert_eq(vec__push(&thread->locals, ((struct dump_local){.name = str(hostile)})), 0);
	add_frame(thread, (struct dump_frame){.function = str(hostile),
					      .file = str(hostile),
					      .source = str(hostile),
					      .has_locals = true,
					      .local_count = 1});
	cr_assert_eq(vec__push(&dump.natives, ((struct dump_native){.tid = 9, .name = str(hostile)})), 0);
	write_text(0, false);
	for (size_t at = 0; at + 1 < buf.len;) {
		uint32_t code;
		size_t step = utf8_decode(buf.data + at, buf.len - 1 - at, &code);

		cr_assert(step && (code == '\n' || !utf8_is_unsafe(code)), "byte %zu", at);
		at += step;
	}
	write_json();
	for (size_t at = 0; at + 1 < buf.len; at++)
		cr_assert((unsigned char)buf.data[at] >= 0x20 || buf.data[at] == '\n');
	cr_expect(strstr(buf.data, "\"file\": \"a\\\\x1b[31m") && strstr(buf.data, "\\\\xff"), "%s", buf.data);
}

Test(dump, json_strings)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
		{"", "\"\""},
		{"plain 漢字", "\"plain 漢字\""},
		{"\"\\/", "\"\\\"\\\\/\""},
		{"\n\x1b\x7f", "\"\\u000a\\u001b\\u007f\""},
		{"\xc2\x9b\xe2\x80\xa8\xe2\x80\xae", "\"\\u009b\\u2028\\u202e\""},
		{"\xff\xc3(", "\"\\ufffd\\ufffd(\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		buf.len = 0;
		json__string(&buf, cases[i].text, strlen(cases[i].text));
		buf__addc(&buf, '\0');
		cr_expect_str_eq(buf.data, cases[i].json);
		cr_expect(json_is_valid(buf.data, buf.len - 1));
	}
	buf.len = 0;
	json__string(&buf, "a\0b", 3);
	buf__addc(&buf, '\0');
	cr_expect_str_eq(buf.data, "\"a\\u0000b\"");
}

Test(dump, random_names)
{
	unsigned int seed = 1;

	for (int round = 0; round < 2000; round++) {
		char text[40];
		size_t len = rand_r(&seed) % sizeof(text);

		for (size_t i = 0; i < len; i++)
			text[i] = rand_r(&seed) % 3 ? rand_r(&seed) % 256
						    : "\\\"\xe2\x80u0{"[rand_r(&seed) % 7];
		buf.len = 0;
		json__string(&buf, text, len);
		cr_assert(json_is_valid(buf.data, buf.len));
	}
}

Test(dump, validator)
{
	static const char *const good[] = {"0", "-1.5e+3", " [ ] ", "{\"a\": [true, false, null, {}]}",
					   "\"\\u00e9\""};
	static const char *const bad[] = {"",	     "01",    "[1,]", "{\"a\" 1}", "{a: 1}", "\"\n\"",
					  "\"\\x\"", "[1] 2", "tru",  "\"\xff\"",  "[",	     "{\"a\": 1"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_expect(json_is_valid(good[i], strlen(good[i])), "%s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_not(json_is_valid(bad[i], strlen(bad[i])), "%s", bad[i]);
}
