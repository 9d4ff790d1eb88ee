/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The vector macros: growth, and sizes that cannot be had.
 */
#include "base/vec.h"

#include <criterion/criterion.h>
#include <stdint.h>

struct wide {
	uint64_t words[5];
};

Test(vec, push_keeps_order)
{
	VEC(uint32_t) numbers = {0};

	for (uint32_t i = 0; i < 100000; i++)
		cr_assert_eq(vec__push(&numbers, i), 0);
	cr_assert_eq(numbers.len, 100000);
	cr_assert_geq(numbers.cap, numbers.len);
	for (uint32_t i = 0; i < 100000; i++)
		cr_assert_eq(numbers.items[i], i);
	vec__free(&numbers);
	cr_assert_null(numbers.items);
	cr_assert_eq(numbers.len + numbers.cap, 0);
}

Test(vec, push_of_a_struct)
{
	VEC(struct wide) items = {0};
	struct wide item = {{1, 2, 3, 4, 5}};

	cr_assert_eq(vec__push(&items, item), 0);
	cr_assert_eq(items.items[0].words[4], 5);
	vec__free(&items);
}

Test(vec, reserve_adds_no_item)
{
	VEC(char) bytes = {0};
	char *before;

	cr_assert_eq(vec__reserve(&bytes, 0), 0);
	cr_assert_eq(vec__reserve(&bytes, 1000), 0);
	cr_assert_eq(bytes.len, 0);
	cr_assert_geq(bytes.cap, 1000);
	before = bytes.items;
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(vec__push(&bytes, 'x'), 0);
	cr_assert_eq(bytes.items, before, "a push after a reserve moved the items");
	vec__free(&bytes);
}

/* Pushing one by one must not copy everything each time. */
Test(vec, growth_doubles)
{
	VEC(uint64_t) numbers = {0};
	size_t growths = 0, cap = 0;

	for (uint64_t i = 0; i < 1000000; i++) {
		cr_assert_eq(vec__push(&numbers, i), 0);
		growths += numbers.cap != cap;
		cap = numbers.cap;
	}
	cr_assert_lt(growths, 25);
	vec__free(&numbers);
}

Test(vec, impossible_sizes_change_nothing)
{
	VEC(struct wide) items = {0};
	struct wide item = {{7}};

	cr_assert_eq(vec__push(&items, item), 0);
	cr_assert_eq(vec__reserve(&items, SIZE_MAX), -ENOMEM, "length overflows");
	cr_assert_eq(vec__reserve(&items, SIZE_MAX / sizeof(item)), -ENOMEM, "bytes overflow");
	cr_assert_eq(vec__reserve(&items, SIZE_MAX / 2), -ENOMEM);
	cr_assert_eq(items.len, 1);
	cr_assert_eq(items.items[0].words[0], 7);
	vec__free(&items);
}
