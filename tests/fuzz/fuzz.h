/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every fuzz target needs. A target is one file that calls one decoder with any bytes; besides the
 * sanitizers, check() catches results that callers rely on never to get.
 */
#pragma once

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define check(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

/* Take `size` bytes off the front of the input; zeros where there are no more. */
static inline void fuzz_take(const uint8_t **data, size_t *len, void *out, size_t size)
{
	size_t there = min_u64(*len, size);

	memset(out, 0, size);
	memcpy(out, *data, there);
	*data += there;
	*len -= there;
}
