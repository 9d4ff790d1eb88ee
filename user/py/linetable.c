/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three encodings of the same thing: consecutive ranges of bytecode, each with a change of the line. Each
 * reader walks its table from the front and stops at the range that holds lasti. Lines are kept in 64 bits: a
 * table read from another process may add up deltas as it likes, but it cannot be long enough to overflow
 * that.
 */
#include "py/linetable.h"

#include <stdbool.h>

enum { CODE_UNIT = 2 }; /* bytes */

static uint32_t checked_line(int64_t line)
{
	return line >= 1 && line <= INT32_MAX ? line : 0;
}

/*
 * Pairs of (bytecode delta, signed line delta). A pair says where the next line begins, so the last line has
 * no end and holds for the rest of the code.
 */
static uint32_t lnotab_line(const uint8_t *table, size_t len, int64_t line, int64_t lasti)
{
	int64_t addr = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		addr += table[i];
		if (addr > lasti)
			break;
		line += (int8_t)table[i + 1];
	}
	return checked_line(line);
}

/* Pairs of (length in bytes, signed line delta); a delta of -128 marks a range without a line. */
static uint32_t ranges_line(const uint8_t *table, size_t len, int64_t line, int64_t lasti)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != INT8_MIN)
			line += delta;
		if (lasti < end)
			return delta == INT8_MIN ? 0 : checked_line(line);
	}
	return 0;
}

struct bytes {
	const uint8_t *at, *end;
};

/*
 * Six bits a byte, least significant first, bit 6 = more follow. False when it is cut short or over 32 bits.
 */
static bool read_varint(struct bytes *bytes, uint32_t *out)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift <= 30; shift += 6) {
		uint8_t byte;

		/* Bit 7 begins the next entry. */
		if (bytes->at == bytes->end || (*bytes->at & 0x80))
			return false;
		byte = *bytes->at++;
		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40)) {
			*out = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

/* The sign is bit 0. */
static bool read_signed_varint(struct bytes *bytes, int64_t *out)
{
	uint32_t value;

	if (!read_varint(bytes, &value))
		return false;
	*out = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
	return true;
}

/* Location codes of bits 3-6 of an entry's first byte; 0-9 are the short forms, which stay on their line. */
enum {
	CODE_ONE_LINE_0 = 10, /* 10-12: line + (code - 10) */
	CODE_ONE_LINE_2 = 12,
	CODE_NO_COLUMNS = 13,
	CODE_LONG = 14,
	CODE_NONE = 15,
};

/*
 * Change of the line by an entry whose first byte is already read. Column bytes are left for the caller to
 * skip.
 */
static bool read_line_delta(struct bytes *bytes, unsigned int code, int64_t *delta)
{
	*delta = 0;
	if (code == CODE_NO_COLUMNS || code == CODE_LONG)
		return read_signed_varint(bytes, delta);
	if (code >= CODE_ONE_LINE_0 && code <= CODE_ONE_LINE_2)
		*delta = code - CODE_ONE_LINE_0;
	return true;
}

/*
 * Entries of 1ccccnnn and what code c asks for; nnn + 1 is the length in code units. Only a first byte has
 * bit 7 set, so the columns need no decoding.
 */
static uint32_t locations_line(const uint8_t *table, size_t len, int64_t line, int64_t lasti)
{
	struct bytes bytes = {table, table + len};
	int64_t end = 0;

	while (bytes.at < bytes.end) {
		uint8_t first = *bytes.at++;
		unsigned int code = first >> 3 & 15;
		int64_t delta;

		if (!(first & 0x80) || !read_line_delta(&bytes, code, &delta))
			return 0;
		line += delta;
		end += ((first & 7) + 1) * CODE_UNIT;
		if (lasti < end)
			return code == CODE_NONE ? 0 : checked_line(line);
		while (bytes.at < bytes.end && !(*bytes.at & 0x80))
			bytes.at++;
	}
	return 0;
}

uint32_t linetable__line(enum linetable_kind kind, const uint8_t *table, size_t len, int32_t first_line,
			 int64_t lasti)
{
	if (lasti < 0)
		return checked_line(first_line);
	switch (kind) {
	case LINETABLE_LNOTAB:
		return lnotab_line(table, len, first_line, lasti);
	case LINETABLE_RANGES:
		return ranges_line(table, len, first_line, lasti);
	case LINETABLE_LOCATIONS:
		return locations_line(table, len, first_line, lasti);
	}
	return 0;
}
