/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small helpers that every module may use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* whole * part / of, whatever the product; a part of nothing is 0. */
static inline uint64_t part_of(uint64_t whole, uint64_t part, uint64_t of)
{
	return of ? (unsigned __int128)whole * part / of : 0;
}

static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline double min_double(double a, double b) { return a < b ? a : b; }

/* For sorting: less than 0 if a is less than b, 0 if they are equal. */
static inline int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* "1 sample", "2 samples" */
static inline const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

/* Unaligned little-endian loads from bytes that were read from a target. */
static inline uint16_t load_u16(const void *p) { uint16_t v; memcpy(&v, p, sizeof(v)); return v; }
static inline uint32_t load_u32(const void *p) { uint32_t v; memcpy(&v, p, sizeof(v)); return v; }
static inline uint64_t load_u64(const void *p) { uint64_t v; memcpy(&v, p, sizeof(v)); return v; }

/*
 * Does following a chain of addresses run in a circle? Brent's algorithm: meets one within three times its length,
 * without memory. Zero-initialised at the start.
 */
struct cycle {
	uint64_t mark;
	size_t steps, limit;
};

static inline bool has_cycled(struct cycle *cycle, uint64_t at)
{
	if (at == cycle->mark)
		return true;
	if (++cycle->steps >= cycle->limit) {
		cycle->steps = 0;
		cycle->limit = cycle->limit * 2 + 8;
		cycle->mark = at;
	}
	return false;
}
