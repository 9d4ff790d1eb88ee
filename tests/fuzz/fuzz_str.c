/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * String objects: a header, then as many characters as there are bytes for. What comes out is UTF-8 without a
 * NUL.
 */
#include "base/utf8.h"
#include "fuzz.h"
#include "py/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct py_str_layout layout = {.length = 16, .state = 32, .ascii_size = 40, .compact_size = 56};
	struct py_str_info info;
	struct buf text = {0};

	layout.wide_interned = len & 1;
	if (py_str__header(&layout, data, len, &info))
		return 0;
	check(info.kind == 1 || info.kind == 2 || info.kind == 4);
	check(info.data_bytes == info.length * info.kind && info.length <= PY_STR_MAX);
	if (!info.compact || info.data_offset > len)
		return 0;
	py_str__to_utf8(info.kind, data + info.data_offset,
			min_u64(info.length, (len - info.data_offset) / info.kind), &text);
	check(!text.err && (!text.len || !memchr(text.data, '\0', text.len)));
	for (size_t at = 0; at < text.len;) {
		uint32_t code;
		size_t step = utf8_decode(text.data + at, text.len - at, &code);

		check(step);
		at += step;
	}
	buf__free(&text);
	return 0;
}
