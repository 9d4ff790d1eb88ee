/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The containers that profiled processes are in, and what they come to together.
 */
#pragma once

#include "base/vec.h"
#include "os/container.h"
#include "os/container_names.h"

#include <stdint.h>
#include <sys/types.h>

#define CONTAINER_CALLED_BYTES 80
#define CONTAINER_LABEL_BYTES  (CONTAINER_CALLED_BYTES + 16)

struct container {
	char id[CONTAINER_ID_BYTES];
	char *name; /* NULL: not known, or not yet */
	/* What people read: "web", or else the id; "web (0123456789ab)". */
	char called[CONTAINER_CALLED_BYTES], raw_label[CONTAINER_LABEL_BYTES];
	char label[4 * CONTAINER_LABEL_BYTES]; /* escaped */
	/* of processes that are not kept: */
	uint64_t past_pythons, past_samples, past_cpu_ns;
};

struct containers {
	VEC(struct container *) items; /* owned; one lives as long as all do */
	struct container_names names;
	uint64_t names_ns; /* before then they are not read again; 0: they have not been read */
	char *text;	   /* of one process */
};

/* The innermost one that the process is in; NULL: none, or it has ended. */
struct container *containers__of(struct containers *containers, pid_t pid);
void containers__free(struct containers *containers);
