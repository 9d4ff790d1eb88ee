/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See follow.h. With BPF, forks and execs are told by the kernel side, which samples what a target forks from
 * its first instant, and processes that were there before are found by a pass over /proc. Without, new
 * numbers of processes are looked at as they are given out.
 */
#include "run/follow.h"

#include "base/log.h"
#include "base/util.h"
#include "os/proc.h"
#include "os/tree.h"
#include "run/follow_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MS	1000000ull
#define SECOND	(1000 * MS)
#define TURN_NS (20 * MS) /* of attaching, then samples are looked at again */
#define POLL_NS (10 * MS) /* between looks for new processes, without BPF */

/* Looking for Python after an exec: this long between the first tries, doubling up to the most. */
#define RETRY_FIRST_NS (5 * MS)
#define RETRY_MOST_NS  SECOND
/* One that is starting is ready soon, or else something holds it up. */
#define STARTING_NS	 (2 * MS)
#define STARTING_RETRIES 100
#define STARTING_LONG	 120 /* it is set up for Python, but nobody uses it */
#define STARTING_SLOW_NS (5 * SECOND)
#define COMMAND_RETRIES	 10
/* One that was found and is still none is something else. It may load Python one day. */
#define RETRIES_TOLD  6 /* where the kernel side tells of new code */
#define RETRY_SLOW_NS SECOND

#define POLLS_SETTLED 10	  /* polls to each look whether one that is attached has called exec */
#define POLLS_UNTOLD  20	  /* ... to each pass over /proc where no numbers are told */
#define NUMBERS_MAX  4096	  /* new ones that are looked at one by one */
#define LINGER_NS    (SECOND / 2) /* from the end of a process to the last of its samples */
#define SWEEP_NS     (SECOND / 2)
#define SCAN_NS	     (SECOND / 4) /* between passes over /proc, at least */
#define CPU_NS	     (SECOND / 10) /* between looks at CPU times, without BPF */
#define SHARE	     50 /* passes that are repeated take one part in this many of a CPU at most */
#define SCANS_MAX    8
#define WARNINGS_MAX 5

uint64_t follow_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static bool follows(const struct follower *follower)
{
	return follower->config.subprocesses || follower->config.all || follower->config.scope;
}

static void note_error(struct follower *follower, int err)
{
	follower->err = follower->err ?: err;
}

static void flush(struct follower *follower)
{
	note_error(follower, symbolizer__flush_batch(follower->symbolizer));
}

void follow_retry_at(struct follower *follower, struct process *process, uint64_t when)
{
	process->retry_ns = when;
	follower->retry_ns = min_u64(follower->retry_ns, when);
}

/* Not at once again if the last one, that began then, took long. */
static uint64_t next_pass(uint64_t began_ns, uint64_t pause_ns)
{
	uint64_t now = follow_now_ns();

	return now + max_u64(pause_ns, (now - began_ns) * SHARE);
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

	process->set_ns = follow_now_ns();
	if (!err && !process->inherited && !py_target__is_alive(&process->target))
		follower__exec(follower, process);
	return err;
}

/* --- what happens to one --- */

/*
 * The program that ran until now is gone: what was sampled of it is named from what is known, then all is
 * forgotten. What comes may have threads, and other privileges, at which the kernel takes timers on threads
 * away.
 */
void follower__exec(struct follower *follower, struct process *process)
{
	process->attached = false;
	engine__unset_target(follower->engine, process);
	flush(follower);
	symbolizer__forget(follower->symbolizer, process);
	process->execs += process->python && !process->inherited;
	process->python &= process->asked_for;
	process->inherited = process->gone = false;
	process->exec_id = 0;
	process__forget(process);
	process__update_command(process);
	if (!follows(follower))
		engine__watch_threads(follower->engine);
	process->retries = 0;
	process->code_bytes = 0;
	follow_retry_at(follower, process, follow_now_ns() + (process->asked_for ? STARTING_NS : RETRY_FIRST_NS));
}

void follower__exit(struct follower *follower, struct process *process)
{
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
	processes__end(&follower->processes, process, follow_now_ns());
}

