/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See gils.h. struct _gil_runtime_state (Include/internal/pycore_gil.h) ends in its condition variables and
 * mutexes.
 */
#include "py/gils.h"

#include "base/util.h"

#include <errno.h>

#define GIL_BYTES	 208 /* 8 more in a free-threaded build, where there may be one, too */
#define INTERPRETERS_MAX 1024

static int add(struct py_gils *gils, py_addr gil)
{
	return !gil || py_gils__has(gils, gil) ? 0 : vec__push(&gils->items, gil);
}

int py_gils__read(struct py_gils *gils, struct py_target *target)
{
	const struct py_offsets *offsets = &target->offsets;
	py_addr interp = 0, gil;
	int err;

	gils->items.len = 0;
	if (offsets->runtime_gil != PY_ABSENT)
		return add(gils, target->runtime + offsets->runtime_gil);
	if (offsets->interp_ceval_gil == PY_ABSENT)
		return 0;
	err = remote__read(&target->remote, target->runtime + offsets->runtime_interpreters_head, &interp, 8);
	for (int i = 0; !err && interp && i < INTERPRETERS_MAX; i++) {
		err = remote__read(&target->remote, interp + offsets->interp_ceval_gil, &gil, 8)
			      ?: add(gils, gil);
		err = err ?: remote__read(&target->remote, interp + offsets->interp_next, &interp, 8);
	}
	return err == -EFAULT ? 0 : err;
}

bool py_gils__has(const struct py_gils *gils, py_addr address)
{
	for (size_t i = 0; i < gils->items.len; i++)
		if (address - gils->items.items[i] < GIL_BYTES)
			return true;
	return false;
}

void py_gils__free(struct py_gils *gils)
{
	vec__free(&gils->items);
}
