/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See session.h. What happens to a process (exec, exit, a start that takes its time) is dealt with here;
 * where samples come from is the engine's business, and what becomes of them the symbolizer's.
 */
#include "run/session.h"

#include "base/log.h"
#include "base/util.h"
#include "run/process.h"
#include "run/report.h"
#include "run/signals.h"
#include "run/symbolize.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MS	    1000000ull
#define SECOND	    (1000 * MS)
#define DRAINS_MAX  8	      /* times what is handed over at once: more than the ring holds */
#define COLLECT_NS  (50 * MS) /* at most before signals and ends are looked for again */
#define PROGRESS_NS (250 * MS)
#define RETRY_FIRST_NS                                                                                       \
	(5 * MS)		 /* looking for Python after an exec: this long between the first tries ...  \
				  */
#define RETRY_MOST_NS	  SECOND /* ... doubling up to this */
#define LOST_EXEC_NS	  (10 * MS)
#define TRIE_NODES_MAX	  (1u << 21)

struct session {
	struct session_config config;
	struct profile profile;
	struct symbolizer symbolizer;
	struct engine engine;
	struct process *processes;
	size_t process_count;
	int epoll_fd;
	uint64_t start_ns, end_ns, progress_ns, refresh_ns;
	uint32_t drains;
	bool more, news, first_seen;
	enum session_end end;
	int signal; /* that ended the run */
	int err;    /* that ended the run */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

/* --- opening --- */

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

/* What epoll says is ready: the ring, a signal, or WATCH_PROCESS + index. */
enum { WATCH_RING, WATCH_SIGNAL, WATCH_PROCESS };

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

/* --- records --- */

static struct process *process_of(struct session *session, uint32_t pid)
{
	for (size_t i = 0; i < session->process_count; i++)
		if (session->processes[i].pid == (pid_t)pid)
			return &session->processes[i];
	return NULL;
}

/*
 * The program that ran until now is gone: what was sampled of it is named from what is known, then all is
 * forgotten. What comes may have threads, and other privileges, at which the kernel takes timers on threads
 * away.
 */
static void handle_exec(struct session *session, struct process *process)
{
	process->attached = false;
	process->execs++;
	engine__unset_target(&session->engine, process);
	session->err = session->err ?: symbolizer__flush_batch(&session->symbolizer);
	symbolizer__forget(&session->symbolizer, process);
	process__forget(process);
	process__update_command(process);
	engine__watch_threads(&session->engine);
	process->retries = 0;
	process->retry_ns = now_ns(CLOCK_MONOTONIC) + RETRY_FIRST_NS;
}

/* Tell the engine how to walk a process, unless it has meanwhile become another program. */
static int set_target(struct session *session, struct process *process)
{
	int err = engine__set_target(&session->engine, process);

	process->set_ns = now_ns(CLOCK_MONOTONIC);
	if (!err && !py_target__is_alive(&process->target))
		handle_exec(session, process);
	return err;
}

/* In the words of a shell that asked for the time before it started us: seconds since 1970. */
static void log_first_sample(struct session *session, const struct pbp_sample *sample)
{
	uint64_t ago_ns = now_ns(CLOCK_MONOTONIC) - sample->time_ns;

	session->first_seen = true;
	log_dbg("session", "first sample at %.6f", (now_ns(CLOCK_REALTIME) - ago_ns) / 1e9);
}

static void handle_sample(struct session *session, const struct pbp_sample *sample, size_t size)
{
	struct process *process;

	session->news |= size > PBP_SAMPLE_SHORT; /* a deep stack */
	if (!session->first_seen)
		log_first_sample(session, sample);
	/* Some time after the kernel side was told how to walk it: the record of another exec was lost. */
	if (sample->status == PBP_STATUS_NO_TARGET) {
		process = process_of(session, sample->tgid);
		if (process && process->attached && sample->time_ns > process->set_ns + LOST_EXEC_NS)
			handle_exec(session, process);
	}
}

static void handle_process(struct session *session, const struct pbp_process *record)
{
	struct process *process = process_of(session, record->tgid);

	session->news = true;
	if (record->type == PBP_BIRTH)
		engine__watch_threads(&session->engine);
	else if (process)
		handle_exec(session, process);
}

static void handle_record(void *context, const void *record, size_t size)
{
	struct session *session = context;
	uint32_t type = size >= sizeof(type) ? load_u32(record) : 0;
	int err;

	if ((type == PBP_EXEC || type == PBP_BIRTH) && size >= sizeof(struct pbp_process)) {
		handle_process(session, record);
		return;
	}
	if (type == PBP_SAMPLE && size >= PBP_SAMPLE_SHORT)
		handle_sample(session, record, size);
	else
		session->news = true;
	err = symbolizer__take(&session->symbolizer, record, size);
	if (err)
		session->err = session->err ?: err;
}

/* Everything that has come, or comes until then, into the profile. Number of records. */
static int drain(struct session *session, uint64_t until_ns)
{
	int count = engine__collect(&session->engine, until_ns, handle_record, session, &session->more);

	if (count < 0)
		session->err = session->err ?: count;
	if (count <= 0)
		return count;
	session->err = session->err ?: symbolizer__flush_batch(&session->symbolizer);
	for (size_t i = 0; i < session->symbolizer.wanted.len; i++)
		engine__send_again(&session->engine, session->symbolizer.wanted.items[i]);
	session->symbolizer.wanted.len = 0;
	/* Now, since a process that its parent reaps leaves no figure behind. */
	for (size_t i = 0; i < session->process_count; i++)
		process__update_cpu(&session->processes[i]);
	return count;
}

/* ... and what is left: the ring has an end, but the target may fill it meanwhile. */
static void drain_all(struct session *session)
{
	do
		drain(session, 0);
	while (session->more && !session->err && ++session->drains < DRAINS_MAX);
	session->drains = 0;
}

/*
 * Empty the caches. The kernel side gets new epochs first, so that it sends every stack again; what it sent
 * under the old ones is taken while the stacks are still known.
 */
static void flush_caches(struct session *session)
{
	for (size_t i = 0; i < session->process_count; i++) {
		struct process *process = &session->processes[i];

		process->epoch++;
		process->target.layout.epoch = process->epoch;
		if (process->attached)
			engine__set_target(&session->engine, process);
	}
	drain_all(session);
	symbolizer__forget(&session->symbolizer, NULL);
	for (size_t i = 0; i < session->process_count; i++) {
		code_cache__clear(&session->processes[i].codes);
		hmap__clear(&session->processes[i].lines);
	}
}

/* --- starting --- */

static enum session_error start_timers(struct session *session)
{
	for (size_t i = 0; i < session->process_count; i++) {
		struct process *process = &session->processes[i];
		int err = set_target(session, process);

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
	session->start_ns = now_ns(CLOCK_MONOTONIC);
	session->profile.start_realtime_ns = now_ns(CLOCK_REALTIME);
	session->profile.period_ns = SECOND / config->rate_hz;
	session->profile.command = session->processes[0].command;
	*out = session;
	return SESSION_OK;
}

/* --- the loop --- */

static void retry_attach(struct session *session, uint64_t now)
{
	for (size_t i = 0; i < session->process_count; i++) {
		struct process *process = &session->processes[i];
		char reason[512];

		if (process->attached || process->exited || now < process->retry_ns)
			continue;
		if (process__attach(process, reason, sizeof(reason)) == PY_ATTACH_OK) {
			set_target(session, process);
			continue;
		}
		process->retry_ns =
			now + min_u64(RETRY_MOST_NS, RETRY_FIRST_NS << min_u64(process->retries, 16));
		process->retries++;
	}
}

static uint64_t next_retry(const struct session *session)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < session->process_count; i++)
		if (!session->processes[i].attached && !session->processes[i].exited)
			next = min_u64(next, session->processes[i].retry_ns);
	return next;
}

