/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct-mapped. A page that cannot be read whole is not readable at all: access is granted by pages.
 */
#include "os/pages.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

static int bring_in(struct page_cache *cache, struct remote *remote, py_addr page, size_t slot)
{
	int err;

	if (!cache->bytes)
		cache->bytes = malloc(sizeof(*cache->bytes) * PAGE_CACHE_SLOTS);
	if (!cache->bytes)
		return -ENOMEM;
	cache->misses++;
	cache->pages[slot] = 0;
	err = remote__read(remote, page, cache->bytes[slot], PAGE_CACHE_BYTES);
	if (!err)
		cache->pages[slot] = page + 1;
	return err;
}

int page_cache__read(struct page_cache *cache, struct remote *remote, py_addr addr, void *dest, size_t len)
{
	uint8_t *out = dest;

	while (len) {
		size_t offset = addr % PAGE_CACHE_BYTES, part = min_u64(len, PAGE_CACHE_BYTES - offset);
		py_addr page = addr - offset;
		size_t slot = page / PAGE_CACHE_BYTES % PAGE_CACHE_SLOTS;
		int err = 0;

		if (cache->pages[slot] == page + 1)
			cache->hits++;
		else
			err = bring_in(cache, remote, page, slot);
		if (err)
			return err;
		memcpy(out, cache->bytes[slot] + offset, part);
		out += part;
		addr += part;
		len -= part;
	}
	return 0;
}

void page_cache__forget(struct page_cache *cache)
{
	memset(cache->pages, 0, sizeof(cache->pages));
}

void page_cache__free(struct page_cache *cache)
{
	free(cache->bytes);
	*cache = (struct page_cache){0};
}
