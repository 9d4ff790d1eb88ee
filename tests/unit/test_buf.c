/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output buffer, and above all the escaping of hostile text: nothing unsafe comes out, ordinary text
 * stays as it is, and what comes out can be read back to exactly what went in.
 */
#include "base/buf.h"

#include "base/utf8.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_escaped(const char *in, const char *also, const char *want)
{
	struct buf buf = {0};

	buf__add_escaped(&buf, in, also);
	buf__addc(&buf, '\0');
	cr_assert_eq(buf.err, 0);
	cr_assert_str_eq(buf.data, want);
	buf__free(&buf);
}

Test(buf, appends)
{
	struct buf buf = {0};

	buf__adds(&buf, "");
	buf__add(&buf, NULL, 0);
	cr_assert_null(buf.data);
	buf__adds(&buf, "ab");
	buf__addc(&buf, '\0');
	buf__add(&buf, "cd", 2);
	buf__addf(&buf, "%s-%d", "x", 7);
	cr_assert_eq(buf.len, 8);
	cr_assert_eq(memcmp(buf.data, "ab\0cdx-7", 8), 0);
	buf__free(&buf);
	cr_assert_null(buf.data);
	cr_assert_eq(buf.len + buf.cap, 0);
	buf__free(NULL);
}

Test(buf, addf_of_any_length)
{
	struct buf buf = {0};

	for (int len = 0; len < 2000; len++)
		buf__addf(&buf, "%*s", len, "");
	buf__addf(&buf, "%s", "");
	cr_assert_eq(buf.err, 0);
	cr_assert_eq(buf.len, 1999 * 2000 / 2);
	for (size_t i = 0; i < buf.len; i++)
		cr_assert_eq(buf.data[i], ' ');
	buf__free(&buf);
}

Test(buf, failure_is_sticky)
{
	struct buf buf = {0};

	buf__adds(&buf, "kept");
	buf__add(&buf, "x", SIZE_MAX - 2);
	cr_assert_eq(buf.err, -ENOMEM);
	buf__adds(&buf, "more");
	buf__addf(&buf, "%d", 1);
	buf__add_escaped(&buf, "\n", NULL);
	cr_assert_eq(buf.len, 4);
	cr_assert_eq(buf__write_fd(&buf, STDERR_FILENO), -ENOMEM);
	buf__free(&buf);
	cr_assert_eq(buf.err, 0);
}

Test(escape, ordinary_text_is_unchanged)
{
	check_escaped("", NULL, "");
	check_escaped("work.<locals>.<lambda>", NULL, "work.<locals>.<lambda>");
	check_escaped("h\xc3\xa9llo \xe4\xb8\xad \xf0\x9f\x98\x80", NULL,
		      "h\xc3\xa9llo \xe4\xb8\xad \xf0\x9f\x98\x80");
	check_escaped("C:\\users\\new\\\\share\\", NULL, "C:\\users\\new\\\\share\\");
	check_escaped("a;b", NULL, "a;b");
}

Test(escape, controls)
{
	check_escaped("\x01\x1b[31m\r\n\t\x7f", NULL, "\\x01\\x1b[31m\\x0d\\x0a\\x09\\x7f");
	check_escaped("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", NULL, "\\u0080\\u009b\\u009f\xc2\xa0");
	check_escaped("\xe2\x80\xa8\xe2\x80\xa9", NULL, "\\u2028\\u2029");
	check_escaped("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", NULL, "\\u061c\\u200e\\u200f");
	check_escaped("\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9", NULL,
		      "\\u202a\\u202e\\u2066\\u2069");
	/* The neighbours of each range pass. */
	check_escaped("\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa", NULL,
		      "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa");
}

Test(escape, malformed_bytes_one_by_one)
{
	check_escaped("\xff", NULL, "\\xff");
	check_escaped("a\x80z", NULL, "a\\x80z");
	check_escaped("\xc0\xaf", NULL, "\\xc0\\xaf");
	check_escaped("\xe0\x80\xaf", NULL, "\\xe0\\x80\\xaf");
	check_escaped("\xed\xa0\x80", NULL, "\\xed\\xa0\\x80");
	check_escaped("\xed\xa0\xbd\xed\xb8\x80", NULL, "\\xed\\xa0\\xbd\\xed\\xb8\\x80");
	check_escaped("\xf4\x90\x80\x80", NULL, "\\xf4\\x90\\x80\\x80");
	check_escaped("\xf0\x9f\x98", NULL, "\\xf0\\x9f\\x98");
	check_escaped("\xf0\x9f\x98z", NULL, "\\xf0\\x9f\\x98z");
	check_escaped("\xe2\x82\xc3\xa9", NULL, "\\xe2\\x82\xc3\xa9");
	check_escaped("\xc3", NULL, "\\xc3");
}

Test(escape, also)
{
	check_escaped("a;b c", ";\n", "a\\x3bb c");
	check_escaped("\xc3\xa9;", ";", "\xc3\xa9\\x3b");
	check_escaped("a\\b", "\\", "a\\x5cb");
	check_escaped("abc", "", "abc");
}

