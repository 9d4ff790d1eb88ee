/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An attach, step by step: the process, its runtime (runtime.c), its threads (threads.c), the proof on live
 * frames (verify.c), the layout for the BPF program (layout.c) and the slot of the current thread (slot.c).
 * Reads only, and takes a few milliseconds.
 */
#include "py/target.h"

#include "base/buf.h"
#include "base/util.h"
#include "os/proc.h"
#include "py/layout.h"
#include "py/runtime.h"
#include "py/slot.h"
#include "py/threads.h"
#include "py/verify.h"

#include <errno.h>
#include <stdio.h>

#define MAX_THREADS  256 /* looked at while attaching */
#define VERIFY_TRIES 8
#define SLOT_TRIES   3 /* threads that start or end meanwhile make the check fail */

struct attach {
	struct py_target *target;
	struct py_runtime runtime;
	struct py_thread threads[MAX_THREADS];
	size_t threads_cnt;
	char *reason;
	size_t reason_size;
};

static enum py_attach_error fail(struct attach *attach, int err)
{
	return py_attach_errno(err, attach->reason, attach->reason_size);
}

/*
 * 0 or -errno; -ESRCH also for a process that has ended and is not reaped yet. If only its main thread has,
 * it lives.
 */
static int read_stat(pid_t pid, struct proc_stat *stat)
{
	int err = proc__stat(pid, stat);

	if (!err && (stat->state == 'Z' || stat->state == 'X') && stat->num_threads <= 1)
		return -ESRCH;
	return err;
}

static enum py_attach_error open_process(struct attach *attach)
{
	struct proc_stat stat;
	int err = read_stat(attach->target->pid, &stat);

	if (err)
		return fail(attach, err);
	attach->target->start_ticks = stat.start_ticks;
	remote__init(&attach->target->remote, attach->target->pid);
	return PY_ATTACH_OK;
}

static void explain_not_python(struct attach *attach)
{
	struct buf text = {};
	struct proc_stat stat;

	if (proc__stat(attach->target->pid, &stat))
		snprintf(stat.comm, sizeof(stat.comm), "the process");
	buf__add_escaped(&text, stat.comm, NULL);
	buf__adds(&text, " is not a Python process");
	buf__addc(&text, '\0');
	snprintf(attach->reason, attach->reason_size, "%s", text.err ? "not a Python process" : text.data);
	buf__free(&text);
}

/* An empty address space: a kernel thread, or a process on its way out, which has no runtime either. */
static enum py_attach_error find_runtime(struct attach *attach)
{
	struct py_target *target = attach->target;
	enum py_attach_error error =
		py_runtime__find(&attach->runtime, &target->remote, attach->reason, attach->reason_size);
	struct proc_stat stat;

	if (error == PY_ATTACH_GONE && !read_stat(target->pid, &stat))
		error = PY_ATTACH_NOT_PYTHON;
	if (error == PY_ATTACH_NOT_PYTHON)
		explain_not_python(attach);
	if (error)
		return error;
	target->offsets = attach->runtime.offsets;
	target->runtime = attach->runtime.addr;
	snprintf(target->image, sizeof(target->image), "%s", attach->runtime.image);
	snprintf(target->how, sizeof(target->how), "%s", attach->runtime.how);
	return PY_ATTACH_OK;
}

static int list_threads(struct attach *attach)
{
	int count = py_threads__list(&attach->target->remote, &attach->target->offsets,
				     attach->target->runtime, attach->threads, MAX_THREADS);

	attach->threads_cnt = count < 0 ? 0 : count;
	return count < 0 ? count : 0;
}

/* Threads start and end meanwhile, so a contradiction has to survive fresh lists. */
static enum py_attach_error verify(struct attach *attach)
{
	struct py_target *target = attach->target;
	enum py_attach_error error = PY_ATTACH_CORRUPT;
	int err = remote__read(&target->remote, target->runtime + target->offsets.runtime_main_thread,
			       &target->main_thread, 8);

	for (int i = 0; !err && i < VERIFY_TRIES && error == PY_ATTACH_CORRUPT; i++) {
		err = list_threads(attach);
		if (!err)
			error = py_verify__run(target, attach->threads, attach->threads_cnt, attach->reason,
					       attach->reason_size);
	}
	return err ? fail(attach, err) : error;
}

/*
 * 3.15 keeps a pointer to a frame inside the thread state, behind the public part: how far behind is not in
 * the table.
 */
