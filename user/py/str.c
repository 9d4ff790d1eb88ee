/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decoder of PyASCIIObject headers and of their character data (Include/cpython/unicodeobject.h). The layout
 * comes from the target's own tables; whether the bytes really are a string is for the caller to know, so
 * every field is checked before a size is made of it.
 */
#include "py/str.h"

#include "base/util.h"

#include <errno.h>

/* Bits of the state word: interned, then kind (3), compact (1), ascii (1). */
static unsigned int kind_shift(const struct py_str_layout *layout)
{
	return layout->wide_interned ? 8 : 2;
}

int py_str__header(const struct py_str_layout *layout, const uint8_t *p, size_t len, struct py_str_info *out)
{
	size_t need = max_u64((uint64_t)layout->length + sizeof(uint64_t),
			      (uint64_t)layout->state + sizeof(uint32_t));
	uint32_t bits;

	if (len < need)
		return -EINVAL;
	bits = load_u32(p + layout->state) >> kind_shift(layout);
	*out = (struct py_str_info){
		.length = load_u64(p + layout->length),
		.kind = bits & 7,
		.compact = bits >> 3 & 1,
		.ascii = bits >> 4 & 1,
	};
	if (out->kind != 1 && out->kind != 2 && out->kind != 4)
		return -EINVAL;
	if (out->length > (layout->any_length ? UINT64_MAX / 8 : PY_STR_MAX) ||
	    (out->ascii && out->kind != 1))
		return -EINVAL;

	/* Only compact ASCII does without the larger header; its data, or the pointer to it, follows. */
	out->data_offset = out->ascii && out->compact ? layout->ascii_size : layout->compact_size;
	out->data_bytes = out->length * out->kind;
	return 0;
}

static uint32_t load_code_point(uint32_t kind, const uint8_t *p)
{
	return kind == 1 ? *p : kind == 2 ? load_u16(p) : load_u32(p);
}

/* A valid code point that is not a surrogate. */
static void add_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf__addc(out, c);
	} else if (c < 0x800) {
		buf__addc(out, 0xc0 | c >> 6);
		buf__addc(out, 0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		buf__addc(out, 0xe0 | c >> 12);
		buf__addc(out, 0x80 | (c >> 6 & 0x3f));
		buf__addc(out, 0x80 | (c & 0x3f));
	} else {
		buf__addc(out, 0xf0 | c >> 18);
		buf__addc(out, 0x80 | (c >> 12 & 0x3f));
		buf__addc(out, 0x80 | (c >> 6 & 0x3f));
		buf__addc(out, 0x80 | (c & 0x3f));
	}
}

/* It stands for a byte of a file's name that could not be decoded. */
static bool is_byte(uint32_t c)
{
	return c >= 0xdc80 && c <= 0xdcff;
}

static void add_code_point(struct buf *out, uint32_t c)
{
	if (c == 0)
		buf__adds(out, "\\x00");
	else if (is_byte(c))
		buf__addf(out, "\\x%02x", c - 0xdc00);
	else if (c >= 0xd800 && c <= 0xdfff)
		buf__addf(out, "\\u%04x", c);
	else if (c > 0x10ffff)
		buf__addf(out, "\\U%08x", c);
	else
		add_utf8(out, c);
}

static void add_all(uint32_t kind, const uint8_t *data, size_t count, bool keep_bytes, struct buf *out)
{
	/* Nearly all names are ASCII: their runs go in as they are. */
	for (size_t i = 0; i < count; i++) {
		size_t start = i;

		while (kind == 1 && i < count && data[i] && data[i] < 0x80)
			i++;
		buf__add(out, data + start, i - start);
		if (i < count) {
			uint32_t c = load_code_point(kind, data + i * kind);

			if (keep_bytes && is_byte(c))
				buf__addc(out, (char)(c - 0xdc00));
			else
				add_code_point(out, c);
		}
	}
}

void py_str__to_utf8(uint32_t kind, const uint8_t *data, size_t count, struct buf *out)
{
	add_all(kind, data, count, false, out);
}

void py_str__to_bytes(uint32_t kind, const uint8_t *data, size_t count, struct buf *out)
{
	add_all(kind, data, count, true, out);
}
