/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The target runs while it is read, so a list can change between two reads. A contradiction is believed only
 * when it is still there after a few more looks.
 */
#include "py/probe.h"

#include "base/util.h"
#include "py/runtime.h"

#include <errno.h>
#include <stdio.h>

#define LOOKS		 4
#define MAX_INTERPRETERS 64 /* the newest come first and may still be in the making; the main one is last */
#define MAX_INTERP_ID	 (1ll << 32) /* ids count up from 0 */

struct interpreter {
	int64_t id;
	py_addr next;
	py_addr threads_head;
};

static void set_verdict(struct py_probe *probe, enum py_attach_error verdict, const char *reason)
{
	probe->verdict = verdict;
	snprintf(probe->reason, sizeof(probe->reason), "%s", reason);
}

/* Not permitted or gone: nothing else matters then. Other errors are contents. */
static bool set_system_error(struct py_probe *probe, int err)
{
	if (!err || err == -EFAULT)
		return false;
	probe->verdict = py_attach_errno(err, probe->reason, sizeof(probe->reason));
	return true;
}

static int read_interpreter(struct remote *remote, const struct py_offsets *offsets, py_addr interp,
			    struct interpreter *out)
{
	struct remote_segment segments[] = {
		{.addr = interp + offsets->interp_id, .dest = &out->id, .len = 8},
		{.addr = interp + offsets->interp_next, .dest = &out->next, .len = 8},
		{.addr = interp + offsets->interp_threads_head, .dest = &out->threads_head, .len = 8},
	};
	int err = remote__read_batch(remote, segments, ARRAY_SIZE(segments));

	for (size_t i = 0; !err && i < ARRAY_SIZE(segments); i++) {
		if (segments[i].got < segments[i].len)
			err = -EFAULT;
	}
	return err;
}

/* Does the interpreter read back sane, and is its first thread's? STARTING if it has no thread. */
static void look_at_interpreter(struct py_probe *probe, struct remote *remote, py_addr addr, py_addr *next)
{
	struct interpreter interp;
	py_addr owner = 0;
	int err = read_interpreter(remote, &probe->offsets, addr, &interp);

	*next = 0;
	if (set_system_error(probe, err))
		return;
	if (err) {
		set_verdict(probe, PY_ATTACH_CORRUPT, "interpreters_head of its _PyRuntime leads nowhere");
		return;
	}
	if (interp.id < 0 || interp.id > MAX_INTERP_ID) {
		set_verdict(probe, PY_ATTACH_CORRUPT, "interpreter_state.id reads back absurd");
		return;
	}
	*next = interp.next;
	if (!interp.threads_head) {
		set_verdict(probe, PY_ATTACH_STARTING, "its interpreter has no thread (yet, or any more)");
		return;
	}
	err = remote__read(remote, interp.threads_head + probe->offsets.thread_interp, &owner, 8);
	if (set_system_error(probe, err))
		return;
	if (err || owner != addr)
		set_verdict(probe, PY_ATTACH_CORRUPT,
			    err ? "interpreter_state.threads_head leads nowhere"
				: "thread_state.interp does not point back to its interpreter");
	else
		set_verdict(probe, PY_ATTACH_OK, "");
}

static void look_at_interpreters(struct py_probe *probe, struct remote *remote, py_addr runtime)
{
	py_addr interp = 0;
	int err = remote__read(remote, runtime + probe->offsets.runtime_interpreters_head, &interp, 8);

	if (set_system_error(probe, err))
		return;
	if (err) {
		set_verdict(probe, PY_ATTACH_CORRUPT, "runtime_state.interpreters_head is not readable");
		return;
	}
	set_verdict(probe, PY_ATTACH_STARTING, "its Python is not initialised (yet)");
	for (int i = 0; interp && i < MAX_INTERPRETERS; i++) {
		look_at_interpreter(probe, remote, interp, &interp);
		if (probe->verdict != PY_ATTACH_STARTING)
			return;
	}
}

void py_probe__look(struct py_probe *probe, struct remote *remote, py_addr runtime)
{
	for (int look = 0; look < LOOKS; look++) {
		look_at_interpreters(probe, remote, runtime);
		if (probe->verdict != PY_ATTACH_CORRUPT)
			return;
	}
}

static void judge_table(struct py_probe *probe, const uint8_t *table, size_t len)
{
	int err = py_offsets__decode(&probe->offsets, table, len, probe->reason, sizeof(probe->reason));

	probe->has_table = len >= 8 && !memcmp(table, "xdebugpy", 8);
	if (!err)
		probe->verdict = PY_ATTACH_OK;
	else if (!probe->has_table)
		probe->verdict = PY_ATTACH_NOT_PYTHON;
	else
		probe->verdict = err == -ENOTSUP ? PY_ATTACH_UNSUPPORTED : PY_ATTACH_CORRUPT;
}

void py_probe__run(struct py_probe *probe, struct remote *remote, py_addr runtime)
{
	uint8_t table[PY_DEBUG_OFFSETS_MAX];
	struct remote_segment segment = {.addr = runtime, .dest = table, .len = sizeof(table)};

	*probe = (struct py_probe){.verdict = PY_ATTACH_NOT_PYTHON};
	if (set_system_error(probe, remote__read_batch(remote, &segment, 1)))
		return;
	judge_table(probe, table, segment.got);
	if (probe->verdict == PY_ATTACH_OK)
		py_probe__look(probe, remote, runtime);
}
