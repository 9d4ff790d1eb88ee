/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See session_parts.h. How a run starts and how it is put away. What is not permitted is told before anything
 * else that could fail, and sampling begins when every process is attached.
 */
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

static enum session_error attach_error(enum py_attach_error error)
{
	return error == PY_ATTACH_DENIED       ? SESSION_NOT_PERMITTED
	       : error == PY_ATTACH_NOT_PYTHON ? SESSION_NOT_PYTHON
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

static int watch(struct session *session, int fd, uint64_t id)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = id};

	return epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void log_no_process(pid_t pid, int err)
{
	char reason[128];

	process__explain_missing(pid, err, reason, sizeof(reason));
	log_err("cannot profile process %d: %s", pid, reason);
}

static enum session_error open_processes(struct session *session)
{
	const struct session_config *config = &session->config;

	session->processes = calloc(config->pids.len, sizeof(*session->processes));
	if (!session->processes)
		return SESSION_FAILED;
	for (; session->process_count < config->pids.len; session->process_count++) {
		pid_t pid = config->pids.items[session->process_count];
		int err = process__open(&session->processes[session->process_count], pid,
					session->profile.strings);

		if (err) {
			log_no_process(pid, err);
			return SESSION_FAILED;
		}
		session->processes[session->process_count].no_slot = config->no_slot;
	}
	return SESSION_OK;
}

/* Before anything else that could fail: what is not permitted is told first. */
static enum session_error open_engine(struct session *session)
{
	const struct session_config *config = &session->config;
	struct engine_config engine_config = {.kind = config->engine,
					      .rate_hz = config->rate_hz,
					      .kernel_frames = config->kernel_frames,
					      .program = config->program,
					      .want_names = config->by_thread,
					      .measure = log_enabled(LOG_DBG),
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

static void warn_of_missing_marker(const struct session *session, const struct process *process)
{
	char version[24];

	if (session->config.frame_marker && process->target.offsets.thread_last_profiled == PY_ABSENT)
		log_warn("--frame-marker: Python %s of process %d has none; it is read without",
			 py_version_format(process->target.offsets.version, version, sizeof(version)),
			 process->pid);
}

static enum session_error attach_processes(struct session *session)
{
	for (size_t i = 0; i < session->process_count; i++) {
		struct process *process = &session->processes[i];
		enum session_error error = attach_python(session, process);

		if (error)
			return error;
		warn_of_missing_marker(session, process);
		if (symbolizer__add_process(&session->symbolizer, process) ||
		    watch(session, process->pidfd, WATCH_PROCESS + i))
			return SESSION_FAILED;
	}
	return SESSION_OK;
}

static enum session_error prepare_engine(struct session *session)
{
	struct sampler *sampler = session->engine.sampler;

	if (!sampler)
		return SESSION_OK;
	session->symbolizer.sampler = sampler;
	if (*sampler__kernel_notes(sampler))
		log_info("%s", sampler__kernel_notes(sampler));
	return watch(session, engine__fd(&session->engine), WATCH_RING) ? SESSION_FAILED : SESSION_OK;
}

static enum session_error start_timers(struct session *session)
{
	for (size_t i = 0; i < session->process_count; i++) {
		struct process *process = &session->processes[i];
		int err = session_set_target(session, process);

		if (process->attached && session->engine.sampler)
			symbolizer__prime_tails(&session->symbolizer, process);
		if (!err)
			err = engine__start(&session->engine, process);
		if (err) {
			log_err("cannot sample process %d: %s", process->pid,
				err == -ESRCH	? "it has ended"
				: err == -EBUSY ? "another profiler has set frame markers in it"
						: strerror(-err));
			return err == -EACCES || err == -EPERM ? SESSION_NOT_PERMITTED : SESSION_FAILED;
		}
		process__update_cpu(process);
		process->cpu_start_ns = process->cpu_end_ns;
	}
	return SESSION_OK;
}

enum session_error session__open(struct session **out, const struct session_config *config)
{
	struct session *session = calloc(1, sizeof(*session));
	enum session_error error = SESSION_FAILED;

	if (!session)
		return SESSION_FAILED;
	session->config = *config;
	session->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (session->epoll_fd >= 0 && !profile__init(&session->profile, TRIE_NODES_MAX) &&
	    !symbolizer__init(&session->symbolizer, &session->profile, config->pids.len > 1,
			      config->by_thread) &&
	    !watch(session, signals__open(), WATCH_SIGNAL))
		error = open_processes(session)	  ?:
			open_engine(session)	  ?:
			attach_processes(session) ?:
			prepare_engine(session)	  ?:
			start_timers(session);
	if (error) {
		session__close(session);
		return error;
	}
	/* What loading the program took is a multiple of what a run needs. */
	malloc_trim(0);
	session->start_ns = session_now_ns(CLOCK_MONOTONIC);
	session->profile.start_realtime_ns = session_now_ns(CLOCK_REALTIME);
	session->profile.period_ns = SECOND / config->rate_hz;
	session->profile.command = session->processes[0].command;
	*out = session;
	return SESSION_OK;
}

void session__close(struct session *session)
{
	if (!session)
		return;
	engine__close(&session->engine);
	for (size_t i = 0; i < session->process_count; i++)
		process__close(&session->processes[i]);
	free(session->processes);
	symbolizer__free(&session->symbolizer);
	profile__free(&session->profile);
	signals__close();
	if (session->epoll_fd >= 0)
		close(session->epoll_fd);
	free(session);
}
