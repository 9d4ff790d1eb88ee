/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PyUnicode objects -> UTF-8. Pure: bytes of the object in, text out; bytes are hostile.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* What a PyASCIIObject header says. All offsets are from the start of the object. */
struct py_str_layout {
	uint32_t length;       /* offset of Py_ssize_t length */
	uint32_t state;	       /* offset of the u32 state */
	uint32_t ascii_size;   /* sizeof(PyASCIIObject): where the data of a compact ASCII string starts */
	uint32_t compact_size; /* sizeof(PyCompactUnicodeObject) */
	bool any_length;       /* even over PY_STR_MAX: the caller reads no more than it wants */
	bool wide_interned; /* 3.14t+: interned takes 8 bits, so kind/compact/ascii sit at bits 8-10, 11, 12
			     */
};

struct py_str_info {
	uint64_t length; /* code points */
	uint32_t kind;	 /* 1, 2 or 4 bytes per code point */
	bool ascii;
	bool compact;	      /* else the data is behind the pointer at data_offset */
	uint64_t data_offset; /* from the start of the object */
	uint64_t data_bytes;  /* length * kind */
};

/*
 * Decode a header of `len` bytes (at least max(length, state) + their sizes). 0; -EINVAL when it cannot be a
 * string: kind not 1, 2, 4; length over PY_STR_MAX code points; ascii with kind != 1; too few bytes.
 */
#define PY_STR_MAX 65536u
int py_str__header(const struct py_str_layout *layout, const uint8_t *p, size_t len, struct py_str_info *out);

/*
 * Append `count` code points of `kind` bytes as valid UTF-8. Kind 1 is Latin-1. Lone surrogates
 * U+DC80..U+DCFF, which stand for undecodable bytes of file names (surrogateescape), become \xNN; other
 * surrogates and values above U+10FFFF become \uNNNN / \UNNNNNNNN; NUL becomes \x00. A literal backslash
 * stays as it is.
 */
void py_str__to_utf8(uint32_t kind, const uint8_t *data, size_t count, struct buf *out);
/* The same, but the undecodable bytes become what they are, so that the name is the one that the file has. */
void py_str__to_bytes(uint32_t kind, const uint8_t *data, size_t count, struct buf *out);
