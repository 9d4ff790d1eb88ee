/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of _Py_DebugOffsets, one per minor version of CPython from 3.13 on. Called by py_offsets__decode
 * only, which has read cookie and version; offsets.h is the interface for everybody else.
 */
#pragma once

#include "py/offsets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PY_DEBUG_FIRST_MINOR 13
#define PY_DEBUG_LAST_MINOR  15

/*
 * Fill *out from the table of Python 3.`minor` (PY_DEBUG_FIRST_MINOR..PY_DEBUG_LAST_MINOR), whose cookie and
 * version the caller has checked; out->version is set already. 0, or -EBADMSG with the contradiction in
 * `reason`.
 */
int py_debug_offsets__decode(struct py_offsets *out, uint32_t minor, const uint8_t *table, size_t len,
			     char *reason, size_t reason_size);