Test(escape, backslashes)
{
	check_escaped("\\x41", NULL, "\\\\x41");
	check_escaped("\\u20AC", NULL, "\\\\u20AC");
	check_escaped("\\x4", NULL, "\\x4");
	check_escaped("\\x4g", NULL, "\\x4g");
	check_escaped("\\u20a", NULL, "\\u20a");
	check_escaped("\\U0001f600", NULL, "\\U0001f600");
	check_escaped("\\\\x41", NULL, "\\\\\\\\x41");
	/* A real escape after a backslash must not read as a doubled one. */
	check_escaped("\\\n", NULL, "\\\\\\x0a");
	check_escaped("\\\xff", NULL, "\\\\\\xff");
	check_escaped("\\;", ";", "\\\\\\x3b");
	check_escaped("\\;", NULL, "\\;");
}

static unsigned int hex(const char *s, size_t digits)
{
	char text[8] = {0};

	memcpy(text, s, digits);
	return (unsigned int)strtoul(text, NULL, 16);
}

/* The reader that the comment in buf.c describes. */
static size_t unescape(const char *in, char *out)
{
	char *start = out;

	while (*in) {
		size_t run = strspn(in, "\\"), digits, pairs;
		const char *next = in + run;

		if (!run) {
			*out++ = *in++;
			continue;
		}
		digits = *next == 'x' ? 2 : *next == 'u' ? 4 : 0;
		if (!digits || strspn(next + 1, "0123456789abcdefABCDEF") < digits) {
			memset(out, '\\', run);
			out += run;
			in = next;
			continue;
		}
		pairs = run / 2;
		memset(out, '\\', pairs);
		out += pairs;
		in = next;
		if (run % 2 == 0)
			continue;
		if (digits == 2) {
			*out++ = (char)hex(next + 1, 2);
		} else {
			unsigned int code = hex(next + 1, 4);

			if (code >= 0x800)
				*out++ = (char)(0xe0 | code >> 12);
			*out++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6);
			*out++ = (char)(0x80 | (code & 0x3f));
		}
		in = next + 1 + digits;
	}
	return (size_t)(out - start);
}

static void check_safe(const struct buf *buf)
{
	uint32_t code;

	for (size_t pos = 0, len; pos < buf->len; pos += len) {
		len = utf8_decode(buf->data + pos, buf->len - pos, &code);
		cr_assert_neq(len, 0, "not UTF-8");
		cr_assert(code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) && code != ';');
	}
}

/* Short strings of the pieces that matter, so that every neighbourhood comes up. */
Test(escape, reads_back)
{
	static const char *const pieces[] = {
		"\\",	    "\\", "x",	  "u",	  "4",	  "41",		  "20aF",
		";",	    "\n", "\xff", "\xc2", "\x85", "\xe2\x80\xa8", "\xed\xa0\x80",
		"\xc3\xa9", "g",  " "};
	unsigned int seed = 1;
	char in[64], back[256];

	for (int round = 0; round < 200000; round++) {
		struct buf buf = {0};
		size_t len;

		in[0] = '\0';
		for (int i = rand_r(&seed) % 8; i > 0; i--)
			strcat(in, pieces[(size_t)rand_r(&seed) % (sizeof(pieces) / sizeof(pieces[0]))]);
		buf__add_escaped(&buf, in, ";\n");
		check_safe(&buf);
		buf__addc(&buf, '\0');
		len = unescape(buf.data, back);
		if (len != strlen(in) || memcmp(in, back, len))
			cr_assert_fail("round %d: %s", round, buf.data);
		buf__free(&buf);
	}
}

Test(write, full_device)
{
	struct buf buf = {0};
	int fd = open("/dev/full", O_WRONLY);

	if (fd < 0)
		cr_skip_test("no /dev/full");
	cr_assert_eq(buf__write_fd(&buf, fd), 0, "nothing to write, nothing to fail");
	buf__adds(&buf, "text");
	cr_assert_eq(buf__write_fd(&buf, fd), -ENOSPC);
	close(fd);
	cr_assert_eq(buf__write_fd(&buf, fd), -EBADF);
	buf__free(&buf);
}

Test(write, broken_pipe)
{
	struct buf buf = {0};
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(fds), 0);
	close(fds[0]);
	buf__adds(&buf, "text");
	cr_assert_eq(buf__write_fd(&buf, fds[1]), -EPIPE);
	close(fds[1]);
	buf__free(&buf);
}

static void *read_slowly(void *arg)
{
	char part[5000];
	size_t total = 0;
	ssize_t n;

	while ((n = read(*(int *)arg, part, sizeof(part))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (part[i] != (char)('a' + (total + (size_t)i) % 26))
				return (void *)0;
		total += (size_t)n;
		usleep(100);
	}
	return (void *)total;
}

/* More than a pipe holds, into a non-blocking one: short writes and EAGAIN. */
Test(write, short_writes)
{
	enum { LEN = 1000003 };
	struct buf buf = {0};
	pthread_t reader;
	void *total;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < LEN; i++)
		buf__addc(&buf, (char)('a' + i % 26));
	cr_assert_eq(pthread_create(&reader, NULL, read_slowly, &fds[0]), 0);
	cr_assert_eq(buf__write_fd(&buf, fds[1]), 0);
	close(fds[1]);
	pthread_join(reader, &total);
	cr_assert_eq((size_t)total, LEN);
	close(fds[0]);
	buf__free(&buf);
}
