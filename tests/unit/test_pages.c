/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small reads of this process's own memory through the page cache.
 */
#include "os/pages.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = PAGE_CACHE_BYTES };

static uint8_t *memory; /* three pages, the last without access */
static struct remote remote;
static struct page_cache cache;

static void start(void)
{
	memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	for (int i = 0; i < 2 * PAGE; i++)
		memory[i] = i % 251;
	mprotect(memory + 2 * PAGE, PAGE, PROT_NONE);
	remote__init(&remote, getpid());
}

static void stop(void)
{
	page_cache__free(&cache);
	munmap(memory, 3 * PAGE);
}

TestSuite(pages, .init = start, .fini = stop);

static py_addr at(size_t offset)
{
	return (uintptr_t)memory + offset;
}

Test(pages, each_is_read_once)
{
	uint8_t bytes[100];

	for (int i = 0; i < 40; i++) {
		cr_assert_eq(page_cache__read(&cache, &remote, at(i * 100), bytes, sizeof(bytes)), 0);
		cr_assert_eq(memcmp(bytes, memory + i * 100, sizeof(bytes)), 0);
	}
	cr_expect_eq(remote.stats.calls, 1);
	cr_expect(cache.misses == 1 && cache.hits == 39);
}

Test(pages, a_read_over_a_border)
{
	uint8_t bytes[PAGE + 10];

	cr_assert_eq(page_cache__read(&cache, &remote, at(5), bytes, sizeof(bytes)), 0);
	cr_expect_eq(memcmp(bytes, memory + 5, sizeof(bytes)), 0);
	cr_expect_eq(remote.stats.calls, 2);
}

Test(pages, forgotten_ones_are_read_again)
{
	uint8_t byte;

	page_cache__read(&cache, &remote, at(7), &byte, 1);
	memory[7] = 99;
	page_cache__read(&cache, &remote, at(7), &byte, 1);
	cr_expect_eq(byte, 7, "from the cache");
	page_cache__forget(&cache);
	page_cache__read(&cache, &remote, at(7), &byte, 1);
	cr_expect_eq(byte, 99);
}

Test(pages, what_cannot_be_read)
{
	uint8_t bytes[20];

	cr_expect_eq(page_cache__read(&cache, &remote, at(2 * PAGE - 10), bytes, sizeof(bytes)), -EFAULT);
	cr_expect_eq(page_cache__read(&cache, &remote, at(2 * PAGE - 20), bytes, sizeof(bytes)), 0);
	cr_expect_eq(page_cache__read(&cache, &remote, 16, bytes, sizeof(bytes)), -EFAULT);
	cr_expect_eq(page_cache__read(&cache, &remote, UINT64_MAX - 8, bytes, sizeof(bytes)), -EFAULT);
}
