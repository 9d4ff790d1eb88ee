/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreters -> thread states, as linked lists of a running process: short reads and cycles are expected.
 * The interface for others is py_target__threads; this one serves an attach, which has no struct py_target
 * yet.
 */
#pragma once

#include "py/target.h"

#include <stddef.h>

/* At most `max` thread states of all interpreters. Number found (0 is possible), or -errno. */
int py_threads__list(struct remote *remote, const struct py_offsets *offsets, py_addr runtime,
		     struct py_thread *out, size_t max);

/* The innermost frame of a thread state, 0 = it has none. 0, -EFAULT when that cannot be read, else -errno.
 */
int py_threads__first_frame(struct remote *remote, const struct py_offsets *offsets, py_addr tstate,
			    py_addr *frame);

/*
 * The kernel's id of a thread in its own pid namespace by what glibc keeps of it, for versions whose thread
 * states do not tell (to 3.10). 0 = it cannot be read. With another libc it is some other number.
 */
uint64_t py_threads__native_id(struct remote *remote, uint64_t thread_id);
