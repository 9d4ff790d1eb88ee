/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UTF-8 decoder on every code point and on every malformed kind, and widths of text.
 */
#include "base/utf8.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The textbook encoder, right also for what UTF-8 forbids. */
static size_t encode(uint32_t code, char *out)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

Test(utf8, every_code_point)
{
	for (uint32_t code = 0; code < 0x1fffff; code++) {
		bool valid = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
		char bytes[4];
		uint32_t decoded = 0;
		size_t len = encode(code, bytes), got = utf8_decode(bytes, len, &decoded);

		if (got != (valid ? len : 0) || (valid && decoded != code))
			cr_assert_fail("U+%04X: %zu bytes, U+%04X", code, got, decoded);
		for (size_t cut = 0; cut < len; cut++)
			if (utf8_decode(bytes, cut, &decoded))
				cr_assert_fail("U+%04X cut to %zu bytes is accepted", code, cut);
	}
}

Test(utf8, malformed)
{
	static const char *const bad[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc0\xaf",
		"\xc1\xbf",
		"\xe0\x80\xaf",
		"\xe0\x9f\xbf",
		"\xf0\x80\x80\xaf",
		"\xf0\x8f\xbf\xbf",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xf8\x88\x80\x80\x80",
		"\xfe",
		"\xff",
		"\xc3(",
		"\xe2\x82(",
		"\xe2(\xac",
		"\xf0\x9f\x98(",
	};
	uint32_t code;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(utf8_decode(bad[i], strlen(bad[i]), &code), 0, "case %zu is accepted", i);
}

Test(utf8, columns)
{
	cr_assert_eq(utf8_columns('a'), 1);
	cr_assert_eq(utf8_columns(0xe9), 1);
	cr_assert_eq(utf8_columns(0), 0);
	cr_assert_eq(utf8_columns(0x1b), 0);
	cr_assert_eq(utf8_columns(0x301), 0, "combining acute");
	cr_assert_eq(utf8_columns(0x200d), 0, "joiner");
	cr_assert_eq(utf8_columns(0x4e2d), 2, "ideograph");
	cr_assert_eq(utf8_columns(0xac00), 2, "first Hangul syllable");
	cr_assert_eq(utf8_columns(0xd7a3), 2, "last Hangul syllable");
	cr_assert_eq(utf8_columns(0xff21), 2, "fullwidth A");
	cr_assert_eq(utf8_columns(0xff61), 1, "halfwidth stop");
	cr_assert_eq(utf8_columns(0x1f600), 2, "emoji");
	cr_assert_eq(utf8_columns(0x2026), 1, "ellipsis");
	cr_assert_eq(utf8_columns(0x10ffff), 1);
}

static size_t width(const char *s)
{
	return utf8_width(s, strlen(s));
}

Test(utf8, width)
{
	cr_assert_eq(width(""), 0);
	cr_assert_eq(width("abc"), 3);
	cr_assert_eq(width("h\xc3\xa9"), 2);
	cr_assert_eq(width("he\xcc\x81"), 2);
	cr_assert_eq(width("\xe4\xb8\xad\xe6\x96\x87"), 4);
	cr_assert_eq(width("a\xff\xfe"), 3);
}

Test(utf8, fit_from_the_front)
{
	const char *accented = "ae\xcc\x81z", *wide = "\xe4\xb8\xad\xe6\x96\x87";

	cr_assert_eq(utf8_fit("abc", 3, 0), 0);
	cr_assert_eq(utf8_fit("abc", 3, 2), 2);
	cr_assert_eq(utf8_fit("abc", 3, 9), 3);
	cr_assert_eq(utf8_fit(accented, 5, 2), 4, "the accent goes with its letter");
	cr_assert_eq(utf8_fit(wide, 6, 3), 3, "half of a wide character does not fit");
	cr_assert_eq(utf8_fit(wide, 6, 1), 0);
	cr_assert_eq(utf8_fit("", 0, 5), 0);
}

Test(utf8, fit_from_the_end)
{
	const char *accented = "ae\xcc\x81z", *wide = "\xe4\xb8\xad\xe6\x96\x87";

	cr_assert_eq(utf8_fit_end("abc", 3, 0), 3);
	cr_assert_eq(utf8_fit_end("abc", 3, 2), 1);
	cr_assert_eq(utf8_fit_end("abc", 3, 9), 0);
	cr_assert_eq(utf8_fit_end(accented, 5, 2), 1);
	cr_assert_eq(utf8_fit_end(accented, 5, 1), 4, "the accent goes with its letter");
	cr_assert_eq(utf8_fit_end(wide, 6, 3), 3);
	cr_assert_eq(utf8_fit_end(wide, 6, 1), 6);
	cr_assert_eq(utf8_fit_end("", 0, 5), 0);
}

Test(utf8, unsafe)
{
	static const uint32_t unsafe[] = {0, 0x1b, 0x7f, 0x80, 0x9b, 0x9f, 0x61c, 0x200e, 0x200f, 0x2028, 0x202e, 0x2066, 0x2069};
	static const uint32_t safe[] = {' ', '~', 0xa0, 0xe9, 0x200d, 0x2030, 0x206a, 0xfeff, 0x1f680};

	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
		cr_expect(utf8_is_unsafe(unsafe[i]), "%x", unsafe[i]);
	for (size_t i = 0; i < sizeof(safe) / sizeof(*safe); i++)
		cr_expect_not(utf8_is_unsafe(safe[i]), "%x", safe[i]);
}

Test(utf8, fit_bytes)
{
	cr_expect_eq(utf8_fit_bytes("abc", 3, 5), 3);
	cr_expect_eq(utf8_fit_bytes("abc", 3, 2), 2);
	cr_expect_eq(utf8_fit_bytes("a\xc3\xa9", 3, 2), 1);
	cr_expect_eq(utf8_fit_bytes("\xe6\xbc\xa2x", 4, 3), 3);
	cr_expect_eq(utf8_fit_bytes("\xe6\xbc\xa2x", 4, 2), 0);
	cr_expect_eq(utf8_fit_bytes("", 0, 0), 0);
}

Test(utf8, repaired)
{
	char text[] = "a\xff\xc3\xa9\xe2\x82z\xc3", whole[] = "gr\xc3\xbc\xc3\x9f\n", empty[] = "";

	utf8_repair(text);
	cr_expect_str_eq(text, "a?\xc3\xa9??z?");
	utf8_repair(whole);
	cr_expect_str_eq(whole, "gr\xc3\xbc\xc3\x9f\n");
	utf8_repair(empty);
	cr_expect_str_eq(empty, "");
}
