/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For follow.c: whether a process is Python, and one that is wanted; and when to look again if it is none
 * yet.
 */
#include "run/follow_parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "os/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_NS 20000000ull /* of attaching, then samples are looked at again */

/* Looking for Python after an exec: doubling up to this. */
#define RETRY_MOST_NS 1000000000ull
/* One that is starting is ready soon, or else something holds it up. */
#define STARTING_RETRIES 100
#define STARTING_LONG	 120 /* it is set up for Python, but nobody uses it */
#define STARTING_SLOW_NS 5000000000ull
#define COMMAND_RETRIES	 10
/* One that was found and is still none is something else. It may load Python one day. */
#define RETRIES_TOLD  6 /* where the kernel side tells of new code */
#define RETRY_SLOW_NS 1000000000ull

#define WARNINGS_MAX 5

#define COMMAND_BYTES_MAX (128u << 10) /* that are looked at */

static void warn(struct follower *follower, const struct process *process, const char *reason)
{
	if (!follower->config.all && follower->denied + follower->unsupported <= WARNINGS_MAX)
		log_warn("process %d (%s) is not profiled: %s", process->pid, process->command, reason);
	else
		log_dbg("follow", "process %d (%s) is not profiled: %s", process->pid, process->command,
			reason);
}

/* Where every process is looked at, one that is not Python soon is none of our business; an exec is told
 * anew. */
static void give_up(struct follower *follower, struct process *process)
{
	process->retry_ns = UINT64_MAX;
	if (!follower->config.all || process->asked_for || process->python)
		return;
	if (!follower->engine->sampler)
		strangers__add(&follower->strangers, process->pid);
	follower__exit(follower, process);
}

/*
 * As long as it may just be starting, then when it has other code than it had, which the kernel side tells.
 */
static void schedule_other(struct follower *follower, struct process *process, uint64_t now, uint32_t retries)
{
	bool is_told = follower->engine->sampler;
	uint32_t at_once = process->asked_for && !process->python ? COMMAND_RETRIES : 0;

	if (retries < at_once)
		follow_retry_at(follower, process, now + STARTING_NS); /* a command that was just started */
	else if (retries - at_once < (is_told ? RETRIES_TOLD : RETRIES_QUICK))
		follow_retry_at(follower, process,
				now + min_u64(RETRY_MOST_NS, RETRY_FIRST_NS << (retries - at_once)));
	else if (follower->config.all && !process->asked_for)
		give_up(follower, process);
	else
		follow_retry_at(follower, process, is_told ? UINT64_MAX : now + RETRY_SLOW_NS);
}

/* Whether it is Python cannot be told but by its name. */
static void note_denied(struct follower *follower, const struct process *process)
{
	size_t len = strlen(follower->denied_names);
	char number[PIDNS_TEXT];

	follower->denied++;
	if (process__is_named_python(process) && follower->denied_pythons++ < FOLLOW_NAMED_MAX)
		snprintf(follower->denied_names + len, sizeof(follower->denied_names) - len, "%s%s (%s)",
			 len ? ", " : "", process__number(process, number), process->command);
}

static void note_unsupported(struct follower *follower, const struct process *process, const char *reason)
{
	char number[PIDNS_TEXT];

	if (!follower->unsupported++)
		snprintf(follower->unsupported_first, sizeof(follower->unsupported_first),
			 "process %s (%s): %s", process__number(process, number), process->command, reason);
}

static void schedule(struct follower *follower, struct process *process, uint64_t now, const char *reason)
{
	uint32_t retries = process->retries++;

	switch (process->error) {
	case PY_ATTACH_DENIED:
	case PY_ATTACH_UNSUPPORTED:
		if (process->error == PY_ATTACH_DENIED && !process->denied)
			note_denied(follower, process);
		else if (process->error == PY_ATTACH_UNSUPPORTED && !process->unsupported)
			note_unsupported(follower, process, reason);
		process->denied |= process->error == PY_ATTACH_DENIED;
		process->unsupported |= process->error == PY_ATTACH_UNSUPPORTED;
		warn(follower, process, reason);
		give_up(follower, process);
		return;
	case PY_ATTACH_STARTING:
		follow_retry_at(follower, process,
			 now + (retries < STARTING_RETRIES ? STARTING_NS
				: retries < STARTING_LONG  ? RETRY_MOST_NS
							   : STARTING_SLOW_NS));
		return;
	default:
		schedule_other(follower, process, now, retries);
	}
}

