/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Free-threaded builds from 3.14 on run each thread on a copy of the bytecode of its own, which it
 * specialises without asking others: thread-local bytecode. The first thread uses the bytecode in the code
 * object itself. Copies are made when a thread calls a function for the first time, and may be freed when
 * threads have ended.
 */
#pragma once

#include "base/vec.h"
#include "os/remote.h"
#include "py/offsets.h"

#include <stdbool.h>
#include <stdint.h>

/* Where the copies of one code object's bytecode begin. */
struct py_copies {
	VEC(py_addr) starts;
};

/* Does this build have any? */
static inline bool py_copies__exist(const struct py_offsets *offsets)
{
	return offsets->code_co_tlbc != PY_ABSENT;
}

/*
 * The copies of `code` as they are now; those that were known are forgotten, unless it cannot be read any
 * more. 0 or -errno.
 */
int py_copies__read(struct py_copies *copies, struct remote *remote, const struct py_offsets *offsets,
		    py_addr code);
/* Offset of `instr` in the copy that it points into, each of which has so many bytes; -1: in none. */
int64_t py_copies__lasti(const struct py_copies *copies, uint32_t code_bytes, uint64_t instr);
void py_copies__free(struct py_copies *copies);

/* A number that is another one after threads have begun or ended, from when on copies may have been freed. */
uint64_t py_copies__generation(struct remote *remote, const struct py_offsets *offsets, py_addr runtime);
