/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a container to its cgroup, and from a process to its container.
 */
#pragma once

#include "base/buf.h"
#include "os/cgroup.h"
#include "os/container.h"
#include "os/container_names.h"

/*
 * By what a user calls it: its id, at least CONTAINER_ID_LEAST characters of it, its name, or the UID of a
 * Kubernetes pod. A process of it has to be visible. `reason` says what is wrong, and names those that it may
 * be if there are several. 0 or -errno.
 */
int container__find(struct cgroup *cgroup, const struct cgroup_mounts *mounts,
		    const struct container_names *names, const char *text, struct buf *reason);

/* The innermost one that a process with this text of /proc/PID/cgroup is in. */
bool container__of_text(const char *text, const struct container_names *names, char id[CONTAINER_ID_BYTES]);
