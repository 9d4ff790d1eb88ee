/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks in which a thread waits for something to do: of pools, event loops and servers. Told by the
 * functions that they wait in, since nothing else tells them from threads that are kept waiting.
 */
#pragma once

#include "base/strtab.h"
#include "os/wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idle_frame {
	uint32_t function, file; /* strtab ids */
};

#define IDLE_FRAMES 6 /* of the innermost ones, that are looked at */

enum idle {
	IDLE_NOT,
	IDLE_IF_LOCK, /* only if it is for a lock: it is the same function that calls what there is to do */
	IDLE_ALWAYS,
};

/* Of a stack, innermost first. */
enum idle idle__of(const struct strtab *strings, const struct idle_frame *frames, size_t count);
/* ... and of a wait in it. */
bool idle__is(enum idle idle, enum wait_reason reason);
