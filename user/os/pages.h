/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of another process, each read once until they are forgotten: for many small reads close together that
 * cannot be known in advance.
 */
#pragma once

#include "os/remote.h"

#include <stdbool.h>
#include <stdint.h>

#define PAGE_CACHE_SLOTS 32
#define PAGE_CACHE_BYTES 4096

struct page_cache {
	py_addr pages[PAGE_CACHE_SLOTS];    /* address + 1 of the page in each slot, 0 = none */
	uint8_t (*bytes)[PAGE_CACHE_BYTES]; /* owned; made at the first read */
	uint64_t hits, misses;
};

/* len bytes, from cached pages where they are there. 0, -EFAULT when not all is readable, -ESRCH, -EPERM. */
int page_cache__read(struct page_cache *cache, struct remote *remote, py_addr addr, void *dest, size_t len);
void page_cache__forget(struct page_cache *cache);
void page_cache__free(struct page_cache *cache);
