/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See process.h. The GILs of a process change when it makes interpreters: they are looked for again where an
 * address lies in none of them, and now and then.
 */
#include "run/process.h"

#define LOOK_NS	 100000000ull  /* between two looks, if one is not found */
#define AGAIN_NS 1000000000ull /* ... or in any case */

/* Times of records may be a little older than the last look. */
static void look(struct process *process, uint64_t now, uint64_t every_ns)
{
	if (!process->attached || process->exited ||
	    (process->gils.read_ns && now < process->gils.read_ns + every_ns))
		return;
	process->gils.read_ns = now;
	py_gils__read(&process->gils, &process->target);
	process->had_gil |= process->gils.items.len > 0;
}

py_addr process__gil_at(struct process *process, py_addr address, uint64_t now)
{
	if (!py_gils__find(&process->gils, address))
		look(process, now, LOOK_NS);
	return py_gils__find(&process->gils, address);
}

py_addr process__gil_of(struct process *process, py_addr tstate, uint64_t now)
{
	look(process, now, process->gils.items.len ? AGAIN_NS : LOOK_NS);
	if (!process->attached || process->exited)
		return process->gils.items.len == 1 ? process->gils.items.items[0] : 0;
	return py_gils__of(&process->gils, &process->target, tstate);
}
