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

/* Innermost first. */
bool idle__is(const struct strtab *strings, const struct idle_frame *frames, size_t count);
/* Can a wait for that reason be such a one? */
bool idle__may_be(enum wait_reason reason);
