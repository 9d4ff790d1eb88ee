/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The clock of all times in nanoseconds (uint64_t ..._ns) that are not CPU time.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC, as the kernel side's. */
static inline uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}
