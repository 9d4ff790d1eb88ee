/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread does: by its thread state, read together with its stack, and by the kernel, asked right
 * after.
 */
#include "run/dumper_parts.h"

#include "base/util.h"

#include <sys/syscall.h>
#include <time.h>

#define STATE_LOOKS	 5
#define STATE_PAUSE_NS	 100000
#define GIL_STRUCT_BYTES 208	   /* struct _gil_runtime_state with its mutexes and condition variables */
#define STATUS_HOLDS_GIL (1u << 5) /* of PyThreadState._status in 3.13 */
#define EXCEPTION_ITEMS	 64
#define EXCEPTION_BYTES	 32 /* of an item, at most */

static const struct unwind_gil *gil_of(const struct dumper *dumper, const struct watched *watched)
{
	const struct unwind_interp *interp =
		unwinder__interp(&dumper->unwinder, watched->stack.thread.interp);

	/* To 3.11 there is one, of which the holder is known and no more. */
	if (dumper->process.target.layout.gil_tstate && dumper->unwinder.gils.len)
		return &dumper->unwinder.gils.items[0];
	for (size_t i = 0; interp && i < dumper->unwinder.gils.len; i++)
		if (dumper->unwinder.gils.items[i].address == interp->gil)
			return &dumper->unwinder.gils.items[i];
	return NULL;
}

static const uint8_t *state_field(const struct dumper *dumper, const struct watched *watched, uint32_t offset,
				  size_t width)
{
	return offset != PY_ABSENT && offset + width <= dumper->unwinder.thread_bytes
		       ? watched->stack.state + offset
		       : NULL;
}

static bool holds_gil(const struct dumper *dumper, const struct watched *watched,
		      const struct unwind_gil *gil)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	const uint8_t *flag = state_field(dumper, watched, offsets->thread_holds_gil, 4);

	if (flag)
		return load_u32(flag);
	flag = state_field(dumper, watched, offsets->thread_status, 4);
	if (flag && py_version_minor(offsets->version) == 13)
		return load_u32(flag) & STATUS_HOLDS_GIL;
	return gil && gil->holder == watched->stack.thread.tstate;
}

/* By what the thread says, or by what it waits for: a futex inside the GIL. */
static bool waits_for_gil(const struct dumper *dumper, const struct watched *watched,
			  const struct unwind_gil *gil, const struct task_look *look)
{
	const uint8_t *flag =
		state_field(dumper, watched, dumper->process.target.offsets.thread_gil_requested, 4);

	if (flag && load_u32(flag))
		return true;
	return gil && look->state == TASK_WAITING && look->syscall == SYS_futex &&
	       look->arg - gil->address < GIL_STRUCT_BYTES;
}

static enum dump_gil gil_state(const struct dumper *dumper, const struct watched *watched,
			       const struct task_look *look)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	const struct unwind_gil *gil = gil_of(dumper, watched);

	/* A free-threaded build may have one (PYTHON_GIL=1); nothing is said of it. */
	if (offsets->free_threaded || (!gil && offsets->thread_holds_gil == PY_ABSENT))
		return DUMP_GIL_UNKNOWN;
	if (holds_gil(dumper, watched, gil))
		return DUMP_GIL_HOLDS;
	if (dumper->process.target.layout.gil_tstate)
		return DUMP_GIL_UNKNOWN;
	return waits_for_gil(dumper, watched, gil, look) ? DUMP_GIL_WAITS : DUMP_GIL_NONE;
}

/*
 * An exception that is being raised is in the thread state; those being handled are a list, which begins in
 * the generator or coroutine that runs, if one does (struct _err_stackitem, _PyErr_GetTopmostException).
 */
static enum dump_exception exception_state(struct dumper *dumper, const struct watched *watched)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	const uint8_t *current = state_field(dumper, watched, offsets->thread_current_exception, 8);
	const uint8_t *info = py_offsets__has(offsets->thread_exc_info)
				      ? state_field(dumper, watched, offsets->thread_exc_info, 8)
				      : NULL;
	const struct py_type *type = NULL;
	uint8_t item[EXCEPTION_BYTES];
	py_addr at, value;

	if (!current)
		return DUMP_EXCEPTION_UNKNOWN;
	if (load_u64(current))
		return DUMP_EXCEPTION_RAISED;
	if (!info)
		return DUMP_EXCEPTION_UNKNOWN;
	at = load_u64(info);
	for (int i = 0; at && i < EXCEPTION_ITEMS; i++) {
		if (remote__read(&dumper->process.target.remote, at, item, offsets->exception_previous + 8))
			return DUMP_EXCEPTION_UNKNOWN;
		value = load_u64(item + offsets->exception_value);
		if (value)
			type = py_object__type(&dumper->objects, value);
		/* None stands for nothing here. */
		if (value && !(type && type->kind == PY_KIND_NONE))
			return DUMP_EXCEPTION_HANDLED;
		at = load_u64(item + offsets->exception_previous);
	}
	return DUMP_EXCEPTION_NONE;
}

/* What keeps the whole process from running keeps its threads. */
enum dump_run dumper_run_state(const struct dumper *dumper, const struct task_look *look)
{
	if (look->state != TASK_RUNNING && dumper->halt.kind)
		return dumper->halt.kind == HALT_FROZEN ? DUMP_FROZEN : DUMP_STOPPED;
	return look->state == TASK_RUNNING   ? DUMP_RUNNING
	       : look->state == TASK_WAITING ? DUMP_WAITING
					     : DUMP_RUN_UNKNOWN;
}

struct task_look dumper_look_at(const struct dumper *dumper, pid_t tid)
{
	struct task_look look = {.state = TASK_UNKNOWN, .syscall = -1};

	return tid ? task__look(dumper->process.pid, tid) : look;
}

void dumper_take_state(struct dumper *dumper, struct watched *watched)
{
	struct task_look look = dumper_look_at(dumper, watched->tid);
	struct dump_thread *made = &watched->made;

	made->run = dumper_run_state(dumper, &look);
	made->wait = look.state == TASK_WAITING ? task__syscall_name(look.syscall) : NULL;
	made->gil = gil_state(dumper, watched, &look);
	made->exception = exception_state(dumper, watched);
}

/*
 * A thread that waits for the GIL runs for some microseconds every 5 ms, to ask for it. So one that was found
 * running, and does not hold it, is looked at again.
 */
void dumper_settle_state(struct dumper *dumper)
{
	bool again = true;

	for (int i = 0; i < STATE_LOOKS && again; i++) {
		again = false;
		for (size_t j = 0; j < dumper->watched.len; j++) {
			struct watched *watched = dumper->watched.items[j];
			struct dump_thread *made = &watched->made;
			struct task_look look;

			if (made->run != DUMP_RUNNING || made->gil == DUMP_GIL_HOLDS ||
			    made->gil == DUMP_GIL_UNKNOWN)
				continue;
			look = dumper_look_at(dumper, watched->tid);
			again = true;
			if (waits_for_gil(dumper, watched, gil_of(dumper, watched), &look) &&
			    look.state == TASK_WAITING) {
				made->gil = DUMP_GIL_WAITS;
				made->run = DUMP_WAITING;
				made->wait = task__syscall_name(look.syscall);
			}
		}
		if (again)
			nanosleep(&(struct timespec){.tv_nsec = STATE_PAUSE_NS}, NULL);
	}
}
