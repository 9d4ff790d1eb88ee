/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cgroups that a test makes. They go with all that is in them when the test ends.
 */
#pragma once

#include "harness.h"

#define GROUP_TEST(suite, name) Test(suite, name, .fini = remove_groups, .timeout = 240)

/* Where v2, and where a hierarchy of v1 is mounted; the test is skipped where it is not. */
const char *unified_mount(void);
const char *legacy_mount(void);

/* Makes DIR/NAME, and is its path. Without `name`: one of the test's own. */
const char *make_group(const char *dir, const char *name);
/* Puts a process into it. */
void enter_group(const char *group, pid_t pid);
/* Ends all that is in it and below, and removes it. */
void remove_group(const char *group);
/* All of them, and what clean_up() does. */
void remove_groups(void);
