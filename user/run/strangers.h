/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that were no Python when they were looked at, and how much code they had mapped then: one that has loaded
 * something since may be. For when there is no kernel side to tell (bpf/look.bpf.h).
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"

#include <stdint.h>
#include <sys/types.h>

struct strangers {
	struct hmap code_bytes; /* by pid */
	VEC(pid_t) pass;	/* those that this pass has still to look at */
	uint64_t next_ns;	/* when another one begins */
};

/* `code_bytes`: as of before it was looked at; 0: not known, so that it is to be looked at again. */
void strangers__add(struct strangers *strangers, pid_t pid, uint64_t code_bytes);
/*
 * One that has changed, 0: none (yet). A pass over all begins once a second, or less often if they are many, and goes on
 * from call to call, some at a time.
 */
pid_t strangers__next(struct strangers *strangers, uint64_t now);
void strangers__free(struct strangers *strangers);
