/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one function behind the vector macros: grow by doubling, with every multiplication checked, since
 * lengths can come from a recorded file.
 */
#include "base/vec.h"

#include <stdint.h>

#define FIRST_CAP 8u

int vec_grow(void **items, size_t *cap, size_t len, size_t extra, size_t item_size)
{
	size_t need, new_cap, bytes;
	void *grown;

	if (__builtin_add_overflow(len, extra, &need))
		return -ENOMEM;
	if (need <= *cap)
		return 0;

	new_cap = *cap > SIZE_MAX / 2 ? need : *cap * 2;
	if (new_cap < need)
		new_cap = need;
	if (new_cap < FIRST_CAP)
		new_cap = FIRST_CAP;
	if (__builtin_mul_overflow(new_cap, item_size, &bytes))
		return -ENOMEM;

	grown = realloc(*items, bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = new_cap;
	return 0;
}
