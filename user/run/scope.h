/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cgroups and containers that were asked for: who is in them now. Whoever is in one of them, or below, is
 * to be profiled, for as long as that is so.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "os/cgroup.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct scope {
	VEC(struct cgroup) cgroups;
	VEC(int) fds;  /* of those that are not below another one */
	char *text;    /* of one process */
	size_t unread; /* cgroups that could not be looked into, at the last look */
};

/* `reason`: what is wrong with which. 0 or -errno. */
int scope__open(struct scope *scope, const char *const *cgroups, size_t cgroup_count,
		const char *const *containers, size_t container_count, struct buf *reason);
void scope__close(struct scope *scope);

/* Is this process in it? 1, 0, or -errno: it is not known, as of one that has ended. */
int scope__has(struct scope *scope, pid_t pid);
/* All that are in it but this process. 0 or -ENOMEM. Free with vec__free(&members->pids). */
int scope__members(struct scope *scope, struct cgroup_members *members);
/* Is there anybody? */
bool scope__is_populated(struct scope *scope);

/* Looks at them again. Whether one of them is another one now than before, and so are the descriptors. */
bool scope__refresh(struct scope *scope);