static uint16_t find_base_frame(struct attach *attach)
{
	struct py_target *target = attach->target;
	uint64_t distance = PBP_NONE, base_frame;

	if (target->offsets.thread_base_frame == PY_ABSENT)
		return PBP_NONE;
	for (size_t i = 0; i < attach->threads_cnt; i++) {
		py_addr tstate = attach->threads[i].tstate;

		if (remote__read(&target->remote, tstate + target->offsets.thread_base_frame, &base_frame, 8))
			continue;
		if (distance != PBP_NONE && distance != base_frame - tstate)
			return PBP_NONE;
		distance = base_frame - tstate;
	}
	return distance < PBP_NONE ? distance : PBP_NONE;
}

/*
 * To 3.11 the runtime points to the thread state that holds the GIL. If what is there is none, as might be in
 * a build with other options, nothing is said of the GIL.
 */
static void check_gil(struct attach *attach)
{
	struct pbp_target *layout = &attach->target->layout;
	py_addr holder;

	for (int i = 0; layout->gil_tstate && i < SLOT_TRIES; i++) {
		if (remote__read(&attach->target->remote, layout->gil_tstate, &holder, 8))
			break;
		if (!holder)
			return;
		for (size_t j = 0; j < attach->threads_cnt; j++)
			if (attach->threads[j].tstate == holder)
				return;
		list_threads(attach);
	}
	layout->gil_tstate = 0;
}

static enum py_attach_error fill_layout(struct attach *attach)
{
	struct py_target *target = attach->target;
	struct pbp_target *layout = &target->layout;
	int err = py_layout__fill(layout, &target->offsets, find_base_frame(attach));

	if (err) {
		snprintf(attach->reason, attach->reason_size,
			 "_Py_DebugOffsets: thread_state or interpreter_frame is larger than supported");
		return PY_ATTACH_UNSUPPORTED;
	}
	py_layout__locate(layout, &target->offsets, target->runtime);
	layout->code_type = target->code_type;
	for (size_t i = 0; i < attach->threads_cnt; i++)
		if (!attach->threads[i].interp_id)
			layout->main_interp = attach->threads[i].interp;
	check_gil(attach);
	for (int i = 0; i < SLOT_TRIES; i++) {
		if (py_slot__find(layout, target->slot_how, sizeof(target->slot_how), &target->remote,
				  &attach->runtime, attach->threads, attach->threads_cnt))
			break;
		list_threads(attach);
	}
	return PY_ATTACH_OK;
}

/* Another process may have got the pid while this one was being looked at. */
static enum py_attach_error check_identity(struct attach *attach)
{
	struct proc_stat stat;

	if (!read_stat(attach->target->pid, &stat) && stat.start_ticks == attach->target->start_ticks)
		return PY_ATTACH_OK;
	return fail(attach, -ESRCH);
}

enum py_attach_error py_target__open(struct py_target *out, pid_t pid, char *reason, size_t reason_size)
{
	struct attach attach = {
		.target = out,
		.runtime.file.fd = -1,
		.reason = reason,
		.reason_size = reason_size,
	};
	enum py_attach_error error;

	*out = (struct py_target){.pid = pid};
	snprintf(reason, reason_size, "%s", "");
	error = open_process(&attach) ?: find_runtime(&attach) ?: verify(&attach) ?: fill_layout(&attach)
						?: check_identity(&attach);
	py_runtime__close(&attach.runtime);
	return error;
}

bool py_target__is_alive(struct py_target *target)
{
	const struct py_offsets *offsets = &target->offsets;
	uint64_t header[2], head, main_thread;
	struct remote_segment segments[] = {
		{.addr = target->runtime, .dest = header, .len = sizeof(header)},
		{.addr = target->runtime + offsets->runtime_interpreters_head, .dest = &head, .len = 8},
		{.addr = target->runtime + offsets->runtime_main_thread, .dest = &main_thread, .len = 8},
	};

	if (remote__read_batch(&target->remote, segments, ARRAY_SIZE(segments)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(segments); i++) {
		if (segments[i].got < segments[i].len)
			return false;
	}
	if (py_offsets__are_in_process(offsets) &&
	    (memcmp(&header[0], "xdebugpy", 8) || header[1] != offsets->version))
		return false;
	return head && main_thread == target->main_thread;
}

int py_target__threads(struct py_target *target, struct py_thread *out, size_t max)
{
	return py_threads__list(&target->remote, &target->offsets, target->runtime, out, max);
}
