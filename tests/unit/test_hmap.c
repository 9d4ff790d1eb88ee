/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hash map against a plain array that does the same slowly, and the places where linear probing goes
 * wrong: key 0, growth, deletion inside a run of occupied slots, runs that wrap around the end.
 */
#include "base/hmap.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static uint64_t value_of(const struct hmap *map, uint64_t key)
{
	const uint64_t *value = hmap__get(map, key);

	cr_assert_not_null(value, "key %#llx is missing", (unsigned long long)key);
	return *value;
}

Test(hmap, empty)
{
	struct hmap map = {0};
	size_t iter = 0;

	cr_assert_null(hmap__get(&map, 0));
	cr_assert_null(hmap__get(&map, 1));
	cr_assert_not(hmap__del(&map, 0));
	cr_assert_not(hmap__del(&map, 1));
	cr_assert_null(hmap__next(&map, &iter));
	hmap__clear(&map);
	hmap__free(&map);
	hmap__free(NULL);
}

Test(hmap, set_replaces)
{
	struct hmap map = {0};

	cr_assert_eq(hmap__set(&map, 7, 1), 0);
	cr_assert_eq(hmap__set(&map, 7, 2), 0);
	cr_assert_eq(map.len, 1);
	cr_assert_eq(value_of(&map, 7), 2);
	*hmap__get(&map, 7) = 3;
	cr_assert_eq(value_of(&map, 7), 3);
	hmap__free(&map);
}

Test(hmap, any_key)
{
	static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, 1ull << 63, 0x7f0000000000};
	struct hmap map = {0};
	size_t count = sizeof(keys) / sizeof(keys[0]);

	for (size_t i = 0; i < count; i++)
		cr_assert_eq(hmap__set(&map, keys[i], ~keys[i]), 0);
	cr_assert_eq(map.len, count);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(value_of(&map, keys[i]), ~keys[i]);
	for (size_t i = 0; i < count; i++) {
		cr_assert(hmap__del(&map, keys[i]));
		cr_assert_not(hmap__del(&map, keys[i]));
		cr_assert_null(hmap__get(&map, keys[i]));
	}
	cr_assert_eq(map.len, 0);
	hmap__free(&map);
}

/* Key 0 has a place of its own, which growth has to take along. */
Test(hmap, zero_survives_growth)
{
	struct hmap map = {0};

	cr_assert_eq(hmap__set(&map, 0, 42), 0);
	for (uint64_t key = 1; key < 10000; key++)
		cr_assert_eq(hmap__set(&map, key, key), 0);
	cr_assert_eq(map.len, 10000);
	cr_assert_eq(value_of(&map, 0), 42);
	cr_assert_leq(map.len, map.cap / 4 * 3);
	cr_assert_eq(map.cap & (map.cap - 1), 0);
	hmap__free(&map);
}

Test(hmap, number)
{
	struct hmap map = {0};

	cr_expect_eq(hmap__number(&map, 70, 0), 0);
	cr_expect_eq(hmap__number(&map, 0, 1), 1);
	cr_expect_eq(hmap__number(&map, 70, 2), 0, "it has one");
	cr_expect_eq(hmap__number(&map, 0, 2), 1);
	cr_expect_eq(map.len, 2);
	hmap__free(&map);
}

Test(hmap, clear_keeps_memory)
{
	struct hmap map = {0};
	size_t cap, iter = 0;

	for (uint64_t key = 0; key < 100; key++)
		hmap__set(&map, key, key);
	cap = map.cap;
	hmap__clear(&map);
	cr_assert_eq(map.len, 0);
	cr_assert_eq(map.cap, cap);
	cr_assert_null(hmap__get(&map, 0));
	cr_assert_null(hmap__get(&map, 50));
	cr_assert_null(hmap__next(&map, &iter));
	cr_assert_eq(hmap__set(&map, 50, 1), 0);
	cr_assert_eq(value_of(&map, 50), 1);
	hmap__free(&map);
}

Test(hmap, next_visits_each_once)
{
	struct hmap map = {0};
	const struct hmap_slot *slot;
	unsigned char seen[1000] = {0};
	size_t iter = 0, visits = 0;

	for (uint64_t key = 0; key < 1000; key++)
		hmap__set(&map, key, key + 1);
	while ((slot = hmap__next(&map, &iter))) {
		cr_assert_lt(slot->key, 1000);
		cr_assert_eq(slot->value, slot->key + 1);
		cr_assert_eq(seen[slot->key]++, 0);
		visits++;
	}
	cr_assert_eq(visits, 1000);
	cr_assert_null(hmap__next(&map, &iter));
	hmap__free(&map);
}

/*
 * Few keys and many operations, so that runs of occupied slots are long, wrap around, and are cut everywhere.
 */
Test(hmap, agrees_with_an_array)
{
	enum { KEYS = 24, STEPS = 200000 };
	uint64_t values[KEYS] = {0};
	bool present[KEYS] = {0};
	struct hmap map = {0};
	unsigned int seed = 1;

	for (int step = 0; step < STEPS; step++) {
		size_t key = (size_t)rand_r(&seed) % KEYS, len = 0;

		if (rand_r(&seed) % 2) {
			values[key] = (uint64_t)step;
			present[key] = true;
			cr_assert_eq(hmap__set(&map, key, values[key]), 0);
		} else {
			cr_assert_eq(hmap__del(&map, key), present[key]);
			present[key] = false;
		}
		for (size_t i = 0; i < KEYS; i++) {
			const uint64_t *value = hmap__get(&map, i);

			len += present[i];
			if (!value != !present[i] || (value && *value != values[i]))
				cr_assert_fail("key %zu after step %d", i, step);
		}
		if (map.len != len)
			cr_assert_fail("length %zu for %zu after step %d", map.len, len, step);
	}
	hmap__free(&map);
}

/* Page-aligned addresses differ in high bits only; they must not pile up in few slots. */
Test(hmap, aligned_keys_spread)
{
	struct hmap map = {0};
	size_t run = 0, longest = 0;

	for (uint64_t i = 1; i <= 49152; i++)
		hmap__set(&map, i << 12, i);
	for (size_t i = 0; i < map.cap; i++) {
		run = map.slots[i].key ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	cr_assert_lt(longest, 1000);
	hmap__free(&map);
}

Test(hmap, mix_is_a_permutation_of_small_numbers)
{
	struct hmap seen = {0};

	for (uint64_t i = 0; i < 100000; i++) {
		cr_assert_null(hmap__get(&seen, hmap_mix(i)));
		hmap__set(&seen, hmap_mix(i), i);
	}
	cr_assert_eq(hmap_seed(), hmap_seed());
	hmap__free(&seen);
}
