/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See page.h.
 */
#include "out/page.h"

#include <errno.h>
#include <string.h>

/* Where the data goes. */
#define PLACE "@PROFILE@"

/* In JSON "<" stands in strings only, where it may as well be an escape; so nothing ends the script element.
 */
static void add_as_data(struct buf *buf, const struct buf *json)
{
	const char *from = json->data, *end = json->data + json->len, *mark;

	for (; (mark = memchr(from, '<', (size_t)(end - from))); from = mark + 1) {
		buf__add(buf, from, (size_t)(mark - from));
		buf__adds(buf, "\\u003c");
	}
	buf__add(buf, from, (size_t)(end - from));
}

int page__write(struct buf *buf, const unsigned char *page, size_t len, const struct buf *json)
{
	const unsigned char *place = memmem(page, len, PLACE, strlen(PLACE)), *rest;

	if (!place)
		return -EINVAL;
	rest = place + strlen(PLACE);
	buf__add(buf, page, (size_t)(place - page));
	add_as_data(buf, json);
	buf__add(buf, rest, len - (size_t)(rest - page));
	return buf->err;
}
