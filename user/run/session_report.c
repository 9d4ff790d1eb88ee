/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of a run, as session.h has it: what the engine, the symbolizer and the processes have counted.
 */
#include "run/report.h"
#include "run/session_parts.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_ENOUGH 10 /* at a process that has just started, to tell that it is no Python */

const char *session_end_text(const struct session *session)
{
	switch (session->end) {
	case SESSION_END_DURATION:
		return "duration over";
	case SESSION_END_SIGNAL:
		return session->signal == SIGINT    ? "stopped by Ctrl-C"
		       : session->signal == SIGTERM ? "stopped by SIGTERM"
						    : "stopped by SIGHUP";
	case SESSION_END_TARGETS:
		return session->command.pid ? "the command has ended"
		       : session->config.pids.len == 1 && !session->config.subprocesses
			       ? "the process has ended"
			       : "all processes have ended";
	case SESSION_END_ERROR:
		break;
	}
	return "stopped by an error";
}

static void fill_waits(const struct session *session, struct report *report,
		       const uint64_t counters[PBP_COUNTER_COUNT])
{
	struct report_waits *waits = &report->waits;
	struct pbp_skipped skipped[PBP_WAIT_KINDS];

	*waits = (struct report_waits){.found = session->waits.found,
				       .lost = counters[PBP_COUNTER_LOST_WAIT],
				       .lost_ns = counters[PBP_COUNTER_LOST_WAIT_NS],
				       .lost_threads =
					       counters[PBP_COUNTER_LOST_THREAD] + session->waits.no_room,
				       .unseen = counters[PBP_COUNTER_UNSEEN],
				       .missed = sampler__missed_switches(session->engine.sampler),
				       .switch_ns = sampler__mean_switch_ns(session->engine.sampler)};
	sampler__skipped(session->engine.sampler, skipped);
	for (size_t kind = 0; kind < PBP_WAIT_KINDS; kind++) {
		waits->skipped += skipped[kind].count;
		waits->skipped_ns += skipped[kind].time_ns;
	}
}

/* What only one of the engines knows. */
static void fill_engine_part(struct session *session, struct report *report)
{
	struct sampler *sampler = session->engine.sampler;
	uint64_t counters[PBP_COUNTER_COUNT];

	if (!sampler) {
		report->lines_unknown = poller__counts(session->engine.poller).moved;
		report->not_stopped = poller__counts(session->engine.poller).not_stopped;
		report->unwind = poller__unwind_stats(session->engine.poller);
		return;
	}
	sampler__counters(sampler, counters);
	if (report->profile)
		fill_waits(session, report, counters);
	report->knows_kernel = true;
	report->tick_hz = sampler__tick_hz(sampler);
	report->max_frames = sampler__max_frames(sampler);
	report->tick_ns = sampler__mean_tick_ns(sampler, &report->ticks);
	report->wakeups = counters[PBP_COUNTER_WAKEUPS];
	report->lost_process = counters[PBP_COUNTER_LOST_PROCESS];
	report->beyond += counters[PBP_COUNTER_TABLE_FULL];
}

static bool is_python(const struct process *process)
{
	return process->python || process->samples;
}

static void count_unknown(const struct session *session, struct report *report)
{
	const struct processes *processes = &session->follower.processes;

	report->ended_unknown = processes->past.ended_unknown;
	for (size_t i = 0; i < processes->items.len; i++)
		report->ended_unknown += process__ended_unknown(processes->items.items[i]);
}

/* As of a command that makes itself a daemon. */
static bool is_left_by_command(const struct session *session, const struct process *process)
{
	return session->command.over && process != session->first && process->python && !process->exited &&
	       process__lives(process);
}

/* Of those that were found, the Pythons. */
static void choose_told(struct session *session, struct report *report)
{
	const struct processes *processes = &session->follower.processes;

	session->told.len = 0;
	report->other_processes = processes->past.others;
	report->going_on = 0;
	for (size_t i = 0; i < processes->items.len; i++) {
		struct process *process = processes->items.items[i];

		if (!report->followed || is_python(process)) {
			if (vec__push(&session->told, process))
				report->past.pythons++;
		} else {
			report->other_processes++;
		}
		report->going_on += is_left_by_command(session, process);
	}
	for (size_t i = 0; i < session->told.len && session->config.frame_marker; i++)
		report->unmarked += session->told.items[i]->target.offsets.thread_last_profiled == PY_ABSENT;
	report->processes = session->told.items;
	report->process_count = session->told.len;
}

