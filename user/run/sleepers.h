/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of threads that are off the CPU: nobody changes them meanwhile, so that they can be read from
 * outside.
 */
#pragma once

#include "base/vec.h"
#include "run/process.h"
#include "run/symbolize.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sleeper {
	pid_t tid;
	uint64_t out_ns; /* off the CPU since then */
	int32_t syscall; /* that it waits in; -1: in none */
	uint64_t arg;
	bool is_stopped; /* by a signal or a debugger, whatever it waited in */
	struct pbp_sample sample; /* filled in by sleepers__read */
};
struct sleepers {
	VEC(struct sleeper) items;
};

/*
 * Sort them by tid, each once, read their stacks and hand them to the symbolizer. A thread without Python
 * frames, or whose stack cannot be read, is told so in its sample's status. Whether they slept all the time
 * is for the caller to find out afterwards. 0, -ENOMEM, -ESRCH.
 */
int sleepers__read(struct sleepers *sleepers, struct process *process, struct symbolizer *symbolizer);
