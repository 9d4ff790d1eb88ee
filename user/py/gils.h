/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a process's GILs are: a thread that waits for one waits for a futex inside it. A free-threaded build
 * has none, unless it is run with one.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "py/target.h"

#include <stdbool.h>

struct py_gils {
	VEC(py_addr) items;
	struct hmap of_threads; /* thread state -> its interpreter's; where there are several */
	uint64_t read_ns;	/* when they were looked for last; for the caller */
};

/* Look which there are: the runtime's to 3.11, then those of its interpreters. 0 or -errno. */
int py_gils__read(struct py_gils *gils, struct py_target *target);
/* The one that this address lies in; 0: none. */
py_addr py_gils__find(const struct py_gils *gils, py_addr address);
/* The one that this thread state has to hold to run; 0: none, or not known. */
py_addr py_gils__of(struct py_gils *gils, struct py_target *target, py_addr tstate);
/* They are to be looked for anew. */
void py_gils__clear(struct py_gils *gils);
void py_gils__free(struct py_gils *gils);
