/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is no Python may become one without an exec: it loads libpython, maybe hours after its start. The kernel side
 * tells of new code (PBP_LOOK); without it, run/strangers.h.
 */
#include "run/follow_parts.h"

#include "base/util.h"
#include "os/proc.h"

#include <unistd.h>

#define LOOK_NS 20000000ull /* from the first new code on: there is more to come */

bool follow_has_new_code(const struct follower *follower, struct process *process)
{
	uint64_t bytes = 0, before = process->code_bytes;
	bool is_first = process->error != PY_ATTACH_NOT_PYTHON;

	if (is_first && (follower->engine->sampler || !follower->config.all))
		return true;
	process->code_bytes = proc__code_bytes(process->pid, &bytes) ? 0 : bytes;
	return is_first || !before || process->code_bytes != before;
}

/* One that nobody follows is only taken up if it is Python, so that it is not counted each time. */
static bool is_python(struct follower *follower, pid_t pid)
{
	struct process process = {.pid = pid};
	enum py_attach_error error;
	char reason[512];

	error = py_target__open(&process.target, pid, reason, sizeof(reason));
	return (error == PY_ATTACH_OK || error == PY_ATTACH_STARTING) && follow_is_wanted(follower, &process);
}

void follow_look(struct follower *follower, struct process *process, pid_t pid)
{
	if (process && !process->exited) {
		process->code_bytes = 0;
		/* What was refused has been counted, and stays so. */
		if (follow_wants_python(process) && process->error != PY_ATTACH_DENIED &&
		    process->error != PY_ATTACH_UNSUPPORTED)
			follow_retry_at(follower, process, min_u64(process->retry_ns, follow_now_ns() + LOOK_NS));
	} else if (follower->config.all && pid != getpid() && is_python(follower, pid)) {
		follower__add_found(follower, pid);
	}
}

static bool may_be_python(enum py_attach_error error)
{
	return error != PY_ATTACH_NOT_PYTHON && error != PY_ATTACH_GONE && error != PY_ATTACH_SYSTEM;
}

static void drop(struct follower *follower, struct process *process)
{
	follower->processes.past.others += !follower->settled; /* later they are met again */
	if (!follower->engine->sampler)
		strangers__add(&follower->strangers, process->pid, process->code_bytes);
	process__close(process);
	free(process);
}

static void take_up(struct follower *follower, struct process *process, const char *reason)
{
	int err = follower__take(follower, process);

	if (err) {
		follower->err = follower->err ?: err;
		process__close(process);
		free(process);
		return;
	}
	err = engine__add(follower->engine, process);
	if (err == -E2BIG) {
		follower->beyond++;
		follower__exit(follower, process);
		return;
	}
	follow_judge(follower, process, false, reason);
}

static void look_at(struct follower *follower, pid_t pid)
{
	const struct process *known = processes__find(&follower->processes, pid);
	struct process *process = known && !known->exited ? NULL : calloc(1, sizeof(*process));
	char reason[512];
	int err;

	if (!process)
		return;
	err = process__open(process, pid, follower->strings);
	if (err) {
		follower->unopened += err != -ESRCH;
		process__close(process);
		free(process);
		return;
	}
	process->no_slot = follower->config.no_slot;
	process->retries = RETRIES_QUICK; /* it has had the time to become what it is */
	follow_has_new_code(follower, process);
	if (may_be_python(process__attach(process, reason, sizeof(reason))))
		take_up(follower, process, reason);
	else
		drop(follower, process);
}

void follow_look_at_unseen(struct follower *follower, uint64_t until_ns)
{
	while (follower->unseen.len && follow_now_ns() < until_ns)
		look_at(follower, follower->unseen.items[--follower->unseen.len]);
	if (follower->unseen.len)
		follower->retry_ns = 0;
}
