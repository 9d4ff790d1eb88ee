/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a run begins: a command is forked, before anything is set that it would inherit; what is not permitted
 * is told; what was asked for is attached to, or, where more is to be found than that, only watched; timers
 * start; and the command is let go.
 */
#include "base/clock.h"
#include "base/log.h"
#include "run/session_parts.h"
#include "run/signals.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TRIE_NODES_MAX (1u << 21)

bool session_has_scope(const struct session *session)
{
	return session->config.cgroups.len || session->config.containers.len;
}

bool session_follows(const struct session *session)
{
	return session->config.subprocesses || session->config.all || session_has_scope(session);
}

/* Do processes have to be Python at the start? */
static bool needs_python(const struct session *session)
{
	return !session_follows(session) && !session->config.command;
}

static bool by_process(const struct session *session)
{
	if (session->config.by != SESSION_BY_DEFAULT)
		return session->config.by == SESSION_BY_PROCESS;
	return session->config.pids.len > 1 || session_follows(session);
}

/* Is it looked up in which container a process is? */
static bool tells_containers(const struct session *session)
{
	return session->config.by == SESSION_BY_CONTAINER || session->config.all ||
	       session_has_scope(session);
}

bool session__is_by_process(const struct session *session)
{
	return by_process(session);
}

/* --- opening --- */

static enum session_error open_command(struct session *session)
{
	int err;

	if (!session->config.command)
		return SESSION_OK;
	err = command__start(&session->command, session->config.command, session->config.keep_root);
	if (!err)
		return SESSION_OK;
	log_err("cannot start a process: %s", log_reason(err));
	return SESSION_FAILED;
}

static int open_gil(struct session *session)
{
	struct symbolizer *symbolizer = &session->symbolizer;

	if (session->config.mode != ENGINE_GIL)
		return 0;
	symbolizer->gil = &session->gil;
	session->waits.gil = &session->gil;
	if (gil__init(&session->gil, &session->profile, &symbolizer->estimate, symbolizer->pruned))
		return -ENOMEM;
	session->gil.symbolizer = symbolizer;
	symbolizer->namer.name_all = true;
	return 0;
}

/* Do samples carry the names of threads? For the stacks, the report, the choice, or who else wants samples.
 */
static bool wants_names(const struct session *session)
{
	return session->config.by_thread || session->config.gives_samples ||
	       session->config.mode == ENGINE_GIL || thread_filter__is_set(&session->config.threads);
}

/* 0 or -errno. */
static int open_events(struct session *session)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = SESSION_WATCH_SIGNAL};
	int fd;

	session->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	fd = session->epoll_fd < 0 ? -errno : signals__open(session->command.pid);
	if (fd < 0)
		return fd;
	return epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static enum session_error open_basics(struct session *session)
{
	struct follower *follower = &session->follower;
	int err = profile__init(&session->profile, TRIE_NODES_MAX);

	err = err ?: symbolizer__init(&session->symbolizer, &session->profile, &follower->processes,
				      by_process(session) && !session->config.no_profile,
				      session->config.by_thread && !session->config.no_profile);
	err = err ?: open_gil(session) ?: open_events(session);
	if (err) {
		log_err("cannot begin: %s", log_reason(err));
		return SESSION_FAILED;
	}
	session->symbolizer.hide_idle = session->config.hide_idle;
	session->symbolizer.hide_gc = session->config.hide_gc;
	session->symbolizer.only_exceptions = session->config.only_exceptions;
	if (thread_filter__is_set(&session->config.threads))
		session->symbolizer.namer.filter = &session->config.threads;
	session->symbolizer.code_files = session->config.code ? &session->code_files : NULL;
	session->waits.symbolizer = &session->symbolizer;
	session->waits.processes = &follower->processes;
	session->waits.want_names = wants_names(session);
	session->profile.period_ns = 1000000000ull / session->config.rate_hz;
	session->profile.unit = session->config.mode == ENGINE_CPU ? PROFILE_SAMPLES : PROFILE_TIME;
	follower->waits = &session->waits;
	follower->config =
		(struct follow_config){.subprocesses = session->config.subprocesses,
				       .command = session->config.command != NULL,
				       .all = session->config.all,
				       .scope = session_has_scope(session) ? &session->scope : NULL,
				       .containers = tells_containers(session) ? &session->containers : NULL,
				       .filter = session->config.filter,
				       .no_slot = session->config.no_slot};
	follower->engine = &session->engine;
	follower->symbolizer = &session->symbolizer;
	follower->strings = session->profile.strings;
	follower->epoll_fd = session->epoll_fd;
	session->symbolizer.by_container =
		session->config.by == SESSION_BY_CONTAINER && !session->config.no_profile;
	session->symbolizer.knows_containers = tells_containers(session);
	return SESSION_OK;
}

