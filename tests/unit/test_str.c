/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PyUnicode headers of every layout and their characters as UTF-8; objects that lie about themselves.
 */
#include "py/str.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

/* Offsets and sizes from the headers of the versions named. */
static const struct {
	const char *versions;
	struct py_str_layout layout;
} layouts[] = {
	{"3.8-3.11", {.length = 16, .state = 32, .ascii_size = 48, .compact_size = 72}},
	{"3.12-3.15", {.length = 16, .state = 32, .ascii_size = 40, .compact_size = 56}},
	{"3.13t", {.length = 32, .state = 48, .ascii_size = 56, .compact_size = 72}},
	{"3.14t, 3.15t",
	 {.length = 32, .state = 48, .ascii_size = 56, .compact_size = 72, .wide_interned = true}},
};

struct object {
	uint64_t length;
	uint32_t interned, kind, compact, ascii;
	uint32_t rest; /* the bits above */
};

static void make_header(const struct py_str_layout *layout, const struct object *object, uint8_t p[64])
{
	unsigned int shift = layout->wide_interned ? 8 : 2;
	uint32_t state = object->interned | object->kind << shift | object->compact << (shift + 3) |
			 object->ascii << (shift + 4) | object->rest << (shift + 5);

	memset(p, 0xa5, 64);
	memcpy(p + layout->length, &object->length, sizeof(object->length));
	memcpy(p + layout->state, &state, sizeof(state));
}

Test(str, header_of_each_layout)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct py_str_layout *layout = &layouts[i].layout;
		struct py_str_info info;
		uint8_t p[64];

		make_header(layout, &(struct object){5, 3, 1, 1, 1, 1}, p);
		cr_assert_eq(py_str__header(layout, p, sizeof(p), &info), 0, "%s", layouts[i].versions);
		cr_expect(info.ascii && info.compact && info.kind == 1 && info.length == 5);
		cr_expect_eq(info.data_offset, layout->ascii_size);
		cr_expect_eq(info.data_bytes, 5);

		make_header(layout, &(struct object){5, 0, 2, 1, 0, 7}, p);
		cr_assert_eq(py_str__header(layout, p, sizeof(p), &info), 0, "%s", layouts[i].versions);
		cr_expect(!info.ascii && info.compact && info.kind == 2);
		cr_expect_eq(info.data_offset, layout->compact_size);
		cr_expect_eq(info.data_bytes, 10);

		/*
		 * An instance of a subclass of str: the pointer to its data follows the larger header, ASCII
		 * or not.
		 */
		make_header(layout, &(struct object){3, 0, 1, 0, 1, 0}, p);
		cr_assert_eq(py_str__header(layout, p, sizeof(p), &info), 0, "%s", layouts[i].versions);
		cr_expect(!info.compact);
		cr_expect_eq(info.data_offset, layout->compact_size);
	}
}

/* In the wide layout all eight bits may be set without being taken for a kind. */
Test(str, wide_interned_state)
{
	const struct py_str_layout *layout = &layouts[3].layout;
	struct py_str_info info;
	uint8_t p[64];

	make_header(layout, &(struct object){9, 0xff, 4, 1, 0, 0}, p);
	cr_assert_eq(py_str__header(layout, p, sizeof(p), &info), 0);
	cr_expect(info.kind == 4 && info.compact && !info.ascii);
	cr_expect_eq(info.data_bytes, 36);
}

