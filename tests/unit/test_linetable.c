/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Line tables: every case of linetable_cases.h (made by real Pythons), entries written by hand for what
 * compilers seldom emit, and bytes that no compiler would.
 */
#include "py/linetable.h"

#include "base/util.h"
#include "unit/linetable_cases.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Exactly as long as the table, so that ASan sees a read behind its end. */
static uint8_t *from_hex(const char *hex, size_t *len)
{
	uint8_t *bytes;

	*len = strlen(hex) / 2;
	bytes = malloc(*len ?: 1);
	for (size_t i = 0; i < *len; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1]};

		bytes[i] = strtoul(pair, NULL, 16);
	}
	return bytes;
}

Test(linetable, agrees_with_real_pythons)
{
	size_t points = 0, without_line = 0, longest = 0;

	for (size_t i = 0; i < ARRAY_SIZE(linetable_cases); i++) {
		const struct linetable_case *c = &linetable_cases[i];
		size_t len;
		uint8_t *table = from_hex(c->table, &len);

		longest = max_u64(longest, len);
		for (size_t j = 0; j < c->points_cnt; j++) {
			const struct linetable_point *point = &c->points[j];
			uint32_t line = linetable__line(c->kind, table, len, c->first_line, point->lasti);

			cr_expect_eq(line, point->line, "%s at %ld: line %u, not %u", c->name,
				     (long)point->lasti, line, point->line);
			points++;
			without_line += !point->line;
		}
		free(table);
	}
	/* The cases are worth something. */
	cr_expect_gt(points, 2000);
	cr_expect_gt(without_line, 10);
	cr_expect_gt(longest, 4096);
}

/*
 * A table may come cut off at any byte, with any lasti: never a read behind its end, never a line out of
 * nowhere.
 */
Test(linetable, truncated_anywhere)
{
	for (size_t i = 0; i < ARRAY_SIZE(linetable_cases); i++) {
		const struct linetable_case *c = &linetable_cases[i];
		size_t len;
		uint8_t *table = from_hex(c->table, &len);

		for (size_t cut = 0; cut < len && cut < 300; cut++) {
			uint8_t *part = malloc(cut ?: 1);
			uint32_t line;

			memcpy(part, table, cut);
			line = linetable__line(c->kind, part, cut, c->first_line,
					       c->points[c->points_cnt - 1].lasti);
			cr_expect_lt(line, 2000, "%s cut at %zu: line %u", c->name, cut, line);
			free(part);
		}
		free(table);
	}
}

#define LINE(kind, first, lasti, ...)                                                                        \
	linetable__line(kind, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), first, \
			lasti)

Test(linetable, not_started_is_first_line)
{
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 7, -1, 0, 3), 7);
	cr_expect_eq(LINE(LINETABLE_RANGES, 7, -2, 4, 3), 7);
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 7, -2, 0x80 | 11 << 3, 0, 0), 7);
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 7, INT64_MIN, 0), 7);
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, -7, -2, 0), 0, "a first line that is none");
}

Test(linetable, empty)
{
	cr_expect_eq(linetable__line(LINETABLE_LNOTAB, NULL, 0, 5, 0), 5, "no change of line");
	cr_expect_eq(linetable__line(LINETABLE_RANGES, NULL, 0, 5, 0), 0);
	cr_expect_eq(linetable__line(LINETABLE_LOCATIONS, NULL, 0, 5, 0), 0);
}

Test(linetable, lnotab_steps)
{
	/* +300 lines at byte 300, as 3.8 splits it; then 200 back. */
#define STEPS 255, 0, 45, 127, 0, 127, 0, 46, 2, 128, 0, 184
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 1, 299, STEPS), 1);
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 1, 300, STEPS), 301);
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 1, 302, STEPS), 101);
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 1, INT64_MAX, STEPS), 101, "the last line has no end");
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 1, 4, 0, 1, 2), 2, "half a pair at the end");
	cr_expect_eq(LINE(LINETABLE_LNOTAB, 1, 4, 0, 128), 0, "line -127");
}