/*
 * What an attach finds out may be half of it while an interpreter is being made. As soon as it runs a frame,
 * it is whole.
 */
static bool is_starting(const struct process *process)
{
	return !process->target.code_type && process->frameless < STARTING_RETRIES;
}

int follow_is_wanted(const struct follower *follower, const struct process *process)
{
	const struct filter *filter = &follower->config.filter;
	char comm[64] = "", *command;
	uid_t user = 0;
	gid_t group;
	int err;

	if (process->asked_for || !filter__is_set(filter))
		return 1;
	command = malloc(COMMAND_BYTES_MAX);
	if (!command)
		return -ENOMEM;
	err = proc__task_comm(process->pid, process->pid, comm, sizeof(comm))
		      ?: proc__cmdline(process->pid, command, COMMAND_BYTES_MAX)
		      ?: proc__file_owner(process->pid, &user, &group);
	err = err ?: filter__wants(filter, comm, command, user);
	free(command);
	return err;
}

/* It is in the profile, or the report says why not. */
static bool is_told(const struct process *process)
{
	return process->attached || process->error == PY_ATTACH_DENIED ||
	       process->error == PY_ATTACH_UNSUPPORTED;
}

void follow_judge(struct follower *follower, struct process *process, bool was_python, const char *reason)
{
	int err, wanted;

	if (process->attached && is_starting(process)) {
		if (!process->frameless++)
			process->retries = 0; /* it will not be long */
		process->attached = false;
		process->python = was_python;
		process->error = PY_ATTACH_STARTING;
	}
	wanted = is_told(process) ? follow_is_wanted(follower, process) : 1;
	if (wanted != 1) {
		/* One that has just ended may have been wanted. */
		follower->excluded += !wanted && process->attached && !process->excluded;
		process->excluded |= !wanted && process->attached;
		process->attached = process->python = false;
		give_up(follower, process);
		return;
	}
	if (!process->attached) {
		schedule(follower, process, now_ns(), reason);
		return;
	}
	if (follower->config.containers)
		process->container = containers__of(follower->config.containers, process->pid);
	symbolizer__admit(follower->symbolizer, process);
	err = follower__set_target(follower, process);
	if (process->attached && follower->engine->sampler)
		symbolizer__prime_tails(follower->symbolizer, process);
	follow_note_error(follower, waits__find(follower->waits, process, now_ns()));
	if (err == -EBUSY)
		log_warn("process %d: another profiler has set frame markers in it", process->pid);
}

static void attach(struct follower *follower, struct process *process)
{
	bool was_python = process->python;
	char reason[512];

	if (!follow_has_new_code(process)) {
		schedule(follower, process, now_ns(), "");
		return;
	}
	process__attach(process, reason, sizeof(reason));
	follow_judge(follower, process, was_python, reason);
}

bool follow_wants_python(const struct process *process)
{
	return !process->attached && !process->exited;
}

/* For scripts/bench; in the words of a shell that asked for the time before. */
static void note_settled(struct follower *follower)
{
	struct timespec time;

	follower->settled = true;
	clock_gettime(CLOCK_REALTIME, &time);
	log_dbg("follow", "all %zu processes were looked at by %lld.%06ld",
		processes__alive(&follower->processes), (long long)time.tv_sec, time.tv_nsec / 1000);
}

void follow_judge_due(struct follower *follower, uint64_t now)
{
	bool is_late = false;

	if (now < follower->retry_ns)
		return;
	follower->retry_ns = UINT64_MAX;
	follow_look_at_strangers(follower, now + TURN_NS);
	for (size_t i = 0; i < follower->processes.items.len; i++) {
		struct process *process = follower->processes.items.items[i];

		if (!follow_wants_python(process))
			continue;
		if (now >= process->retry_ns && !is_late) {
			attach(follower, process);
			is_late = now_ns() - now > TURN_NS;
		}
		if (follow_wants_python(process))
			follower->retry_ns = min_u64(follower->retry_ns, process->retry_ns);
	}
	if (!follower->settled && follower->retry_ns > now)
		note_settled(follower);
}
