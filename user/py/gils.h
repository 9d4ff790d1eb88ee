/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a process's GILs are: a thread that waits for one waits for a futex inside it.
 */
#pragma once

#include "base/vec.h"
#include "py/target.h"

#include <stdbool.h>

struct py_gils {
	VEC(py_addr) items;
	uint64_t read_ns; /* when they were looked for last; for the caller */
};

/* Look which there are: the runtime's to 3.11, then those of its interpreters. 0 or -errno. */
int py_gils__read(struct py_gils *gils, struct py_target *target);
/* Does this address lie in one? */
bool py_gils__has(const struct py_gils *gils, py_addr address);
void py_gils__free(struct py_gils *gils);
