/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which container a cgroup is of, by the names that runtimes give to theirs. Pure. What a container is
 * called: os/container_names.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_BYTES 256 /* a part of a path has 255 at most */
#define CONTAINER_ID_SHOWN 12 /* characters of a long one */
#define CONTAINER_ID_LEAST 4  /* characters of one that a user may leave off after */

struct container_place {
	char id[CONTAINER_ID_BYTES]; /* 64 hexadecimal digits, or a name */
	size_t start, end;	     /* of the path: its own cgroup is the part before `end` */
};

/* The innermost one in a path; those around it are found in the first `start` bytes. */
bool container__in_path(const char *path, size_t len, struct container_place *place);

/*
 * Is it the cgroup of a Kubernetes pod or below, by the pod's UID (dashes or underscores)? *end: of the pod's
 * own.
 */
bool container__pod_in_path(const char *path, size_t len, const char *uid, size_t *end);

/* 64 hexadecimal digits? */
bool container__is_id(const char *text, size_t len);