/* What its parent is, it is too: if it has called no exec since, as far as can be told. */
static bool is_fork_of(const struct process *process, const struct process *parent, uint32_t epoch)
{
	uint64_t own, parents;
	int err;

	if (!parent || !parent->attached)
		return false;
	err = process->gone ? -ESRCH : proc__exec_id(process->pid, &own) ?: proc__exec_id(parent->pid, &parents);
	/* The kernel side knows that it was, and of an exec there is a record to come. */
	return err ? epoch != 0 : own == parents;
}

static bool is_tracked(const struct follower *follower, pid_t pid)
{
	const struct process *process = processes__find(&follower->processes, pid);

	return process && !process->exited;
}

/* `epoch`: as the kernel side, which samples it already, was told of it; 0: it was found by us. */
static void found(struct follower *follower, pid_t pid, struct process *parent, uint32_t epoch, bool is_new)
{
	struct process *process = processes__find(&follower->processes, pid);
	int err;

	if (process && !process->exited && process__lives(process))
		return; /* a pass over /proc came first */
	if (process) {
		flush(follower); /* the samples up to now are those of the one that had the pid before */
		follower__exit(follower, process);
	}
	process = calloc(1, sizeof(*process));
	if (!process) {
		note_error(follower, -ENOMEM);
		return;
	}
	err = process__open(process, pid, follower->strings);
	process->engine_epoch = epoch;
	/* It lived, and may have been sampled. */
	process->gone = err == -ESRCH && epoch;
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
	if (is_fork_of(process, parent, epoch))
		process__inherit(process, parent, process->epoch);
	follow_retry_at(follower, process, follow_now_ns() + (is_new ? STARTING_NS : 0));
	process->retries = is_new ? 0 : RETRIES_QUICK; /* it has had the time to become what it is */
	if (process->gone)
		follower__exit(follower, process);
	else if (process->attached && epoch)
		err = follower__set_target(follower, process);
	else if (!epoch)
		err = engine__add(follower->engine, process);
	if (err == -E2BIG) {
		follower->beyond++;
		follower__exit(follower, process);
	} else if (err && err != -ESRCH) {
		log_dbg("follow", "process %d: %s", pid, strerror(-err));
	}
}

void follower__add_found(struct follower *follower, pid_t pid)
{
	if (!is_tracked(follower, pid))
		found(follower, pid, NULL, 0, false);
}

void follower__handle(struct follower *follower, const struct pbp_process *record)
{
	struct process *process = processes__find(&follower->processes, record->tgid);

	/* It has ended since, and was not what it was forked from. */
	if (record->type == PBP_EXEC && process && process->exited && process->inherited)
		process->python = process->attached = process->inherited = false;
	if (record->type == PBP_FORK)
		found(follower, record->tgid, processes__find(&follower->processes, record->parent),
		      record->epoch, true);
	if (record->type == PBP_MOVED || (record->type == PBP_FORK && follower->config.scope))
		follow_scope_look(follower, record->tgid);
	else if (record->type == PBP_EXIT || record->type == PBP_FREED)
		follow_take_end(follower, process, record);
	else if (record->type == PBP_LOOK)
		follow_look(follower, record->tgid);
	else if (process && !process->exited)
		follower__exec(follower, process);
	else if (follower->config.all)
		follow_watch(follower, record->tgid);
	process = processes__find(&follower->processes, record->tgid);
	if (record->type == PBP_FORK && process)
		process->since_ns = record->time_ns;
}

/* --- looking for Python --- */

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

/* As long as it may just be starting, then when it has other code than it had, which the kernel side tells. */
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

static bool is_named_python(const struct process *process)
{
	char comm[64] = "";

	proc__task_comm(process->pid, process->pid, comm, sizeof(comm));
	return strstr(process->command, "python") || strstr(comm, "python");
}

/* Whether it is Python cannot be told but by its name. */
static void note_denied(struct follower *follower, const struct process *process)
{
	size_t len = strlen(follower->denied_names);
	char number[PIDNS_TEXT];

	follower->denied++;
	if (is_named_python(process) && follower->denied_pythons++ < FOLLOW_NAMED_MAX)
		snprintf(follower->denied_names + len, sizeof(follower->denied_names) - len, "%s%s (%s)",
			 len ? ", " : "", process__number(process, number), process->command);
}