static void log_no_process(pid_t pid, int err)
{
	char reason[512];

	process__explain_missing(pid, err, reason, sizeof(reason));
	log_err("cannot profile process %d: %s", pid, reason);
}

static enum session_error open_process(struct session *session, pid_t pid)
{
	struct process *process = calloc(1, sizeof(*process));
	int err = process ? process__open(process, pid, session->profile.strings) : -ENOMEM;

	if (!err) {
		process->asked_for = true;
		if (pid == session->command.pid)
			process__set_command(process, session->config.command);
		err = follower__take(&session->follower, process);
	}
	if (!err) {
		session->first = session->first ?: process;
		return SESSION_OK;
	}
	if (process)
		process__close(process);
	free(process);
	log_no_process(pid, err);
	return err == -EPERM || err == -ENOSYS ? SESSION_NOT_PERMITTED : SESSION_FAILED;
}

static enum session_error open_processes(struct session *session)
{
	enum session_error error = SESSION_OK;

	if (session->command.pid)
		return open_process(session, session->command.pid);
	for (size_t i = 0; i < session->config.pids.len && !error; i++)
		error = open_process(session, session->config.pids.items[i]);
	return error;
}

/* One that has nobody in it is more likely a mistake than one that is to be waited for. */
static enum session_error check_members(struct session *session)
{
	struct cgroup_members members;
	int err = scope__members(&session->scope, &members);
	bool empty = !err && !members.pids.len;

	if (err)
		log_err("cannot look into the cgroup: %s", strerror(-err));
	else if (empty)
		log_err("no process is in %s, or in a cgroup below%s",
			session->scope.cgroups.len == 1 ? "that cgroup" : "those cgroups",
			session->scope.unread ? ", as far as they could be looked into"
			: members.strays      ? ", only threads, whose processes' main threads are elsewhere"
					      : "");
	else if (session->scope.unread)
		log_warn("%zu cgroups could not be looked into", session->scope.unread);
	else
		log_dbg("session", "%zu processes in %zu cgroups", members.pids.len, members.cgroups);
	vec__free(&members.pids);
	return err || empty ? SESSION_FAILED : SESSION_OK;
}

static enum session_error open_scope(struct session *session)
{
	const struct session_config *config = &session->config;
	struct buf reason = {0};
	int err;

	if (!session_has_scope(session))
		return SESSION_OK;
	err = scope__open(&session->scope, config->cgroups.items, config->cgroups.len,
			  config->containers.items, config->containers.len, &reason);
	if (err)
		log_err("%.*s", (int)reason.len, reason.data ? reason.data : strerror(-err));
	buf__free(&reason);
	return err ? SESSION_FAILED : check_members(session);
}

/* Before anything else that could fail: what is not permitted is told first. */
static enum session_error open_engine(struct session *session)
{
	const struct session_config *config = &session->config;
	struct engine_config engine_config = {.kind = config->engine,
					      .mode = config->mode,
					      .rate_hz = config->rate_hz,
					      .kernel_frames = config->kernel_frames,
					      .program = config->program,
					      .clock = config->clock,
					      .want_names = wants_names(session),
					      .want_exceptions = config->only_exceptions,
					      .measure = log_enabled(LOG_DBG),
					      .follow = session_follows(session),
					      .tell_execs = config->all,
					      .tell_moves = session_has_scope(session),
					      .blocking = config->blocking,
					      .frame_marker = config->frame_marker};
	char reason[512];
	int err = engine__open(&session->engine, &engine_config, reason, sizeof(reason));

	if (err) {
		log_err("%s", reason);
		return err == -EPERM || err == -EACCES ? SESSION_NOT_PERMITTED : SESSION_FAILED;
	}
	if (*reason)
		log_info("using the readv engine: %s", reason);
	return SESSION_OK;
}

