/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * u64 -> u64 hash map: open addressing, linear probing, power-of-two capacity, load at most 3/4.
 * Keys are mixed with a number that differs from run to run, so addresses and small integers are fine as
 * keys, and a target that chooses its addresses cannot make them collide. Any key value is allowed, 0
 * included. Zero-initialised is an empty map.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hmap_slot {
	uint64_t key;
	uint64_t value;
};

/*
 * A lookup touches one array only: key 0 marks a free slot, and the entry whose key is 0 has a place of its
 * own behind the others.
 */
struct hmap {
	struct hmap_slot *slots; /* cap of them, and one for key 0 */
	size_t cap;		 /* 0 or a power of two */
	size_t len;		 /* entries, key 0 included */
	uint64_t seed;
	bool has_zero;
};

/* Pointer to the value, valid until the next hmap__set/del/clear; NULL when absent. */
uint64_t *hmap__get(const struct hmap *map, uint64_t key);
/* Insert or replace. 0 or -ENOMEM (the map is unchanged then). */
int hmap__set(struct hmap *map, uint64_t key, uint64_t value);
/*
 * The value of a key, or else `next`, which it has from then on: numbers for what is met, in the order that
 * it is met in. UINT32_MAX: out of memory.
 */
uint32_t hmap__number(struct hmap *map, uint64_t key, size_t next);
/* Remove, if present (backward-shift deletion: no tombstones). Returns whether it was present. */
bool hmap__del(struct hmap *map, uint64_t key);
/* Forget all entries, keep the memory. */
void hmap__clear(struct hmap *map);
void hmap__free(struct hmap *map);

/* for (size_t i = 0; (slot = hmap__next(map, &i)); ) ...   Order is arbitrary; do not modify meanwhile. */
const struct hmap_slot *hmap__next(const struct hmap *map, size_t *iter);

/* The mixing function, for other tables: a good 64 -> 64 bit permutation. */
uint64_t hmap_mix(uint64_t x);
/* For other tables too: a number that is the same all through a run and that a target cannot know. */
uint64_t hmap_seed(void);
