/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See follow.h. With BPF, forks and execs are told by the kernel side, which samples what a target forks from
 * its first instant. The rest is in files of its own (run/follow_parts.h).
 */
#include "run/follow_parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "os/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MS	1000000ull
#define SECOND	(1000 * MS)
#define POLL_NS (10 * MS) /* between looks for new processes, without BPF */

#define LINGER_NS (SECOND / 2) /* from the end of a process to the last of its samples */
#define SWEEP_NS  (SECOND / 2)
#define CPU_NS	  (SECOND / 10) /* between looks at CPU times, without BPF */
#define SHARE	  50 /* passes that are repeated take one part in this many of a CPU at most */

/*
 * From a fork on, looks for a name that the process gives itself. One that it takes later is not looked for.
 */
static const uint64_t name_looks_ns[] = {20 * MS, 200 * MS, SECOND};

bool follow_finds(const struct follower *follower)
{
	return follower->config.subprocesses || follower->config.all || follower->config.scope;
}

void follow_note_error(struct follower *follower, int err)
{
	follower->err = follower->err ?: err;
}

void follow_note_beyond(struct follower *follower)
{
	follower->beyond = max_u64(follower->beyond, ++follower->beyond_now);
}

static void flush(struct follower *follower)
{
	follow_note_error(follower, symbolizer__flush_batch(follower->symbolizer));
}

void follow_retry_at(struct follower *follower, struct process *process, uint64_t when)
{
	process->retry_ns = when;
	follower->retry_ns = min_u64(follower->retry_ns, when);
}

uint64_t follow_next_pass(uint64_t began_cpu_ns, uint64_t pause_ns)
{
	return now_ns() + max_u64(pause_ns, (proc__own_cpu_ns() - began_cpu_ns) * SHARE);
}

int follower__take(struct follower *follower, struct process *process)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uintptr_t)process};
	int err = processes__add(&follower->processes, process);

	process->no_slot = follower->config.no_slot;
	if (!err && process->pidfd < 0 && !process->gone && !follower->unwatched) {
		follower->unwatched = true;
		log_warn("there are more processes than file descriptors (RLIMIT_NOFILE, ulimit -n): "
			 "ends of some are noticed later");
	}
	if (err || process->pidfd < 0)
		return err;
	/* Without it the process is found to be gone when it is read. */
	if (epoll_ctl(follower->epoll_fd, EPOLL_CTL_ADD, process->pidfd, &event))
		log_dbg("follow", "cannot watch process %d: %s", process->pid, strerror(errno));
	return 0;
}

int follower__set_target(struct follower *follower, struct process *process)
{
	int err = engine__set_target(follower->engine, process);

	process->set_ns = now_ns();
	if (!err && !process->inherited && !py_target__is_alive(&process->target))
		follower__exec(follower, process);
	return err;
}

/* --- what happens to one --- */

/* Whether it has called exec, or only keeps others from reading it now, is not known then. */
static bool may_not_be_read(const struct process *process)
{
	uint64_t id;
	int err = proc__exec_id(process->pid, &id);

	return err == -EACCES || err == -EPERM;
}

/*
 * The program that ran until now is gone: what was sampled of it is named from what is known, then all is
 * forgotten. What comes may have threads, and other privileges, at which the kernel takes timers on threads
 * away.
 */
void follower__exec(struct follower *follower, struct process *process)
{
	log_dbg("follow", "%d: another program", process->pid);
	process->attached = false;
	engine__unset_target(follower->engine, process);
	flush(follower);
	symbolizer__forget(follower->symbolizer, process);
	process->execs += process->python && !process->inherited && !may_not_be_read(process);
	process->python &= process->asked_for;
	process->inherited = process->gone = false;
	/* What it was before is not counted against it. */
	follower->unsupported -= process->unsupported;
	process->unsupported = false;
	process->error = PY_ATTACH_GONE;
	process->exec_id = 0;
	process->excluded = false;
	process__forget(process);
	process__update_command(process);
	if (!follow_finds(follower))
		engine__watch_threads(follower->engine);
	process->retries = process->frameless = 0;
	process->code_bytes = 0;
	follow_retry_at(follower, process, now_ns() + (process->asked_for ? STARTING_NS : RETRY_FIRST_NS));
}

