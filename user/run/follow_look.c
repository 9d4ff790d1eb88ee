/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is no Python may become one without an exec: it loads libpython, maybe hours after its start. The
 * kernel side tells of new code (PBP_LOOK); without it, run/strangers.h.
 */
#include "run/follow_parts.h"

#include "base/clock.h"
#include "base/util.h"
#include "os/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_NS 20000000ull /* from the first new code on: there is more to come */
#define EXEC_NS 5000000ull  /* from an exec on: most programs that are that brief are no Python */

bool follow_has_new_code(struct process *process)
{
	uint64_t bytes = 0, before = process->code_bytes;

	if (process->error != PY_ATTACH_NOT_PYTHON)
		return true;
	process->code_bytes = proc__code_bytes(process->pid, &bytes) ? 0 : bytes;
	return !before || process->code_bytes != before;
}

/* --- what nobody follows --- */

static bool may_be_python(enum py_attach_error error)
{
	return error != PY_ATTACH_NOT_PYTHON && error != PY_ATTACH_GONE && error != PY_ATTACH_SYSTEM;
}

int follow_add_unattached(struct follower *follower, struct process *process)
{
	uint64_t head = process->target.layout.interpreters_head;
	bool attached = process->attached;
	int err;

	process->attached = false;
	process->target.layout.interpreters_head = 0;
	err = engine__add(follower->engine, process);
	process->target.layout.interpreters_head = head;
	process->attached = attached;
	return err;
}

static void take_up(struct follower *follower, struct process *process, const char *reason)
{
	int err = follower__take(follower, process);

	if (err) {
		follow_note_error(follower, err);
		process__close(process);
		free(process);
		return;
	}
	strangers__forget(&follower->strangers, process->pid);
	err = follow_add_unattached(follower, process); /* that is judged after this */
	if (err == -E2BIG) {
		follow_note_beyond(follower);
		follower__exit(follower, process);
		return;
	}
	follow_judge(follower, process, false, reason);
}

static void look_at(struct follower *follower, pid_t pid)
{
	struct process *process = calloc(1, sizeof(*process));
	char reason[512];
	int err;

	if (!process)
		return;
	err = process__open(process, pid, follower->strings);
	follower->unopened += err && err != -ESRCH;
	process->no_slot = follower->config.no_slot;
	process->retries = RETRIES_QUICK; /* it has had the time to become what it is */
	if (!err && may_be_python(process__attach(process, reason, sizeof(reason)))) {
		take_up(follower, process, reason);
		return;
	}
	/* Later they are met again and again. */
	follower->processes.past.others += !err && !follower->settled;
	process__close(process);
	free(process);
}

/* `refused`: whether one that is refused will do. */
static bool is_python(struct follower *follower, pid_t pid, bool refused)
{
	struct process process = {.pid = pid};
	enum py_attach_error error;
	char reason[512];

	error = py_target__open(&process.target, pid, reason, sizeof(reason));
	return (error == PY_ATTACH_OK || error == PY_ATTACH_STARTING || (refused && may_be_python(error))) &&
	       follow_is_wanted(follower, &process) == 1;
}

static bool is_followed(const struct follower *follower, pid_t pid)
{
	const struct process *process = processes__find(&follower->processes, pid);

	return (process && !process->exited) || pid == getpid();
}

static void look_at_stranger(struct follower *follower, pid_t pid, bool refused)
{
	if (strangers__has_changed(&follower->strangers, pid) && is_python(follower, pid, refused))
		look_at(follower, pid);
}

void follow_look(struct follower *follower, pid_t pid)
{
	struct process *process = processes__find(&follower->processes, pid);

	if (!is_followed(follower, pid)) {
		/* Those that are refused have been counted. */
		if (follower->config.all)
			look_at_stranger(follower, pid, false);
		return;
	}
	/* What was refused has been counted, and stays so. */
	if (!process || !follow_wants_python(process) || process->error == PY_ATTACH_DENIED ||
	    process->error == PY_ATTACH_UNSUPPORTED)
		return;
	process->code_bytes = 0;
	follow_retry_at(follower, process, min_u64(process->retry_ns, now_ns() + LOOK_NS));
}

void follow_look_at_changed(struct follower *follower, uint64_t now)
{
	pid_t pid = strangers__next_changed(&follower->strangers, now);

	if (pid && !is_followed(follower, pid) && is_python(follower, pid, false))
		look_at(follower, pid);
}

void follow_watch(struct follower *follower, pid_t pid)
{
	uint64_t due_ns = now_ns() + EXEC_NS;

	strangers__watch(&follower->strangers, pid, due_ns);
	follower->retry_ns = min_u64(follower->retry_ns, due_ns);
}

static void look_at_unseen(struct follower *follower)
{
	pid_t pid = follower->unseen.items[--follower->unseen.len];

	if (is_followed(follower, pid))
		return;
	strangers__has_changed(&follower->strangers, pid); /* as of before the look */
	look_at(follower, pid);
}

void follow_look_at_strangers(struct follower *follower, uint64_t until_ns)
{
	uint64_t now = now_ns();
	pid_t pid = 0;

	while (now < until_ns &&
	       (follower->unseen.len || (pid = strangers__next_due(&follower->strangers, now)))) {
		if (follower->unseen.len)
			look_at_unseen(follower);
		else if (!is_followed(follower, pid))
			look_at_stranger(follower, pid, true); /* it has just begun, or called exec */
		now = now_ns();
	}
	follower->retry_ns = min_u64(follower->retry_ns,
				     follower->unseen.len ? 0 : strangers__due_ns(&follower->strangers));
}
