/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strict UTF-8 and terminal widths. The width table holds only what differs from one column, and of the
 * combining marks only those of the scripts that identifiers are likely written in: a wrong width costs
 * alignment, never safety.
 */
#include "base/utf8.h"

#include "base/util.h"

#include <string.h>

struct width_range {
	uint32_t first, last;
	unsigned int columns;
};

/*
 * Ascending. 0: control and combining characters, joiners, selectors; 2: East_Asian_Width W and F (Unicode
 * 15).
 */
static const struct width_range width_ranges[] = {
	{0x0000, 0x001f, 0},   {0x007f, 0x009f, 0},   {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},
	{0x0591, 0x05bd, 0},   {0x05bf, 0x05bf, 0},   {0x05c1, 0x05c2, 0},   {0x05c4, 0x05c5, 0},
	{0x0610, 0x061a, 0},   {0x064b, 0x065f, 0},   {0x0670, 0x0670, 0},   {0x06d6, 0x06dc, 0},
	{0x06df, 0x06e4, 0},   {0x06ea, 0x06ed, 0},   {0x0900, 0x0902, 0},   {0x093c, 0x093c, 0},
	{0x0941, 0x0948, 0},   {0x094d, 0x094d, 0},   {0x0e31, 0x0e31, 0},   {0x0e34, 0x0e3a, 0},
	{0x0e47, 0x0e4e, 0},   {0x1100, 0x115f, 2},   {0x1160, 0x11ff, 0},   {0x1ab0, 0x1ace, 0},
	{0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x202a, 0x202e, 0},   {0x2060, 0x206f, 0},
	{0x20d0, 0x20f0, 0},   {0x231a, 0x231b, 2},   {0x2329, 0x232a, 2},   {0x23e9, 0x23ec, 2},
	{0x23f0, 0x23f0, 2},   {0x23f3, 0x23f3, 2},   {0x25fd, 0x25fe, 2},   {0x2614, 0x2615, 2},
	{0x2648, 0x2653, 2},   {0x267f, 0x267f, 2},   {0x2693, 0x2693, 2},   {0x26a1, 0x26a1, 2},
	{0x26aa, 0x26ab, 2},   {0x26bd, 0x26be, 2},   {0x26c4, 0x26c5, 2},   {0x26ce, 0x26ce, 2},
	{0x26d4, 0x26d4, 2},   {0x26ea, 0x26ea, 2},   {0x26f2, 0x26f3, 2},   {0x26f5, 0x26f5, 2},
	{0x26fa, 0x26fa, 2},   {0x26fd, 0x26fd, 2},   {0x2705, 0x2705, 2},   {0x270a, 0x270b, 2},
	{0x2728, 0x2728, 2},   {0x274c, 0x274c, 2},   {0x274e, 0x274e, 2},   {0x2753, 0x2755, 2},
	{0x2757, 0x2757, 2},   {0x2795, 0x2797, 2},   {0x27b0, 0x27b0, 2},   {0x27bf, 0x27bf, 2},
	{0x2b1b, 0x2b1c, 2},   {0x2b50, 0x2b50, 2},   {0x2b55, 0x2b55, 2},   {0x2e80, 0x3029, 2},
	{0x302a, 0x302d, 0},   {0x302e, 0x303e, 2},   {0x3041, 0x3098, 2},   {0x3099, 0x309a, 0},
	{0x309b, 0x3247, 2},   {0x3250, 0x4dbf, 2},   {0x4e00, 0xa4cf, 2},   {0xa960, 0xa97c, 2},
	{0xac00, 0xd7a3, 2},   {0xd7b0, 0xd7ff, 0},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
	{0xfe10, 0xfe19, 2},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xfeff, 0xfeff, 0},
	{0xff01, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0xfff9, 0xfffb, 0},   {0x16fe0, 0x18dff, 2},
	{0x1aff0, 0x1b2ff, 2}, {0x1f004, 0x1f004, 2}, {0x1f0cf, 0x1f0cf, 2}, {0x1f18e, 0x1f18e, 2},
	{0x1f191, 0x1f19a, 2}, {0x1f200, 0x1f320, 2}, {0x1f32d, 0x1f335, 2}, {0x1f337, 0x1f37c, 2},
	{0x1f37e, 0x1f393, 2}, {0x1f3a0, 0x1f3ca, 2}, {0x1f3cf, 0x1f3d3, 2}, {0x1f3e0, 0x1f3f0, 2},
	{0x1f3f4, 0x1f3f4, 2}, {0x1f3f8, 0x1f43e, 2}, {0x1f440, 0x1f440, 2}, {0x1f442, 0x1f4fc, 2},
	{0x1f4ff, 0x1f53d, 2}, {0x1f54b, 0x1f567, 2}, {0x1f57a, 0x1f57a, 2}, {0x1f595, 0x1f596, 2},
	{0x1f5a4, 0x1f5a4, 2}, {0x1f5fb, 0x1f64f, 2}, {0x1f680, 0x1f6c5, 2}, {0x1f6cc, 0x1f6cc, 2},
	{0x1f6d0, 0x1f6d2, 2}, {0x1f6d5, 0x1f6df, 2}, {0x1f6eb, 0x1f6ec, 2}, {0x1f6f4, 0x1f6fc, 2},
	{0x1f7e0, 0x1f7eb, 2}, {0x1f7f0, 0x1f7f0, 2}, {0x1f90c, 0x1f9ff, 2}, {0x1fa70, 0x1faff, 2},
	{0x20000, 0x3fffd, 2}, {0xe0000, 0xe0fff, 0},
};

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_decode(const char *s, size_t len, uint32_t *code)
{
	/* Smallest code point of each length: anything below it is an overlong form. */
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char lead;
	size_t need, i;

	if (!len)
		return 0;
	lead = (unsigned char)s[0];
	if (lead < 0x80) {
		*code = lead;
		return 1;
	}
	need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
	if (!need || lead > 0xf4 || need > len)
		return 0;

	*code = lead & (0x7f >> need);
	for (i = 1; i < need; i++) {
		if (!is_continuation(s[i]))
			return 0;
		*code = *code << 6 | ((unsigned char)s[i] & 0x3f);
	}
	if (*code < smallest[need] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
		return 0;
	return need;
}

bool utf8_is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

unsigned int utf8_columns(uint32_t code)
{
	size_t low = 0, high = ARRAY_SIZE(width_ranges);

	if (code >= 0x20 && code < 0x7f)
		return 1;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (code > width_ranges[middle].last)
			low = middle + 1;
		else if (code < width_ranges[middle].first)
			high = middle;
		else
			return width_ranges[middle].columns;
	}
	return 1;
}

