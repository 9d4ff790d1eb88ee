/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which CPUs are online.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fill online[0..count) from a kernel list such as "0-3,8"; malformed parts end it. Pure. */
void cpus__parse(const char *list, bool *online, size_t count);
/* The same for this machine as it is now. 0 or -errno. */
int cpus__online(bool *online, size_t count);
/* More than the number of any CPU that the machine can have: they need not be counted through. 0: not known. */
size_t cpus__end(void);
/* The same of a kernel list. Pure. */
size_t cpus__end_of(const char *list);
