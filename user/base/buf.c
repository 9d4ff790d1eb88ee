/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Growable output bytes, and the one place that makes foreign text safe to print.
 *
 * Escaping is reversible. In a run of backslashes followed by what reads as an escape ("x" and two hex
 * digits, "u" and four), an odd number means that the last one starts a real escape and the others are halves
 * of pairs; an even number means pairs only. Any other run stands for itself, so that ordinary text stays as
 * it is.
 */
#include "base/buf.h"

#include "base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_CAP 256u

/* Room for `extra` more bytes; false when there is none, now or before. */
static bool reserve(struct buf *buf, size_t extra)
{
	size_t need, cap;
	char *data;

	if (buf->err)
		return false;
	if (__builtin_add_overflow(buf->len, extra, &need))
		goto out;
	if (need <= buf->cap)
		return true;

	cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	data = realloc(buf->data, cap);
	if (!data)
		goto out;
	buf->data = data;
	buf->cap = cap;
	return true;
out:
	buf->err = -ENOMEM;
	return false;
}

void buf__add(struct buf *buf, const void *bytes, size_t len)
{
	if (!len || !reserve(buf, len))
		return;
	memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
}

void buf__adds(struct buf *buf, const char *s)
{
	buf__add(buf, s, strlen(s));
}

void buf__addc(struct buf *buf, char c)
{
	buf__add(buf, &c, 1);
}

void buf__add_number(struct buf *buf, uint64_t number)
{
	char digits[20], *from = digits + sizeof(digits);

	do {
		*--from = (char)('0' + number % 10);
	} while (number /= 10);
	buf__add(buf, from, (size_t)(digits + sizeof(digits) - from));
}

void buf__addf(struct buf *buf, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0) {
		buf->err = buf->err ?: -ENOMEM;
		return;
	}
	/* vsnprintf ends with a NUL, which is not part of the text. */
	if (!reserve(buf, (size_t)len + 1))
		return;
	va_start(args, fmt);
	vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, args);
	va_end(args);
	buf->len += (size_t)len;
}

/* A character of the input and what becomes of it. */
struct character {
	size_t len;    /* bytes of input */
	uint32_t code; /* code point, or the byte when it is not UTF-8 */
	enum { AS_IS, AS_BYTE, AS_CODE } output;
};

static bool is_one_of(char c, const char *set)
{
	return set && c && strchr(set, c);
}

static struct character classify(const char *s, size_t len, const char *also)
{
	struct character result = {0};

	result.len = utf8_decode(s, len, &result.code);
	if (!result.len)
		return (struct character){.len = 1, .code = (unsigned char)*s, .output = AS_BYTE};
	if (result.code < 0x20 || result.code == 0x7f || (result.len == 1 && is_one_of(*s, also)))
		result.output = AS_BYTE;
	else if (utf8_is_unsafe(result.code))
		result.output = AS_CODE;
	return result;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Whether the text after a backslash makes it look like an escape of ours. s is NUL-terminated. */
static bool reads_as_escape(const char *s, const char *also)
{
	size_t digits = *s == 'x' ? 2 : *s == 'u' ? 4 : 0, i;

	if (!digits || is_one_of(*s, also))
		return false;
	for (i = 1; i <= digits && is_hex(s[i]) && !is_one_of(s[i], also); i++)
		;
	return i > digits;
}

/* Append a run of backslashes, doubled where what follows would change its meaning. Returns its length. */
static size_t add_backslashes(struct buf *buf, const char *s, size_t len, const char *also)
{
	size_t run = strspn(s, "\\"), count = run;

	if (run < len &&
	    (classify(s + run, len - run, also).output != AS_IS || reads_as_escape(s + run, also)))
		count *= 2;
	while (count--)
		buf__addc(buf, '\\');
	return run;
}

void buf__add_escaped(struct buf *buf, const char *s, const char *also)
{
	size_t len = strlen(s), pos = 0;

	while (pos < len) {
		struct character c = classify(s + pos, len - pos, also);

		if (c.output == AS_IS && c.code == '\\') {
			pos += add_backslashes(buf, s + pos, len - pos, also);
			continue;
		}
		if (c.output == AS_IS)
			buf__add(buf, s + pos, c.len);
		else
			buf__addf(buf, c.output == AS_BYTE ? "\\x%02x" : "\\u%04x", c.code);
		pos += c.len;
	}
}

int buf__write_fd(const struct buf *buf, int fd)
{
	size_t done = 0;

	if (buf->err)
		return buf->err;
	while (done < buf->len) {
		ssize_t n = write(fd, buf->data + done, buf->len - done);

		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EAGAIN) {
			/* Someone made the shared terminal or pipe non-blocking: wait as if it were not. */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			if (poll(&wait, 1, -1) < 0 && errno != EINTR)
				return -errno;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

void buf__free(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	*buf = (struct buf){0};
}
