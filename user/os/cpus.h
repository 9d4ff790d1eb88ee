/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which CPUs are online, and how often the kernel's own timer ticks on them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill online[0..count) from a kernel list such as "0-3,8"; malformed parts end it. Pure. */
void cpus__parse(const char *list, bool *online, size_t count);
/* The same for this machine as it is now. 0 or -errno. */
int cpus__online(bool *online, size_t count);
/*
 * More than the number of any CPU that the machine can have: they need not be counted through. 0: not known.
 */
size_t cpus__end(void);
/* The same of a kernel list. Pure. */
size_t cpus__end_of(const char *list);

/* Time between two ticks of the kernel's own timer, in ns; 0: not known. */
uint64_t cpus__tick_ns(void);
/* The list of CPUs that do without ticks while they run one task (nohz_full); "" if there are none. */
void cpus__tickless(char *list, size_t size);
/* The same of what the kernel's file says. Pure. */
void cpus__parse_tickless(const char *text, char *list, size_t size);
