/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For os/cgroup*.c only: cgroup.c (mounts, one cgroup, processes), cgroup_find.c (which one a user means).
 */
#pragma once

#include "os/cgroup.h"

/* "/../a": as the kernel tells what lies outside of our cgroup namespace. */
bool cgroup_is_outside(const char *path, size_t len);
/* Is it that directory, or one below? Paths without a slash at the end, but for "/". */
bool cgroup_is_below(const char *path, size_t len, const char *of);
/* "/a", "/b/c" -> "/a/b/c"; "/" adds nothing. To be freed; NULL: out of memory. */
char *cgroup_join(const char *path, const char *below);