static void show_progress(struct session *session, uint64_t now)
{
	double elapsed = (now - session->start_ns) / 1e9;
	struct engine_loss losses[ENGINE_LOSSES_MAX];
	size_t count = engine__losses(&session->engine, losses);
	uint64_t lost = 0;
	char limit[32] = "";

	session->progress_ns = now + PROGRESS_NS;
	for (size_t i = 0; i < count; i++)
		lost += losses[i].count;
	if (session->config.duration_ns)
		snprintf(limit, sizeof(limit), "/%.0f", session->config.duration_ns / 1e9);
	log_progress("%.1f%s s  %llu samples  %.0f/s  %llu lost   (Ctrl-C to stop)", elapsed, limit,
		     (unsigned long long)session->symbolizer.counts.samples,
		     elapsed > 0 ? session->symbolizer.counts.samples / elapsed : 0,
		     (unsigned long long)lost);
}

/* Milliseconds until there is something to do without being woken; -1 = nothing. */
static int next_timeout(const struct session *session, uint64_t now)
{
	uint64_t next = next_retry(session);

	if (session->more)
		return 0;
	if (session->end_ns)
		next = min_u64(next, session->end_ns);
	if (session->config.progress)
		next = min_u64(next, session->progress_ns);
	next = min_u64(next, engine__next_ns(&session->engine, now));
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)min_u64((next - now + MS - 1) / MS, 1u << 30);
}

static void collect(struct session *session, uint64_t until_ns)
{
	bool again;

	do {
		bool any = drain(session, until_ns) > 0, news = session->news;

		session->news = false;
		again = engine__update_pace(&session->engine, any, news);
	} while (again);
}

/* Until when an engine that works while it is called may do so. */
static uint64_t collect_until(const struct session *session, uint64_t now)
{
	uint64_t until = min_u64(now + COLLECT_NS, next_retry(session));

	if (session->end_ns)
		until = min_u64(until, session->end_ns);
	return until;
}

static bool handle_signals(struct session *session, void (*snapshot)(void *context), void *context)
{
	bool wants_snapshot;

	session->signal = signals__take(&wants_snapshot);
	if (wants_snapshot) {
		drain(session, 0);
		if (snapshot)
			snapshot(context);
	}
	return session->signal != 0;
}