/* --- attaching to what was asked for --- */

static enum session_error attach_error(enum py_attach_error error)
{
	return error == PY_ATTACH_DENIED	? SESSION_NOT_PERMITTED
	       : error == PY_ATTACH_NOT_PYTHON	? SESSION_NOT_PYTHON
	       : error == PY_ATTACH_UNSUPPORTED ? SESSION_NOT_PYTHON
						: SESSION_FAILED;
}

static enum session_error attach_python(struct session *session, struct process *process)
{
	char reason[512];
	enum py_attach_error error = process__attach_patiently(process, reason, sizeof(reason));

	if (error == PY_ATTACH_OK)
		return SESSION_OK;
	log_err("cannot profile process %d: %s", process->pid, reason);
	return attach_error(error);
}

static void warn_of_missing_marker(const struct session *session, const struct process *process)
{
	char version[24];

	if (session->config.frame_marker && process->target.offsets.thread_last_profiled == PY_ABSENT)
		log_warn("--frame-marker: Python %s of process %d has none; it is read without",
			 py_version_format(process->target.offsets.version, version, sizeof(version)),
			 process->pid);
}

static void tell_no_gil(const struct session *session, struct process *process)
{
	if (session->config.mode == ENGINE_GIL && process->target.offsets.free_threaded &&
	    !process__gil_of(process, 0, 1)) /* long ago: it is looked at anew when the run has begun */
		log_warn("process %d is free-threaded, so that there is no GIL: stop-the-world pauses are "
			 "all that is "
			 "shown of it",
			 process->pid);
}

/* --blocking traces threads, which one process at a time can do. */
static bool may_be_stopped(const struct session *session, const struct process *process)
{
	struct buf text = {0};
	struct halt halt;

	if (!session->config.blocking)
		return true;
	halt__look(&halt, process->pid);
	if (!halt.tracer)
		return true;
	halt__describe_tracer(&halt, &text);
	log_err("cannot stop the threads of process %d (--blocking): %.*s traces it already; without "
		"--blocking it is read as it runs",
		process->pid, (int)text.len, text.data ? text.data : "");
	buf__free(&text);
	return false;
}

/* One that may be no Python, but must not be one that cannot be read or has ended. */
static enum session_error attach_any(struct session *session, struct process *process)
{
	char reason[512];
	enum py_attach_error error = process__attach(process, reason, sizeof(reason));

	if (error != PY_ATTACH_DENIED && error != PY_ATTACH_GONE)
		return SESSION_OK;
	log_err("cannot profile process %d: %s", process->pid, reason);
	return attach_error(error);
}

static enum session_error attach_processes(struct session *session)
{
	struct processes *processes = &session->follower.processes;

	if (session->config.command) /* it is not there yet */
		return SESSION_OK;
	for (size_t i = 0; i < processes->items.len; i++) {
		struct process *process = processes->items.items[i];
		enum session_error error = needs_python(session) ? attach_python(session, process)
								 : attach_any(session, process);

		if (error)
			return error;
		if (!may_be_stopped(session, process))
			return SESSION_FAILED;
		if (process->attached) {
			warn_of_missing_marker(session, process);
			tell_no_gil(session, process);
		}
		if (process->attached && tells_containers(session))
			process->container = containers__of(&session->containers, process->pid);
	}
	return SESSION_OK;
}

/* --- starting --- */

static enum session_error prepare_engine(struct session *session)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = SESSION_WATCH_RING};
	struct sampler *sampler = session->engine.sampler;

	if (!sampler)
		return SESSION_OK;
	session->symbolizer.sampler = sampler;
	session->waits.sampler = session->config.mode == ENGINE_CPU ? NULL : sampler;
	session->symbolizer.cpu_is_known =
		session->config.mode == ENGINE_WALL || session->config.mode == ENGINE_GIL;
	if (*sampler__kernel_notes(sampler))
		log_info("%s", sampler__kernel_notes(sampler));
	return epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, engine__fd(&session->engine), &event)
		       ? SESSION_FAILED
		       : SESSION_OK;
}

static enum session_error explain_start(int err, const struct process *process)
{
	const char *why = err == -ESRCH	  ? "it has ended"
			  : err == -EBUSY ? "another profiler has set frame markers in it"
					  : log_reason(err);

