/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that nobody follows, where every Python of the machine is wanted: those that have just called
 * exec and are to be looked at soon, and which program the others ran, with how much code mapped, when they
 * were looked at. One that runs another since, or has loaded something, may be what is wanted.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stranger_turn {
	pid_t pid;
	uint32_t looks; /* so far */
	uint64_t due_ns;
};

struct strangers {
	struct hmap code;	       /* by pid */
	VEC(struct stranger_turn) due; /* to be looked at, at their times */
	VEC(pid_t) pass;	       /* those that this pass has still to look at */
	uint64_t next_ns;	       /* when another one begins */
};

/* It has called exec: look at it then, and some times after that. */
void strangers__watch(struct strangers *strangers, pid_t pid, uint64_t due_ns);
/* One that is due, 0: none is. It comes again, later, if it is still no Python. */
pid_t strangers__next_due(struct strangers *strangers, uint64_t now);
/* When one is, UINT64_MAX: never. */
uint64_t strangers__due_ns(const struct strangers *strangers);
/* Do not look at it again. */
void strangers__forget(struct strangers *strangers, pid_t pid);

/* One more of which nothing is known yet. */
void strangers__add(struct strangers *strangers, pid_t pid);
/*
 * Has it another program, or other code, than at the last call? True, too, if there was none. False: it is as
 * it was, or gone.
 */
bool strangers__has_changed(struct strangers *strangers, pid_t pid);
/*
 * A pass over all of them, for when there is no kernel side that tells (bpf/look.bpf.h): one that has
 * changed, 0: none (yet). It begins once a second, or less often if they are many, and goes on from call to
 * call, some at a time.
 */
pid_t strangers__next_changed(struct strangers *strangers, uint64_t now);
void strangers__free(struct strangers *strangers);
