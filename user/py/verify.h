/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Do the offsets make sense on the live process? At least one thread's frames are walked down to code objects
 * with names, so that a wrong offset is refused by name instead of giving a profile of nonsense.
 */
#pragma once

#include "py/attach.h"
#include "py/target.h"

#include <stddef.h>

/*
 * PY_ATTACH_OK (also when no thread has a frame), PY_ATTACH_CORRUPT with the field in `reason`, or what a
 * failed read means. Learns target->code_type. Uses target->remote and target->offsets.
 */
enum py_attach_error py_verify__run(struct py_target *target, const struct py_thread *threads, size_t count,
				    char *reason, size_t reason_size);