	if (process)
		log_err("cannot sample process %d: %s", process->pid, why);
	else
		log_err("cannot put timers on the CPUs: %s", why);
	return err == -EACCES || err == -EPERM ? SESSION_NOT_PERMITTED : SESSION_FAILED;
}

static enum session_error start_process(struct session *session, struct process *process)
{
	int err = engine__add(&session->engine, process);

	process->set_ns = now_ns();
	if (!err && process->attached && !py_target__is_alive(&process->target))
		follower__exec(&session->follower, process);
	if (process->attached && session->engine.sampler)
		symbolizer__prime_tails(&session->symbolizer, process);
	if (!err && needs_python(session))
		err = engine__start(&session->engine, process);
	if (err)
		return explain_start(err, process);
	process__update_cpu(process);
	process->cpu_start_ns = process->cpu_end_ns;
	return SESSION_OK;
}

static enum session_error start_timers(struct session *session)
{
	struct processes *processes = &session->follower.processes;
	int err = needs_python(session) ? 0
		  : session_has_scope(session)
			  ? engine__start_cgroups(&session->engine, session->scope.fds.items,
						  session->scope.fds.len)
			  : engine__start_all(&session->engine);
	enum session_error error = err ? explain_start(err, NULL) : SESSION_OK;

	for (size_t i = 0; i < processes->items.len && !error; i++)
		error = start_process(session, processes->items.items[i]);
	if (!error)
		follower__scan(&session->follower);
	return error;
}

static enum session_error release_command(struct session *session)
{
	char reason[256];
	int err;

	if (!session->command.pid)
		return SESSION_OK;
	err = command__release(&session->command, reason, sizeof(reason));
	if (!err) {
		process__update_command(session->first);
		return SESSION_OK;
	}
	log_err("cannot run %s: %s", log_shown(session->config.command[0]), reason);
	return command__code(err) == COMMAND_NOT_FOUND ? SESSION_COMMAND_NOT_FOUND : SESSION_COMMAND_NOT_RUN;
}

/* Where all the time is told of, CPU time counts from the same moment on as waits do. */
static void start_clocks(struct session *session)
{
	const struct processes *processes = &session->follower.processes;

	session->start_ns = now_ns();
	waits__start(&session->waits, session->start_ns);
	for (size_t i = 0; i < processes->items.len && session->symbolizer.cpu_is_known; i++) {
		process__update_cpu(processes->items.items[i]);
		processes->items.items[i]->cpu_start_ns = processes->items.items[i]->cpu_end_ns;
	}
}

enum session_error session__open(struct session **out, const struct session_config *config)
{
	struct session *session = calloc(1, sizeof(*session));
	enum session_error error;

	if (!session)
		return SESSION_FAILED;
	session->config = *config;
	session->epoll_fd = -1;
	error = open_command(session) ?: open_basics(session)	   ?: open_processes(session)
				      ?: open_scope(session)	   ?: open_engine(session)
				      ?: attach_processes(session)
				      ?: prepare_engine(session)   ?: start_timers(session)
				      ?: release_command(session);
	if (error) {
		session__close(session);
		return error;
	}
	/* What loading the program took is a multiple of what a run needs. */
	malloc_trim(0);
	start_clocks(session);
	session->profile.start_ns = session->start_ns;
	session->profile.start_realtime_ns = session_now_realtime_ns() - (now_ns() - session->start_ns);
	session->flush_ns = UINT64_MAX;
	session->profile.command = session->first ? session->first->command : "";
	session_account(session); /* what recordings begin with */
	*out = session;
	return SESSION_OK;
}

void session__close(struct session *session)
{
	if (!session)
		return;
	engine__close(&session->engine);
	symbolizer__free(&session->symbolizer);
	gil__free(&session->gil);
	code_files__free(&session->code_files);
	waits__free(&session->waits);
	follower__free(&session->follower);
	containers__free(&session->containers);
	scope__close(&session->scope);
	profile__free(&session->profile);
	command__close(&session->command);
	signals__close();
	vec__free(&session->told);
	vec__free(&session->sums);
	if (session->epoll_fd >= 0)
		close(session->epoll_fd);
	free(session);
}