static bool all_exited(const struct session *session)
{
	for (size_t i = 0; i < session->process_count; i++)
		if (!session->processes[i].exited)
			return false;
	return true;
}

static void handle_exit(struct session *session, struct process *process)
{
	process__update_cpu(process);
	process->exited = true;
	engine__remove(&session->engine, process); /* the pid can come again */
	epoll_ctl(session->epoll_fd, EPOLL_CTL_DEL, process->pidfd, NULL);
}

static enum session_end sample(struct session *session, void (*snapshot)(void *context), void *context)
{
	uint64_t now = session->start_ns;

	session->end_ns = session->config.duration_ns ? now + session->config.duration_ns : 0;
	session->progress_ns = now + PROGRESS_NS;
	while (!session->err) {
		struct epoll_event events[16];
		int count =
			epoll_wait(session->epoll_fd, events, ARRAY_SIZE(events), next_timeout(session, now));
		bool stop = false;

		now = now_ns(CLOCK_MONOTONIC);
		collect(session, collect_until(session, now));
		now = now_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 == WATCH_SIGNAL)
				stop = handle_signals(session, snapshot, context);
			else if (events[i].data.u64 >= WATCH_PROCESS)
				handle_exit(session, &session->processes[events[i].data.u64 - WATCH_PROCESS]);
		}
		retry_attach(session, now);
		if (now >= session->refresh_ns) {
			session->refresh_ns = now + SECOND;
			engine__refresh(&session->engine);
		}
		if (symbolizer__is_full(&session->symbolizer))
			flush_caches(session);
		if (session->config.progress && now >= session->progress_ns)
			show_progress(session, now);
		if (stop)
			return SESSION_END_SIGNAL;
		if (all_exited(session))
			return SESSION_END_TARGETS;
		if (session->end_ns && now >= session->end_ns)
			return SESSION_END_DURATION;
	}
	log_err("sampling stopped: %s", strerror(-session->err));
	return SESSION_END_ERROR;
}

static void stop_sampling(struct session *session, enum session_end end)
{
	session->profile.duration_ns = now_ns(CLOCK_MONOTONIC) - session->start_ns;
	for (size_t i = 0; i < session->process_count; i++)
		process__update_cpu(&session->processes[i]);
	engine__stop(&session->engine);
	drain_all(session);
	session->end = end;
	log_progress("%s", "");
}

enum session_end session__run(struct session *session, void (*snapshot)(void *context), void *context)
{
	enum session_end end = sample(session, snapshot, context);

	stop_sampling(session, end);
	return end;
}

const struct profile *session__profile(const struct session *session)
{
	return &session->profile;
}

static const char *end_text(const struct session *session)
{
	switch (session->end) {
	case SESSION_END_DURATION:
		return "duration over";
	case SESSION_END_SIGNAL:
		return session->signal == SIGINT    ? "stopped by Ctrl-C"
		       : session->signal == SIGTERM ? "stopped by SIGTERM"
						    : "stopped by SIGHUP";
	case SESSION_END_TARGETS:
		return session->process_count == 1 ? "the process has ended" : "all processes have ended";
	case SESSION_END_ERROR:
		break;
	}
	return "stopped by an error";
}

/* What only one of the engines knows. */
static void fill_engine_part(struct session *session, struct report *report)
{
	struct sampler *sampler = session->engine.sampler;
	uint64_t counters[PBP_COUNTER_COUNT];

	if (!sampler) {
		report->lines_unknown = poller__counts(session->engine.poller).moved;
		report->unwind = poller__unwind_stats(session->engine.poller);
		return;
	}
	sampler__counters(sampler, counters);
	report->knows_kernel = true;
	report->max_frames = sampler__max_frames(sampler);
	report->tick_ns = sampler__mean_tick_ns(sampler);
	report->wakeups = counters[PBP_COUNTER_WAKEUPS];
	report->lost_process = counters[PBP_COUNTER_LOST_PROCESS];
}

static void fill_report(struct session *session, struct report *report)
{
	*report = (struct report){
		.processes = session->processes,
		.process_count = session->process_count,
		.counts = session->symbolizer.counts,
		.rate_hz = session->config.rate_hz,
		.wall_ns = session->profile.duration_ns,
		.engine = engine__name(&session->engine),
		.end = end_text(session),
	};
	report->loss_count = engine__losses(&session->engine, report->losses);
	report->with_stats = session->config.stats;
	for (size_t i = 0; i < session->process_count; i++)
		process__add_reads(&session->processes[i], &report->reads);
	fill_engine_part(session, report);
}

void session__report(struct session *session, struct buf *out)
{
	struct report report;

	fill_report(session, &report);
	report__format(&report, out);
}

void session__report_json(struct session *session, struct buf *out)
{
	struct report report;

	fill_report(session, &report);
	report__format_json(&report, out);
}

void session__explain_empty(struct session *session, struct buf *out)
{
	struct report report;

	fill_report(session, &report);
	report__explain_empty(&report, out);
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