void follower__exit(struct follower *follower, struct process *process)
{
	bool lives = process__lives(process); /* and is none of ours any more */

	if (process->exited)
		return;
	process->cpu_known |= process__update_cpu(process);
	process->cpu_missed = !process->cpu_known && (process->python || process->samples);
	follower->cpu_unknown += process->cpu_missed;
	engine__remove(follower->engine, process); /* the pid can come again */
	if (process->pidfd >= 0) {
		epoll_ctl(follower->epoll_fd, EPOLL_CTL_DEL, process->pidfd, NULL);
		close(process->pidfd);
		process->pidfd = -1;
	}
	processes__end(&follower->processes, process, now_ns());
	if (!lives)
		follow_number_is_free(follower, process->pid);
}

/* What its parent is, it is too: if it has called no exec since, as far as can be told. */
static bool is_fork_of(struct process *process, const struct process *parent, uint32_t epoch)
{
	uint64_t own, parents;
	int err;

	if (!parent || !parent->attached)
		return false;
	err = process->gone ? -ESRCH : proc__start_id(process->pid, &own);
	err = err ?: proc__start_id(parent->pid, &parents);
	/* The kernel side knows that it was, and of an exec there is a record to come. */
	if (err)
		return epoch;
	if (own == parents)
		process->exec_id = own;
	return own == parents;
}

bool follow_is_tracked(const struct follower *follower, pid_t pid)
{
	const struct process *process = processes__find(&follower->processes, pid);

	return process && !process->exited;
}

/* A pass over /proc came first: the kernel side may have set its own epoch over ours. */
static void take_known_fork(struct follower *follower, struct process *process, uint32_t epoch)
{
	if (epoch && process->attached)
		engine__add(follower->engine, process);
	else if (epoch)
		follow_add_unattached(follower, process);
}

void follow_add(struct follower *follower, pid_t pid, struct process *parent, uint32_t epoch, bool is_new)
{
	struct process *process = processes__find(&follower->processes, pid);
	int err;

	if (process && !process->exited && process__lives(process)) {
		take_known_fork(follower, process, epoch);
		return;
	}
	if (process) {
		flush(follower); /* the samples up to now are those of the one that had the pid before */
		follower__exit(follower, process);
	}
	process = calloc(1, sizeof(*process));
	if (!process) {
		follow_note_error(follower, -ENOMEM);
		return;
	}
	err = process__open(process, pid, follower->strings);
	process->engine_epoch = epoch;
	/* It lived, and may have been sampled. */
	process->gone = err == -ESRCH && epoch;
	/* A zombie that a pass met: each one would meet it again. */
	if (!err && !epoch && !is_new && !process__lives(process))
		err = -ESRCH;
	if (process->gone)
		err = 0;
	err = err ?: follower__take(follower, process);
	if (err) {
		follower->unopened += err != -ESRCH;
		if (epoch)
			engine__remove(follower->engine, process);
		process__close(process);
		free(process);
		return;
	}
	if (is_new)
		process->cpu_start_ns = 0;
	if (epoch)
		process->epoch = process->target.layout.epoch = epoch;
	if (is_fork_of(process, parent, epoch)) {
		process__inherit(process, parent, process->epoch);
		process->set_ns = now_ns();
		follower->names_ns = 0;
	} else if (parent && epoch && parent->error == PY_ATTACH_NOT_PYTHON) {
		process->error = parent->error;
	}
	follow_retry_at(follower, process, now_ns() + (is_new ? STARTING_NS : 0));
	process->retries = is_new ? 0 : RETRIES_QUICK; /* it has had the time to become what it is */
	if (process->gone)
		follower__exit(follower, process);
	else if (process->attached && epoch)
		err = follower__set_target(follower, process);
	else if (!epoch)
		err = engine__add(follower->engine, process);
	if (err == -E2BIG) {
		follow_note_beyond(follower);
		follower__exit(follower, process);
	} else if (err && err != -ESRCH) {
		log_dbg("follow", "process %d: %s", pid, strerror(-err));
	}
}

void follower__add_found(struct follower *follower, pid_t pid)
{
	if (!follow_is_tracked(follower, pid))
		follow_add(follower, pid, NULL, 0, false);
}

static void take_fork(struct follower *follower, const struct pbp_process *record)
{
	struct process *process;

	follow_add(follower, record->tgid, processes__find(&follower->processes, record->parent),
		   record->epoch, true);
	if (follower->config.scope)
		follow_scope_look(follower, record->tgid); /* it may have been started in another one */
	process = processes__find(&follower->processes, record->tgid);
	if (process)
		process->since_ns = record->time_ns;
}

