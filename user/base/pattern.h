/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names that are asked for.
 */
#pragma once

#include <stdbool.h>

/*
 * Is the whole name as a shell's pattern says, or what the pattern itself reads, as it is or as it is shown
 * where characters are escaped? So "pool[1]" finds what is called so, and a name can be copied from what is
 * printed.
 */
bool pattern__matches(const char *pattern, const char *name);
