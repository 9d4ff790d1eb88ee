/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a dump of a process: reads the stacks of all its threads until two readings in a row agree, and in
 * between what belongs to them (names, lines, values of variables). Only reads, and only needs the permission
 * to read the process's memory.
 *
 * Two readings of a thread agree when it has the same frames in the same places with the same code, and every
 * caller is at the same instruction; the innermost frame may have gone on, since a thread that runs does. A
 * thread of which no two readings agreed is marked; what is shown of it is its stack as it was at one instant
 * (py/unwind.h). The state of a thread (runs, GIL, exception) is that of the last reading.
 */
#pragma once

#include "agg/dump.h"
#include "run/session.h"

#include <stdbool.h>
#include <sys/types.h>

struct dumper_config {
	pid_t pid;
	bool locals;
};

/* On failure the reason has been logged. `out` is to be initialised, and freed in either case. */
enum session_error dumper__run(struct dump *out, const struct dumper_config *config);
