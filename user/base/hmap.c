/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Linear probing over one array of (key, value). Invariant: between an entry's home slot and the slot it is
 * in there is no free slot; insertion keeps it by taking the first free one, deletion by shifting entries
 * back.
 */
#include "base/hmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define FIRST_CAP 16u

/* The finalizer of splitmix64: every input bit reaches every output bit. */
uint64_t hmap_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The kernel hands every process 16 random bytes. */
uint64_t hmap_seed(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t seed = 0;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	return hmap_mix(seed);
}

static size_t home_slot(const struct hmap *map, uint64_t key)
{
	return hmap_mix(key ^ map->seed) & (map->cap - 1);
}

/* The slot that holds key, or the free one where it belongs. There is a free one: the load is bounded. */
static struct hmap_slot *find_slot(const struct hmap *map, uint64_t key)
{
	size_t i = home_slot(map, key);

	while (map->slots[i].key && map->slots[i].key != key)
		i = (i + 1) & (map->cap - 1);
	return &map->slots[i];
}

uint64_t *hmap__get(const struct hmap *map, uint64_t key)
{
	struct hmap_slot *slot;

	if (!map->cap)
		return NULL;
	if (!key)
		return map->has_zero ? &map->slots[map->cap].value : NULL;
	slot = find_slot(map, key);
	return slot->key ? &slot->value : NULL;
}

static int grow(struct hmap *map)
{
	struct hmap grown = *map;

	grown.cap = map->cap ? map->cap * 2 : FIRST_CAP;
	grown.seed = map->cap ? map->seed : hmap_seed();
	/* calloc checks the product; the doubling itself cannot overflow before that fails. */
	grown.slots = calloc(grown.cap + 1, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;

	for (size_t i = 0; i < map->cap; i++)
		if (map->slots[i].key)
			*find_slot(&grown, map->slots[i].key) = map->slots[i];
	if (map->has_zero)
		grown.slots[grown.cap] = map->slots[map->cap];
	free(map->slots);
	*map = grown;
	return 0;
}

int hmap__set(struct hmap *map, uint64_t key, uint64_t value)
{
	uint64_t *present = hmap__get(map, key);
	struct hmap_slot *slot;

	if (present) {
		*present = value;
		return 0;
	}
	if ((map->len + 1) > map->cap / 4 * 3) {
		int err = grow(map);

		if (err)
			return err;
	}
	slot = key ? find_slot(map, key) : &map->slots[map->cap];
	*slot = (struct hmap_slot){.key = key, .value = value};
	map->has_zero |= !key;
	map->len++;
	return 0;
}

uint32_t hmap__number(struct hmap *map, uint64_t key, size_t next)
{
	const uint64_t *known = hmap__get(map, key);

	if (known)
		return (uint32_t)*known;
	return hmap__set(map, key, next) ? UINT32_MAX : (uint32_t)next;
}

/* Close the gap at `hole` with the entries behind it that may live there. */
static void shift_back(struct hmap *map, size_t hole)
{
	size_t mask = map->cap - 1;

	for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
		size_t probed = (i - home_slot(map, map->slots[i].key)) & mask;

		/* An entry may move back as far as its home, which lies `probed` slots before it. */
		if (probed >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct hmap_slot){0};
}

bool hmap__del(struct hmap *map, uint64_t key)
{
	struct hmap_slot *slot;

	if (!hmap__get(map, key))
		return false;
	map->len--;
	if (!key) {
		map->has_zero = false;
		return true;
	}
	slot = find_slot(map, key);
	shift_back(map, (size_t)(slot - map->slots));
	return true;
}

void hmap__clear(struct hmap *map)
{
	if (map->len)
		memset(map->slots, 0, (map->cap + 1) * sizeof(*map->slots));
	map->len = 0;
	map->has_zero = false;
}

void hmap__free(struct hmap *map)
{
	if (!map)
		return;
	free(map->slots);
	*map = (struct hmap){0};
}

const struct hmap_slot *hmap__next(const struct hmap *map, size_t *iter)
{
	while (*iter < map->cap) {
		const struct hmap_slot *slot = &map->slots[(*iter)++];

		if (slot->key)
			return slot;
	}
	if (*iter == map->cap && map->has_zero) {
		(*iter)++;
		return &map->slots[map->cap];
	}
	return NULL;
}
