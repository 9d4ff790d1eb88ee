/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a target's CPython was built, as far as its file and its memory tell. For doctor; nothing else depends
 * on it.
 */
#pragma once

#include "py/target.h"

enum py_answer { PY_UNKNOWN, PY_NO, PY_YES };

struct py_build {
	enum py_answer debug;
	enum py_answer jit; /* built in, on or off */
};

/* Opens the runtime's file once more. */
struct py_build py_build__read(struct py_target *target);

/* Is there a GIL at this moment? `gil` is the address of the main interpreter's. */
enum py_answer py_build__gil(struct py_target *target, py_addr gil);