/* It was attached since, as the program that it became then. */
static bool is_old(const struct follower *follower, const struct process *process,
		   const struct pbp_process *record)
{
	return process->attached && !process->inherited &&
	       engine__local_ns(follower->engine, record->time_ns) < process->set_ns;
}

static void take_exec(struct follower *follower, struct process *process, const struct pbp_process *record)
{
	/* It has ended since, and was not what it was forked from. */
	if (process && process->exited && process->inherited)
		process->python = process->attached = process->inherited = false;
	if (process && !process->exited && is_old(follower, process, record))
		return;
	if (process && !process->exited)
		follower__exec(follower, process);
	else if (follower->config.all)
		follow_watch(follower, record->tgid);
}

void follower__handle(struct follower *follower, const struct pbp_process *record)
{
	struct process *process = processes__find(&follower->processes, record->tgid);

	switch (record->type) {
	case PBP_FORK:
		take_fork(follower, record);
		break;
	case PBP_EXEC:
		take_exec(follower, process, record);
		break;
	case PBP_MOVED:
		follow_scope_look(follower, record->tgid);
		break;
	case PBP_EXIT:
	case PBP_FREED:
		follow_take_end(follower, process, record);
		break;
	case PBP_LOOK:
		follow_look(follower, record->tgid);
		break;
	}
}

/* --- turns --- */

static void make_up_for_lost(struct follower *follower, uint64_t now)
{
	uint64_t lost = engine__lost_processes(follower->engine);

	if (lost == follower->lost || now < follower->scan_ns || follower->unseen.len)
		return;
	follower->lost = lost;
	follow_look_for_ends(follower);
	follower__scan(follower);
}

/* What the kernel side tells otherwise. */
static void poll_processes(struct follower *follower, uint64_t now)
{
	uint64_t began_cpu_ns = proc__own_cpu_ns();

	follow_look_for_execs(follower);
	if (follow_finds(follower))
		follow_look_for_new(follower);
	if (now >= follower->cpu_ns) {
		follower__update_cpu(follower);
		follow_look_for_ends(follower);
		follower->cpu_ns = follow_next_pass(began_cpu_ns, CPU_NS);
	}
	if (follower->config.scope)
		follow_scope_poll(follower, now);
	follow_look_at_changed(follower, now);
	follower->poll_ns = follow_next_pass(began_cpu_ns, POLL_NS);
}

static void look_for_names(struct follower *follower, uint64_t now)
{
	follower->names_ns = UINT64_MAX;
	for (size_t i = 0; i < follower->processes.items.len; i++) {
		struct process *process = follower->processes.items.items[i];
		uint32_t *looks = &process->name_looks;

		if (!process->inherited || process->exited || *looks == ARRAY_SIZE(name_looks_ns))
			continue;
		if (now >= process->set_ns + name_looks_ns[*looks]) {
			++*looks;
			process__look_for_name(process);
		}
		if (*looks < ARRAY_SIZE(name_looks_ns))
			follower->names_ns =
				min_u64(follower->names_ns, process->set_ns + name_looks_ns[*looks]);
	}
}

void follower__turn(struct follower *follower, uint64_t now)
{
	if (!follower->engine->sampler && now >= follower->poll_ns)
		poll_processes(follower, now);
	if (follow_finds(follower))
		make_up_for_lost(follower, now);
	follow_judge_due(follower, now);
	if (now >= follower->names_ns)
		look_for_names(follower, now);
	if (now < follower->sweep_ns)
		return;
	follower->sweep_ns = now + SWEEP_NS;
	follow_sweep(follower, now - min_u64(now, LINGER_NS));
}

static bool polls(const struct follower *follower)
{
	if (follower->engine->sampler || follow_finds(follower) || follower->config.command)
		return !follower->engine->sampler;
	for (size_t i = 0; i < follower->processes.items.len; i++)
		if (follow_wants_python(follower->processes.items.items[i]))
			return true;
	return false;
}

uint64_t follower__next_ns(const struct follower *follower)
{
	return polls(follower) ? min_u64(follower->retry_ns, follower->poll_ns) : follower->retry_ns;
}

void follower__free(struct follower *follower)
{
	processes__free(&follower->processes);
	strangers__free(&follower->strangers);
	vec__free(&follower->unseen);
	vec__free(&follower->late);
}
