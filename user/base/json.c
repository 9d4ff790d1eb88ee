/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See json.h.
 */
#include "base/json.h"

#include "base/utf8.h"

#define REPLACEMENT "\\ufffd"

void json__string(struct buf *buf, const char *s, size_t len)
{
	buf__addc(buf, '"');
	for (size_t pos = 0; pos < len;) {
		uint32_t code;
		size_t step = utf8_decode(s + pos, len - pos, &code);

		if (!step)
			buf__adds(buf, REPLACEMENT);
		else if (code == '"' || code == '\\')
			buf__addf(buf, "\\%c", (char)code);
		else if (utf8_is_unsafe(code))
			buf__addf(buf, "\\u%04x", code);
		else
			buf__add(buf, s + pos, step);
		pos += step ?: 1;
	}
	buf__addc(buf, '"');
}