static void schedule(struct follower *follower, struct process *process, uint64_t now, const char *reason)
{
	uint32_t retries = process->retries++;

	switch (process->error) {
	case PY_ATTACH_DENIED:
	case PY_ATTACH_UNSUPPORTED:
		if (process->error == PY_ATTACH_DENIED)
			note_denied(follower, process);
		else
			follower->unsupported++;
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
	return !process->target.code_type && process->retries < STARTING_RETRIES;
}

bool follow_is_wanted(const struct follower *follower, const struct process *process)
{
	const struct filter *filter = &follower->config.filter;
	char comm[64] = "", command[512] = "";
	uid_t user = 0;
	gid_t group;

	if (process->asked_for || !filter__is_set(filter))
		return true;
	return !proc__task_comm(process->pid, process->pid, comm, sizeof(comm)) &&
	       !proc__cmdline(process->pid, command, sizeof(command)) &&
	       !proc__file_owner(process->pid, &user, &group) && filter__wants(filter, comm, command, user);
}

/* It is in the profile, or the report says why not. */
static bool is_told(const struct process *process)
{
	return process->attached || process->error == PY_ATTACH_DENIED ||
	       process->error == PY_ATTACH_UNSUPPORTED;
}

void follow_judge(struct follower *follower, struct process *process, bool was_python, const char *reason)
{
	int err;

	if (process->attached && is_starting(process)) {
		process->attached = false;
		process->python = was_python;
		process->error = PY_ATTACH_STARTING;
	}
	if (is_told(process) && !follow_is_wanted(follower, process)) {
		follower->excluded += process->attached;
		process->attached = process->python = false;
		give_up(follower, process);
		return;
	}
	if (!process->attached) {
		schedule(follower, process, follow_now_ns(), reason);
		return;
	}
	if (follower->config.containers)
		process->container = containers__of(follower->config.containers, process->pid);
	symbolizer__admit(follower->symbolizer, process);
	err = follower__set_target(follower, process);
	if (process->attached && follower->engine->sampler)
		symbolizer__prime_tails(follower->symbolizer, process);
	if (err == -EBUSY)
		log_warn("process %d: another profiler has set frame markers in it", process->pid);
}

static void attach(struct follower *follower, struct process *process)
{
	bool was_python = process->python;
	char reason[512];

	if (!follow_has_new_code(process)) {
		schedule(follower, process, follow_now_ns(), "");
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
	log_dbg("follow", "all %zu processes were looked at by %lld.%06ld", processes__alive(&follower->processes),
		(long long)time.tv_sec, time.tv_nsec / 1000);
}

static void retry(struct follower *follower, uint64_t now)
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
			is_late = follow_now_ns() - now > TURN_NS;
		}
		if (follow_wants_python(process))
			follower->retry_ns = min_u64(follower->retry_ns, process->retry_ns);
	}
	if (!follower->settled && follower->retry_ns > now)
		note_settled(follower);
}

/* --- looking for processes --- */

static void find_all(struct follower *follower, const struct tree *tree)
{
	for (size_t i = 0; i < tree->edges.len; i++)
		if (!is_tracked(follower, tree->edges.items[i].pid) && tree->edges.items[i].pid != getpid())
			note_error(follower, vec__push(&follower->unseen, tree->edges.items[i].pid));
	follower->retry_ns = 0;
}

/* Those that are found have children, too. */
static void find_children(struct follower *follower, const struct tree *tree)
{
	for (size_t i = 0; i < follower->processes.items.len; i++) {
		size_t first, count;

		if (follower->processes.items.items[i]->exited)
			continue;
		count = tree__children(tree, follower->processes.items.items[i]->pid, &first);
		for (size_t child = first; child < first + count; child++)
			if (!is_tracked(follower, tree->edges.items[child].pid))
				found(follower, tree->edges.items[child].pid, NULL, 0, false);
	}
}

