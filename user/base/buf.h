/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Growable output buffer. An allocation failure is sticky (`err`), so that a writer appends without checking
 * and looks at buf->err once, before it writes the bytes out. Zero-initialised is empty.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len;
	size_t cap;
	int err; /* 0 or -ENOMEM */
};

void buf__add(struct buf *buf, const void *bytes, size_t len);
void buf__adds(struct buf *buf, const char *s);
void buf__addc(struct buf *buf, char c);
void buf__add_number(struct buf *buf, uint64_t number); /* decimal; what there may be millions of */
void buf__addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Append text for a terminal or a line-based file: C0 and C1 control characters, DEL, U+2028/2029, the
 * bidirectional controls, bytes that are not valid UTF-8, and every ASCII character of `also` (may be NULL)
 * become \xNN or \uNNNN escapes; a backslash that would itself read as such an escape is doubled.
 */
void buf__add_escaped(struct buf *buf, const char *s, const char *also);

/*
 * Write all bytes to fd, retrying on EINTR and short writes. Returns buf->err, 0 or -errno.
 */
int buf__write_fd(const struct buf *buf, int fd);

void buf__free(struct buf *buf);
