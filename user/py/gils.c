/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See gils.h. struct _gil_runtime_state (Include/internal/pycore_gil.h) ends in its condition variables and
 * mutexes. In a free-threaded build it begins with `enabled`.
 */
#include "py/gils.h"

#include "base/util.h"

#include <errno.h>

#define GIL_BYTES	 208 /* 8 more in a free-threaded build */
#define INTERPRETERS_MAX 1024
#define THREADS_MAX	 65536 /* thread states that are remembered */

static int add(struct py_gils *gils, struct py_target *target, py_addr gil)
{
	int32_t enabled = 1;

	if (!gil || py_gils__find(gils, gil))
		return 0;
	if (target->offsets.free_threaded && remote__read(&target->remote, gil, &enabled, sizeof(enabled)))
		return 0;
	return enabled ? vec__push(&gils->items, gil) : 0;
}

int py_gils__read(struct py_gils *gils, struct py_target *target)
{
	const struct py_offsets *offsets = &target->offsets;
	py_addr interp = 0, gil;
	int err;

	gils->items.len = 0;
	hmap__clear(&gils->of_threads);
	if (offsets->runtime_gil != PY_ABSENT)
		return add(gils, target, target->runtime + offsets->runtime_gil);
	if (offsets->interp_ceval_gil == PY_ABSENT)
		return 0;
	err = remote__read(&target->remote, target->runtime + offsets->runtime_interpreters_head, &interp, 8);
	for (int i = 0; !err && interp && i < INTERPRETERS_MAX; i++) {
		err = remote__read(&target->remote, interp + offsets->interp_ceval_gil, &gil, 8)
			      ?: add(gils, target, gil);
		err = err ?: remote__read(&target->remote, interp + offsets->interp_next, &interp, 8);
	}
	return err == -EFAULT ? 0 : err;
}

py_addr py_gils__find(const struct py_gils *gils, py_addr address)
{
	for (size_t i = 0; i < gils->items.len; i++)
		if (address - gils->items.items[i] < GIL_BYTES)
			return gils->items.items[i];
	return 0;
}

/* Of several, by its interpreter. */
static py_addr read_gil_of(const struct py_gils *gils, struct py_target *target, py_addr tstate)
{
	const struct py_offsets *offsets = &target->offsets;
	py_addr interp = 0, gil = 0;

	if (remote__read(&target->remote, tstate + offsets->thread_interp, &interp, 8) || !interp ||
	    remote__read(&target->remote, interp + offsets->interp_ceval_gil, &gil, 8))
		return 0;
	return gil ? py_gils__find(gils, gil) : 0;
}

py_addr py_gils__of(struct py_gils *gils, struct py_target *target, py_addr tstate)
{
	const uint64_t *known;
	py_addr gil;

	if (gils->items.len < 2 || !tstate)
		return gils->items.len == 1 ? gils->items.items[0] : 0;
	known = hmap__get(&gils->of_threads, tstate);
	if (known)
		return *known;
	gil = read_gil_of(gils, target, tstate);
	if (gils->of_threads.len >= THREADS_MAX)
		hmap__clear(&gils->of_threads);
	hmap__set(&gils->of_threads, tstate, gil); /* a cache: it may fail */
	return gil;
}

void py_gils__clear(struct py_gils *gils)
{
	gils->items.len = 0;
	gils->read_ns = 0;
	hmap__clear(&gils->of_threads);
}

void py_gils__free(struct py_gils *gils)
{
	vec__free(&gils->items);
	hmap__free(&gils->of_threads);
}