Test(linetable, ranges_without_line)
{
	/* [0,4) line 11, [4,6) none, [6,8) line 12. */
#define RANGES 4, 1, 2, 128, 2, 1
	cr_expect_eq(LINE(LINETABLE_RANGES, 10, 0, RANGES), 11);
	cr_expect_eq(LINE(LINETABLE_RANGES, 10, 3, RANGES), 11);
	cr_expect_eq(LINE(LINETABLE_RANGES, 10, 4, RANGES), 0);
	cr_expect_eq(LINE(LINETABLE_RANGES, 10, 6, RANGES), 12);
	cr_expect_eq(LINE(LINETABLE_RANGES, 10, 8, RANGES), 0, "behind the code");
}

Test(linetable, every_location_code)
{
	/* Each entry is one code unit long, so lasti 2 * n asks for entry n. */
#define CODES                                                                                                \
	0x80 | 0 << 3, 0x12,			  /* short: line 100 */                                      \
		0x80 | 9 << 3, 0x7f,		  /* short: line 100 */                                      \
		0x80 | 10 << 3, 1, 2,		  /* one line: 100 */                                        \
		0x80 | 12 << 3, 1, 2,		  /* one line: 102 */                                        \
		0x80 | 15 << 3,			  /* none */                                                 \
		0x80 | 13 << 3, 0x40 | 3, 1,	  /* svarint 67 = -33: line 69 */                            \
		0x80 | 14 << 3, 4, 1, 1, 0x41, 2, /* svarint +2: line 71 */                                  \
		0x80 | 11 << 3 | 7, 0, 0	  /* one line, 8 units: 72 */
	static const uint32_t lines[] = {100, 100, 100, 102, 0, 69, 71, 72, 72, 72, 72, 72, 72, 72, 72, 0};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		cr_expect_eq(LINE(LINETABLE_LOCATIONS, 100, 2 * i, CODES), lines[i], "unit %zu", i);
		cr_expect_eq(LINE(LINETABLE_LOCATIONS, 100, 2 * i + 1, CODES), lines[i], "unit %zu", i);
	}
}

Test(linetable, malformed_locations)
{
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x05), 0, "first byte without bit 7");
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3), 0, "no varint");
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3, 0x42), 0, "varint cut short");
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3, 0x42, 0x82), 0,
		     "varint runs into an entry");
	cr_expect_eq(
		LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0),
		0, "varint without end");
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03), 0,
		     "+2^31 - 1 from line 1 is over the largest line");
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 0, 0, 0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03),
		     INT32_MAX);
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x03), 0,
		     "-2^31 + 1");
	cr_expect_eq(LINE(LINETABLE_LOCATIONS, 1, 0, 0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x07), 0,
		     "33 bits");
}

/* The largest steps, up and down and up again, add up without overflow. */
Test(linetable, many_large_steps)
{
	enum { ENTRIES = 100000, SIZE = 7 };
	static const uint8_t up[SIZE] = {0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03};
	uint8_t *table = malloc(ENTRIES * SIZE);

	for (size_t i = 0; i < ENTRIES; i++)
		memcpy(table + i * SIZE, up, SIZE);
	cr_expect_eq(linetable__line(LINETABLE_LOCATIONS, table, ENTRIES * SIZE, 1, 2 * (ENTRIES - 1)), 0);
	for (size_t i = 1; i < ENTRIES; i += 2)
		table[i * SIZE + 1] |= 1; /* minus */
	cr_expect_eq(linetable__line(LINETABLE_LOCATIONS, table, ENTRIES * SIZE, 1, 2 * (ENTRIES - 1)), 1);
	free(table);
}

Test(linetable, random_bytes)
{
	unsigned int seed = 1;

	for (int round = 0; round < 200000; round++) {
		uint8_t table[64];
		size_t len = rand_r(&seed) % (sizeof(table) + 1);
		int64_t lasti = rand_r(&seed) % 300 - 2;
		int32_t first_line = rand_r(&seed) - RAND_MAX / 2;
		uint32_t line;

		for (size_t i = 0; i < len; i++)
			table[i] = rand_r(&seed) >> 7;
		for (int kind = LINETABLE_LNOTAB; kind <= LINETABLE_LOCATIONS; kind++) {
			line = linetable__line(kind, table, len, first_line, lasti);
			cr_assert_leq(line, INT32_MAX);
		}
	}
}
