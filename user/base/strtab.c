/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interned strings: bytes live in chunks that never move (so strtab__get can lend them for good), entries
 * index them by id, and an open-addressing table of ids finds equal ones. Strings are removed all at once.
 */
#include "base/strtab.h"

#include "base/hmap.h"
#include "base/util.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK_BYTES 4096u
#define LAST_CHUNK_BYTES  (1024u * 1024u)
#define FIRST_SLOTS	  64u
#define NO_ID		  UINT32_MAX

struct entry {
	const char *text;
	uint32_t len;
	uint32_t hash;
};

struct chunk {
	struct chunk *older;
	size_t used, cap;
	char bytes[];
};

struct strtab {
	VEC(struct entry) entries;
	uint32_t *slots;      /* id + 1, or 0 = free; at most half of them taken */
	size_t slot_cnt;      /* a power of two */
	struct chunk *chunks; /* newest first; only that one has room */
	size_t chunk_bytes;   /* of all chunks together */
	uint64_t seed;
};

static uint32_t hash_bytes(const struct strtab *tab, const char *s, size_t len)
{
	uint64_t hash = tab->seed ^ len, tail = 0;

	for (; len >= sizeof(hash); s += sizeof(hash), len -= sizeof(hash))
		hash = hmap_mix(hash ^ load_u64(s));
	memcpy(&tail, s, len);
	return (uint32_t)hmap_mix(hash ^ tail);
}

/* The slot that holds this string, or the free one where it belongs. */
static uint32_t *find_slot(const struct strtab *tab, const char *s, size_t len, uint32_t hash)
{
	size_t i = hash & (tab->slot_cnt - 1);

	for (; tab->slots[i]; i = (i + 1) & (tab->slot_cnt - 1)) {
		const struct entry *entry = &tab->entries.items[tab->slots[i] - 1];

		if (entry->hash == hash && entry->len == len && !memcmp(entry->text, s, len))
			break;
	}
	return &tab->slots[i];
}

static int grow_slots(struct strtab *tab)
{
	size_t slot_cnt = tab->slot_cnt ? tab->slot_cnt * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(slot_cnt, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t id = 0; id < tab->entries.len; id++) {
		size_t i = tab->entries.items[id].hash & (slot_cnt - 1);

		while (slots[i])
			i = (i + 1) & (slot_cnt - 1);
		slots[i] = (uint32_t)id + 1;
	}
	free(tab->slots);
	tab->slots = slots;
	tab->slot_cnt = slot_cnt;
	return 0;
}

/* A chunk with room for `need` bytes. Chunks double, so few are made and little is unused. */
static struct chunk *chunk_for(struct strtab *tab, size_t need)
{
	struct chunk *chunk = tab->chunks;
	size_t cap;

	if (chunk && chunk->cap - chunk->used >= need)
		return chunk;
	cap = chunk ? min_u64(chunk->cap * 2, LAST_CHUNK_BYTES) : FIRST_CHUNK_BYTES;
	cap = max_u64(cap, need);
	chunk = malloc(sizeof(*chunk) + cap);
	if (!chunk)
		return NULL;
	*chunk = (struct chunk){.older = tab->chunks, .cap = cap};
	tab->chunks = chunk;
	tab->chunk_bytes += sizeof(*chunk) + cap;
	return chunk;
}

static const char *store_bytes(struct strtab *tab, const char *s, size_t len)
{
	struct chunk *chunk = chunk_for(tab, len + 1);
	char *text;

	if (!chunk)
		return NULL;
	text = chunk->bytes + chunk->used;
	memcpy(text, s, len);
	text[len] = '\0';
	chunk->used += len + 1;
	return text;
}

uint32_t strtab__add(struct strtab *tab, const char *s, size_t len)
{
	struct entry entry = {.len = (uint32_t)len};
	uint32_t *slot;

	if (len >= UINT32_MAX)
		return NO_ID;
	if (!len)
		s = ""; /* an empty buffer may well be NULL */
	entry.hash = hash_bytes(tab, s, len);
	slot = find_slot(tab, s, len, entry.hash);
	if (*slot)
		return *slot - 1;

	if (tab->entries.len >= NO_ID - 1 || vec__reserve(&tab->entries, 1))
		return NO_ID;
	if (tab->entries.len + 1 > tab->slot_cnt / 2) {
		if (grow_slots(tab))
			return NO_ID;
		slot = find_slot(tab, s, len, entry.hash);
	}
	entry.text = store_bytes(tab, s, len);
	if (!entry.text)
		return NO_ID;
	tab->entries.items[tab->entries.len++] = entry;
	*slot = (uint32_t)tab->entries.len;
	return *slot - 1;
}

uint32_t strtab__find(const struct strtab *tab, const char *s, size_t len)
{
	return *find_slot(tab, s, len, hash_bytes(tab, s, len)) - 1;
}

int strtab__new(struct strtab **out)
{
	struct strtab *tab = calloc(1, sizeof(*tab));

	*out = NULL;
	if (!tab)
		return -ENOMEM;
	tab->seed = hmap_seed();
	if (grow_slots(tab) || strtab__add(tab, "", 0) != 0) {
		strtab__free(tab);
		return -ENOMEM;
	}
	*out = tab;
	return 0;
}

/* All chunks but the first one, which begins with "". */
static void free_newer_chunks(struct strtab *tab)
{
	while (tab->chunks && tab->chunks->older) {
		struct chunk *older = tab->chunks->older;

		free(tab->chunks);
		tab->chunks = older;
	}
}

void strtab__clear(struct strtab *tab)
{
	struct entry *entries = realloc(tab->entries.items, sizeof(*entries));
	uint32_t *slots = realloc(tab->slots, FIRST_SLOTS * sizeof(*slots));

	/* What could not be made smaller stays as it is. */
	tab->entries.items = entries ?: tab->entries.items;
	tab->entries.cap = entries ? 1 : tab->entries.cap;
	tab->entries.len = 1;
	tab->slots = slots ?: tab->slots;
	tab->slot_cnt = slots ? FIRST_SLOTS : tab->slot_cnt;
	memset(tab->slots, 0, tab->slot_cnt * sizeof(*tab->slots));
	free_newer_chunks(tab);
	tab->chunks->used = 1;
	tab->chunk_bytes = sizeof(*tab->chunks) + tab->chunks->cap;
	*find_slot(tab, "", 0, tab->entries.items[0].hash) = 1;
}

void strtab__free(struct strtab *tab)
{
	if (!tab)
		return;
	free_newer_chunks(tab);
	free(tab->chunks);
	free(tab->slots);
	vec__free(&tab->entries);
	free(tab);
}

const char *strtab__get(const struct strtab *tab, uint32_t id)
{
	return id < tab->entries.len ? tab->entries.items[id].text : "";
}

size_t strtab__len(const struct strtab *tab, uint32_t id)
{
	return id < tab->entries.len ? tab->entries.items[id].len : 0;
}

uint32_t strtab__count(const struct strtab *tab)
{
	return (uint32_t)tab->entries.len;
}

size_t strtab__bytes(const struct strtab *tab)
{
	return sizeof(*tab) + tab->chunk_bytes + tab->slot_cnt * sizeof(*tab->slots) +
	       tab->entries.cap * sizeof(*tab->entries.items);
}