void follower__scan(struct follower *follower)
{
	size_t before;
	int scans = 0;

	if (!follows(follower))
		return;
	follower->last_pid = tree__last_pid();
	follower->scan_ns = follow_now_ns();
	if (follower->config.scope) {
		follow_scope_scan(follower);
		return;
	}
	/* Until there is none that was not there before: what starts from then on is told by the kernel side.
	 */
	do {
		struct tree tree;
		int err = tree__read(&tree);

		before = follower->processes.items.len;
		note_error(follower, err);
		if (err)
			return;
		if (follower->config.all)
			find_all(follower, &tree);
		else
			find_children(follower, &tree);
		tree__free(&tree);
	} while (follower->processes.items.len != before && !follower->config.all && ++scans < SCANS_MAX);
	follower->scan_ns = next_pass(follower->scan_ns, SCAN_NS);
}

/* May it call exec any moment, so that it is to be looked at often? */
static bool is_unsettled(const struct process *process)
{
	return !process->attached || process->inherited;
}

/* Without BPF nobody tells. */
static void look_for_execs(struct follower *follower)
{
	bool all = follower->polls++ % POLLS_SETTLED == 0;

	for (size_t i = 0; i < follower->processes.items.len; i++) {
		struct process *process = follower->processes.items.items[i];
		uint64_t id;

		if (process->exited || (!all && !is_unsettled(process)) || proc__exec_id(process->pid, &id) ||
		    id == process->exec_id)
			continue;
		if (process->exec_id)
			follower__exec(follower, process);
		process->exec_id = id;
	}
}

static void look_at_number(struct follower *follower, pid_t pid)
{
	pid_t parent = pid == getpid() ? -ESRCH : tree__parent(pid);

	if (parent < 0 || is_tracked(follower, pid))
		return;
	if (follower->config.scope ? scope__has(follower->config.scope, pid) == 1 : is_tracked(follower, parent))
		found(follower, pid, processes__find(&follower->processes, parent), 0, true);
	else if (follower->config.all)
		follow_watch(follower, pid);
}

/* ... and numbers have been given out. */
static void look_for_new(struct follower *follower)
{
	pid_t last = tree__last_pid(), first = follower->last_pid;

	if (!last && follower->polls % POLLS_UNTOLD == 0)
		follower__scan(follower); /* a /proc that does not tell (subset=pid) */
	if (last == first)
		return;
	if (last < first || last - first > NUMBERS_MAX) {
		follower__scan(follower);
		return;
	}
	follower->last_pid = last;
	for (pid_t pid = first + 1; pid <= last; pid++)
		look_at_number(follower, pid);
}

/* --- turns --- */

static void make_up_for_lost(struct follower *follower, uint64_t now)
{
	uint64_t lost = engine__lost_processes(follower->engine);

	if (lost == follower->lost || now < follower->scan_ns)
		return;
	follower->lost = lost;
	follow_look_for_ends(follower);
	follower__scan(follower);
}

/* What the kernel side tells otherwise. */
static void poll_processes(struct follower *follower, uint64_t now)
{
	look_for_execs(follower);
	if (follows(follower))
		look_for_new(follower);
	if (now >= follower->cpu_ns) {
		follower__update_cpu(follower);
		follow_look_for_ends(follower);
		follower->cpu_ns = next_pass(now, CPU_NS);
	}
	if (follower->config.scope)
		follow_scope_poll(follower, now);
	follow_look_at_changed(follower, now);
	follower->poll_ns = next_pass(now, POLL_NS);
}

void follower__turn(struct follower *follower, uint64_t now)
{
	if (!follower->engine->sampler && now >= follower->poll_ns)
		poll_processes(follower, now);
	if (follows(follower))
		make_up_for_lost(follower, now);
	retry(follower, now);
	if (now < follower->sweep_ns)
		return;
	follower->sweep_ns = now + SWEEP_NS;
	follow_sweep(follower, now - min_u64(now, LINGER_NS));
}

static bool polls(const struct follower *follower)
{
	if (follower->engine->sampler || follows(follower) || follower->config.command)
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
}