static int more_samples(const void *a, const void *b)
{
	const struct report_container *x = a, *y = b;

	return x->samples != y->samples ? (x->samples < y->samples ? 1 : -1) : 0;
}

/* The last is of those that are in none. */
static void sum_containers(struct session *session, struct report *report)
{
	const struct processes *processes = &session->follower.processes;
	const struct containers *containers = &session->containers;
	struct report_container host = {.pythons = processes->past.pythons,
					.samples = processes->past.samples,
					.cpu_ns = processes->past.cpu_ns};

	session->sums.len = 0;
	if (!session->follower.config.containers)
		return;
	for (size_t i = 0; i <= containers->items.len; i++) {
		const struct container *container =
			i < containers->items.len ? containers->items.items[i] : NULL;
		struct report_container sum = host;

		if (container) {
			sum = (struct report_container){container, container->past_pythons,
							container->past_samples, container->past_cpu_ns};
			host.pythons -= sum.pythons;
			host.samples -= sum.samples;
			host.cpu_ns -= sum.cpu_ns;
		}
		for (size_t k = 0; k < processes->items.len; k++) {
			const struct process *process = processes->items.items[k];

			if (process->container != container || !is_python(process))
				continue;
			sum.pythons++;
			sum.samples += process->samples;
			sum.cpu_ns += process->cpu_end_ns - process->cpu_start_ns;
		}
		if (sum.pythons && vec__push(&session->sums, sum))
			break;
	}
	if (session->sums.len)
		qsort(session->sums.items, session->sums.len, sizeof(*session->sums.items), more_samples);
	report->containers = session->sums.items;
	report->container_count = session->sums.len;
}

static void fill_report(struct session *session, struct report *report)
{
	*report = (struct report){
		.followed = session_follows(session),
		.left = session->follower.left,
		.past = session->follower.processes.past,
		.denied = session->follower.denied,
		.denied_pythons = session->follower.denied_pythons,
		.denied_names = session->follower.denied_names,
		.unsupported = session->follower.unsupported,
		.unopened = session->follower.unopened,
		.excluded = session->follower.excluded,
		.beyond = session->follower.beyond,
		.cpu_unknown = session->follower.cpu_unknown,
		.reads = session->follower.processes.past.reads,
		.counts = session->symbolizer.counts,
		.mode = session->config.mode,
		.profile = session->config.mode == ENGINE_CPU ? NULL : &session->profile,
		.gil = session->symbolizer.gil,
		.hides_idle = session->config.hide_idle,
		.only_exceptions = session->config.only_exceptions,
		.rate_hz = session->config.rate_hz,
		.wall_ns = session->profile.duration_ns,
		.engine = engine__name(&session->engine),
		.end = session_end_text(session),
	};
	report->loss_count = engine__losses(&session->engine, report->losses);
	report->with_stats = session->config.stats;
	for (size_t i = 0; i < session->follower.processes.items.len; i++)
		process__add_reads(session->follower.processes.items.items[i], &report->reads);
	choose_told(session, report);
	count_unknown(session, report);
	sum_containers(session, report);
	fill_engine_part(session, report);
}

/* As --mode has it. */
static const char *mode_name(const struct session_config *config)
{
	static const char *const names[] = {[ENGINE_CPU] = "cpu",
					    [ENGINE_WALL] = "wall",
					    [ENGINE_OFFCPU] = "offcpu",
					    [ENGINE_GIL] = "gil"};

	return config->only_exceptions ? "exception" : names[config->mode];
}