/* One step through a text: length in bytes (at least 1) and columns of the character at s. */
static size_t step(const char *s, size_t len, size_t *columns)
{
	uint32_t code;
	size_t char_len = utf8_decode(s, len, &code);

	*columns = char_len ? utf8_columns(code) : 1;
	return char_len ?: 1;
}

size_t utf8_width(const char *s, size_t len)
{
	size_t width = 0, columns;

	for (size_t pos = 0; pos < len; width += columns)
		pos += step(s + pos, len - pos, &columns);
	return width;
}

size_t utf8_fit(const char *s, size_t len, size_t columns)
{
	size_t width = 0, pos = 0;

	while (pos < len) {
		size_t more, char_len = step(s + pos, len - pos, &more);

		if (width + more > columns)
			break;
		width += more;
		pos += char_len;
	}
	return pos;
}

size_t utf8_fit_end(const char *s, size_t len, size_t columns)
{
	size_t width = utf8_width(s, len), pos = 0, more = 0;

	/*
	 * Dropping from the front until the rest fits reads forwards only; the accents of a dropped one go
	 * too.
	 */
	while (pos < len) {
		size_t char_len = step(s + pos, len - pos, &more);

		if (width <= columns && (more || !pos))
			break;
		width -= more;
		pos += char_len;
	}
	return pos;
}

size_t utf8_fit_bytes(const char *s, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max && is_continuation(s[max]))
		max--;
	return max;
}

void utf8_repair(char *text)
{
	size_t len = strlen(text), step;
	uint32_t code;

	for (size_t pos = 0; pos < len; pos += step ?: 1) {
		step = utf8_decode(text + pos, len - pos, &code);
		if (!step)
			text[pos] = '?';
	}
}
