/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A growable array. `VEC(type)` declares an anonymous struct {items, len, cap}; zero-initialised is empty.
 * Allocation failure is reported by the return value; the vector then stays as it was.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(type)            \
	struct {             \
		type *items; \
		size_t len;  \
		size_t cap;  \
	}

/* Make room for `extra` more items. Returns 0 or -ENOMEM. */
#define vec__reserve(v, extra) \
	vec_grow((void **)&(v)->items, &(v)->cap, (v)->len, (extra), sizeof(*(v)->items))

/* Append a copy of `item`. Returns 0 or -ENOMEM. */
#define vec__push(v, item) (vec__reserve((v), 1) ?: ((v)->items[(v)->len++] = (item), 0))

#define vec__free(v)                    \
	do {                            \
		free((v)->items);       \
		(v)->items = NULL;      \
		(v)->len = (v)->cap = 0; \
	} while (0)

/* Implementation of vec__reserve; use the macro. 0 or -ENOMEM. */
int vec_grow(void **items, size_t *cap, size_t len, size_t extra, size_t item_size);