void session_account(struct session *session)
{
	const struct symbolize_counts *counts = &session->symbolizer.counts;
	struct report report;

	fill_report(session, &report);
	session->profile.account = (struct account){
		.engine = report.engine,
		.mode = mode_name(&session->config),
		.version = PYBPFPROF_VERSION,
		.rate_hz = report.rate_hz,
		.processes = report.process_count + report.past.pythons,
		.cpu_ns = report.cpu_unknown ? 0 : report__target_cpu_ns(&report),
		.lost = report__lost(&report),
		.truncated = counts->truncated,
		.unverified = counts->unverified,
		.without_python = report__without_python(&report),
		.code_freed = counts->unreadable,
		.exited = counts->exited,
		.line_unknown = report.lines_unknown,
		.line_approximate = counts->approximate,
		.beyond_size_limit = counts->pruned,
		.left_out = report__left_out(&report),
	};
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

bool session__found_python(const struct session *session)
{
	const struct processes *processes = &session->follower.processes;

	for (size_t i = 0; i < processes->items.len; i++)
		if (is_python(processes->items.items[i]))
			return true;
	return processes->past.pythons;
}

bool session__was_denied(const struct session *session)
{
	return session->follower.denied;
}

bool session__is_partial(const struct session *session)
{
	const struct follower *follower = &session->follower;
	/* Of all there is, much may be closed to an ordinary user, and most of it is no Python. */
	uint64_t denied = session->config.all ? follower->denied_pythons : follower->denied;

	return denied || follower->unsupported || follower->unopened;
}

bool session__ended_too_soon(const struct session *session)
{
	const struct follower *follower = &session->follower;
	const struct process *first = session->first;

	return first && first->exited && !session__found_python(session) && !follower->denied &&
	       !follower->unsupported && process__is_named_python(first) &&
	       (process__ended_unknown(first) || first->retries < LOOKS_ENOUGH);
}

/* What there was instead. */
static void explain_others(const struct session *session, struct buf *out)
{
	const struct follower *follower = &session->follower;
	struct report report = {0};

	if (follower->denied)
		buf__addf(out, "; %" PRIu64 " of those found could not be looked at: not permitted to read",
			  follower->denied);
	if (follower->denied_pythons)
		buf__addf(out, "; Python by the name %s %s", follower->denied_pythons == 1 ? "is" : "are",
			  follower->denied_names);
	if (follower->unsupported)
		buf__addf(out, "; of a version or build that is not supported %s %" PRIu64 "%s%s",
			  follower->unsupported == 1 ? "is" : "are", follower->unsupported,
			  follower->unsupported == 1 ? ": " : ", as ", follower->unsupported_first);
	if (follower->excluded == 1)
		buf__adds(out,
			  "; there is a Python process, which was not asked for (--comm, --user, --exclude)");
	else if (follower->excluded)
		buf__addf(out,
			  "; there are %" PRIu64
			  " Python processes, none of which was asked for (--comm, --user, --exclude)",
			  follower->excluded);
	count_unknown(session, &report);
	if (report.ended_unknown && session_follows(session))
		buf__addf(out, "; %" PRIu64 " ended before it was known what they were",
			  report.ended_unknown);
}

void session__explain_not_python(const struct session *session, struct buf *out)
{
	const struct command *command = &session->command;
	const struct follower *follower = &session->follower;

	if (session__ended_too_soon(session)) {
		buf__addf(out, "no samples: process %d (%s) ended before an interpreter could be found in it",
			  session->first->pid, session->first->command);
	} else if (session->config.all) {
		buf__adds(out, "no Python process that can be profiled was found");
	} else if (session_has_scope(session)) {
		buf__addf(out, "no Python that can be profiled was found in %s, among %zu processes",
			  session->config.cgroups.len ? "the cgroup" : "the container",
			  follower->processes.items.len + (size_t)follower->processes.past.others);
	} else if (session->config.subprocesses) {
		buf__addf(out,
			  "no Python that can be profiled was found in process %d (%s) and what it started",
			  session->first->pid, session->first->command);
	} else {
		buf__addf(out, "no Python that can be profiled was found in process %d (%s)",
			  session->first->pid, session->first->command);
		if (!follower->denied && !follower->unsupported)
			buf__adds(out, "; if it starts one, use --subprocesses");
	}
	explain_others(session, out);
	if (command->over)
		buf__addf(out, "; the command ended with %s", command__status_text(command));
}
