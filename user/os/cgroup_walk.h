/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directories of a cgroup and of all that are below it, however deep and many.
 */
#pragma once

#include <stddef.h>

/*
 * Calls `visit` for each, the ones above first, until it returns an error. Those that go meanwhile are left
 * out; those that cannot be opened are added to *unread, which may be NULL. 0 or -errno.
 */
int cgroup_walk(const char *dir, int (*visit)(void *context, const char *dir), void *context, size_t *unread);
