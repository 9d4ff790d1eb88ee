/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file tells by what it exports: debug builds have a function for references that were given up too often
 * (Py_REF_DEBUG, Include/object.h), builds with a JIT the optimizer that feeds it (Python/optimizer.c; so do
 * those that interpret what it makes). A program that has CPython linked in and exports nothing of it tells
 * nothing.
 */
#include "py/build.h"

#include "py/runtime.h"

#define ANY_FUNCTION   "Py_Initialize" /* in every version and build */
#define DEBUG_FUNCTION "_Py_NegativeRefcount"
#define JIT_FUNCTION   "_PyOptimizer_Optimize"

static enum py_answer exports(struct py_runtime *runtime, const char *name)
{
	py_addr addr;

	return py_runtime__symbol(runtime, name, &addr) ? PY_NO : PY_YES;
}

struct py_build py_build__read(struct py_target *target)
{
	struct py_build build = {0};
	struct py_runtime runtime;
	char reason[256];

	if (!py_runtime__find(&runtime, &target->remote, reason, sizeof(reason)) &&
	    runtime.addr == target->runtime && exports(&runtime, ANY_FUNCTION) == PY_YES)
		build = (struct py_build){.debug = exports(&runtime, DEBUG_FUNCTION),
					  .jit = exports(&runtime, JIT_FUNCTION)};
	py_runtime__close(&runtime);
	return build;
}

/* Free-threaded builds have `int enabled` in front of all else (struct _gil_runtime_state, pycore_gil.h). */
enum py_answer py_build__gil(struct py_target *target, py_addr gil)
{
	int32_t enabled;

	if (!target->offsets.free_threaded)
		return PY_YES;
	if (!gil || remote__read(&target->remote, gil, &enabled, sizeof(enabled)))
		return PY_UNKNOWN;
	return enabled ? PY_YES : PY_NO;
}
