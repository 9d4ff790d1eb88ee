/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interning: one id for equal bytes, different ids for all others, and texts that stay where they are.
 */
#include "base/strtab.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct strtab *tab;

static void open_table(void)
{
	cr_assert_eq(strtab__new(&tab), 0);
}

static void close_table(void)
{
	strtab__free(tab);
}

TestSuite(strtab, .init = open_table, .fini = close_table);

static uint32_t add(const char *s)
{
	return strtab__add(tab, s, strlen(s));
}

Test(strtab, empty_string_is_zero)
{
	cr_assert_eq(strtab__count(tab), 1);
	cr_assert_eq(add(""), 0);
	cr_assert_eq(strtab__add(tab, NULL, 0), 0);
	cr_assert_eq(strtab__add(tab, "text", 0), 0);
	cr_assert_str_eq(strtab__get(tab, 0), "");
	cr_assert_eq(strtab__len(tab, 0), 0);
	cr_assert_eq(strtab__count(tab), 1);
}

Test(strtab, equal_bytes_share_an_id)
{
	char copy[] = "Worker.run";
	uint32_t id = add("Worker.run");

	cr_assert_eq(id, 1);
	cr_assert_eq(add(copy), id);
	cr_assert_neq(strtab__get(tab, id), (const char *)copy);
	cr_assert_str_eq(strtab__get(tab, id), "Worker.run");
	cr_assert_eq(strtab__len(tab, id), 10);
	cr_assert_eq(strtab__count(tab), 2);
}

/* Lengths around the eight bytes that are hashed at once, and strings that differ in the last byte only. */
Test(strtab, near_equal_strings_differ)
{
	char text[64];
	uint32_t count = 1;

	for (size_t len = 1; len < 40; len++) {
		memset(text, 'a', sizeof(text));
		cr_assert_eq(strtab__add(tab, text, len), count++);
		text[len - 1] = 'b';
		cr_assert_eq(strtab__add(tab, text, len), count++);
	}
	cr_assert_eq(strtab__count(tab), count);
}

/* Only len bytes count, and the copy ends in NUL even if the source did not. */
Test(strtab, reads_no_further_than_len)
{
	char *exact = malloc(9);
	uint32_t id;

	memcpy(exact, "123456789", 9);
	id = strtab__add(tab, exact, 9);
	free(exact);
	cr_assert_str_eq(strtab__get(tab, id), "123456789");
	cr_assert_eq(strtab__add(tab, "1234567890", 9), id);
	cr_assert_neq(strtab__add(tab, "1234567890", 10), id);
}

Test(strtab, unknown_ids_are_empty)
{
	cr_assert_str_eq(strtab__get(tab, 1), "");
	cr_assert_str_eq(strtab__get(tab, UINT32_MAX), "");
	cr_assert_eq(strtab__len(tab, 1), 0);
	cr_assert_eq(strtab__len(tab, UINT32_MAX), 0);
}

Test(strtab, texts_do_not_move)
{
	enum { COUNT = 200000 };
	const char *first = strtab__get(tab, add("first"));
	char text[32];

	for (uint32_t i = 0; i < COUNT; i++) {
		int len = snprintf(text, sizeof(text), "module.function_%u", i);

		cr_assert_eq(strtab__add(tab, text, (size_t)len), i + 2);
	}
	cr_assert_eq(strtab__get(tab, 1), first);
	for (uint32_t i = 0; i < COUNT; i++) {
		snprintf(text, sizeof(text), "module.function_%u", i);
		cr_assert_str_eq(strtab__get(tab, i + 2), text);
		cr_assert_eq(add(text), i + 2);
	}
	cr_assert_eq(strtab__count(tab), COUNT + 2);
}

/* A string bigger than any chunk, then small ones again. */
Test(strtab, huge_string)
{
	size_t len = 5u << 20;
	char *huge = malloc(len);
	uint32_t id;

	memset(huge, 'x', len);
	id = strtab__add(tab, huge, len);
	cr_assert_eq(strtab__len(tab, id), len);
	cr_assert_eq(strtab__add(tab, huge, len), id);
	cr_assert_eq(add("small"), id + 1);
	cr_assert_eq(memcmp(strtab__get(tab, id), huge, len), 0);
	cr_assert_gt(strtab__bytes(tab), len);
	cr_assert_lt(strtab__bytes(tab), 2 * len);
	free(huge);
}

/* All begins anew, and takes no more memory than at the beginning. */
Test(strtab, cleared)
{
	size_t bytes = strtab__bytes(tab);
	char text[32];

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 100000; i++) {
			int len = snprintf(text, sizeof(text), "%u of round %d", i, round);

			cr_assert_eq(strtab__add(tab, text, (size_t)len), i + 1);
		}
		cr_assert_gt(strtab__bytes(tab), 1u << 20);
		strtab__clear(tab);
		cr_expect_eq(strtab__count(tab), 1);
		cr_expect_leq(strtab__bytes(tab), bytes);
		cr_expect_eq(add(""), 0);
		cr_expect_eq(strtab__find(tab, text, strlen(text)), UINT32_MAX);
		cr_expect_str_eq(strtab__get(tab, 0), "");
		cr_expect_str_eq(strtab__get(tab, 1), "");
	}
	cr_assert_eq(add("first"), 1);
	cr_assert_str_eq(strtab__get(tab, 1), "first");
	strtab__clear(tab);
	strtab__clear(tab);
	cr_assert_eq(add("other"), 1);
}

Test(strtab, impossible_length)
{
	cr_assert_eq(strtab__add(tab, "x", SIZE_MAX), UINT32_MAX);
	cr_assert_eq(strtab__add(tab, "x", UINT32_MAX), UINT32_MAX);
	cr_assert_eq(strtab__count(tab), 1);
	strtab__free(NULL);
}