Test(str, rejects_what_is_no_string)
{
	static const struct object bad[] = {
		{5, 0, 0, 1, 0, 0}, /* kind 0: wstr, before 3.12 */
		{5, 0, 3, 1, 0, 0},
		{5, 0, 5, 1, 0, 0},
		{5, 0, 7, 1, 1, 0},
		{5, 0, 2, 1, 1, 0}, /* ASCII in two bytes */
		{PY_STR_MAX + 1, 0, 1, 1, 1, 0},
		{UINT64_MAX, 0, 4, 1, 0, 0}, /* length -1 */
		{1ull << 62, 0, 4, 1, 0, 0}, /* times 4 is 0 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct py_str_info info;
		uint8_t p[64];

		for (size_t j = 0; j < ARRAY_SIZE(bad); j++) {
			make_header(&layouts[i].layout, &bad[j], p);
			cr_expect_eq(py_str__header(&layouts[i].layout, p, sizeof(p), &info), -EINVAL,
				     "%s, object %zu", layouts[i].versions, j);
		}
		make_header(&layouts[i].layout, &(struct object){PY_STR_MAX, 0, 1, 1, 1, 0}, p);
		cr_expect_eq(py_str__header(&layouts[i].layout, p, sizeof(p), &info), 0, "the longest");
	}
}

Test(str, short_header)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct py_str_layout *layout = &layouts[i].layout;
		size_t need = layout->state + 4;
		struct py_str_info info;
		uint8_t p[64];

		make_header(layout, &(struct object){5, 0, 1, 1, 1, 0}, p);
		for (size_t len = 0; len <= need; len++) {
			uint8_t *part = malloc(len ?: 1);

			memcpy(part, p, len);
			cr_expect_eq(py_str__header(layout, part, len, &info), len < need ? -EINVAL : 0);
			free(part);
		}
	}
}

/* Offsets from a hostile table: near the top of 32 bits they must not wrap around. */
Test(str, hostile_layout)
{
	struct py_str_layout layout = {.length = UINT32_MAX, .state = UINT32_MAX - 3, .ascii_size = 1};
	struct py_str_info info;
	uint8_t p[64] = {};

	cr_expect_eq(py_str__header(&layout, p, sizeof(p), &info), -EINVAL);
}

static void expect_text(uint32_t kind, const void *data, size_t count, const char *expected)
{
	struct buf buf = {};
	uint8_t *copy = malloc(count * kind ?: 1);

	memcpy(copy, data, count * kind);
	py_str__to_utf8(kind, copy, count, &buf);
	buf__addc(&buf, '\0');
	cr_expect_str_eq(buf.data, expected);
	free(copy);
	buf__free(&buf);
}

Test(str, one_byte)
{
	expect_text(1, "", 0, "");
	expect_text(1, "plain", 5, "plain");
	expect_text(1, "\xe9t\xe9", 3, "été");
	expect_text(1, "a\x7f\x80\xff", 4, "a\x7f\xc2\x80\xc3\xbf");
	expect_text(1, "\0a\0", 3, "\\x00a\\x00");
	expect_text(1, "C:\\x", 4, "C:\\x");
}

Test(str, two_bytes)
{
	expect_text(2, (uint16_t[]){'a', 0x7ff, 0x800, 0x20ac, 0xffff}, 5,
		    "a\xdf\xbf\xe0\xa0\x80€\xef\xbf\xbf");
	expect_text(2, (uint16_t[]){0xdc80, 0xdcff, 'x'}, 3, "\\x80\\xffx");
	expect_text(2, (uint16_t[]){0xd800, 0xdbff, 0xdc7f, 0xdd00, 0xdfff, 0xd7ff, 0xe000}, 7,
		    "\\ud800\\udbff\\udc7f\\udd00\\udfff\xed\x9f\xbf\xee\x80\x80");
	/* A pair is two code points in Python too, not one. */
	expect_text(2, (uint16_t[]){0xd83d, 0xde00}, 2, "\\ud83d\\ude00");
	expect_text(2, (uint16_t[]){0}, 1, "\\x00");
}

/* A file's name, as the file system has it; what is no byte of one stays as above. */
Test(str, bytes_of_file_names)
{
	const uint16_t two[] = {'b', 0xdcff, 'd', 0xdcc3, 0xdca9, 0xdc7f, 0xdd00, 0x20ac, 0};
	const uint32_t four[] = {0x1f600, 0xdc80, 0xd800};
	struct buf buf = {0};

	py_str__to_bytes(2, (const uint8_t *)two, ARRAY_SIZE(two), &buf);
	buf__addc(&buf, '|');
	py_str__to_bytes(4, (const uint8_t *)four, ARRAY_SIZE(four), &buf);
	buf__addc(&buf, '\0');
	cr_expect_str_eq(buf.data, "b\xff" "d\xc3\xa9\\udc7f\\udd00€\\x00|😀\x80\\ud800");
	buf__free(&buf);
}

Test(str, four_bytes)
{
	expect_text(4, (uint32_t[]){'a', 0xe9, 0x20ac, 0x10000, 0x1f600, 0x10ffff}, 6,
		    "aé€\xf0\x90\x80\x80😀\xf4\x8f\xbf\xbf");
	expect_text(4, (uint32_t[]){0x110000, UINT32_MAX, 0xdc80, 0xd800}, 4,
		    "\\U00110000\\Uffffffff\\x80\\ud800");
}
