/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One look for the files of container runtimes: where they always are (container_files.c), and where programs
 * that run say that they are (container_programs.c).
 */
#pragma once

#include "base/vec.h"
#include "os/container_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTAINER_DOCKER_PATTERN "containers/*/config.v2.json"
#define CONTAINER_TASKS		 "io.containerd.runtime.v2.task"
#define CONTAINER_TASKS_PATTERN	 "*/*/config.json"
#define CONTAINER_RUNC_PATTERN	 "*/state.json"
#define CONTAINER_CRUN_PATTERN	 "*/status"

/* A directory that was read, for which files. */
struct container_base {
	dev_t device;
	ino_t inode;
	const char *pattern;
};

struct container_look {
	struct container_names *names;
	enum container_file kind;
	uid_t owner; /* of the outermost directory that is not root's; 0: there is none */
	size_t files, bytes;
	uint64_t end_ns;
	bool over; /* it was too much */
	int err;
	VEC(struct container_base) bases;
};

/* Is it over, be it by an error? */
bool container_look__is_over(struct container_look *look);
/*
 * All files below a directory that are called like the pattern, which is of parts; what has "*" in it is
 * looked up, and the last that was is the name. Takes the descriptor over (< 0: there is none). A pattern
 * stays where it is; what was read before by the same one is not read again.
 */
void container_look__read(struct container_look *look, enum container_file kind, int base,
			  const char *pattern);

/* By the command lines of programs that run. */
void container_programs__read(struct container_look *look);
