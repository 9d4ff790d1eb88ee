/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of a run, as session.h has it: what the engine, the symbolizer and the processes have counted.
 */
#include "base/log.h"
#include "run/report.h"
#include "run/session_parts.h"

#include <signal.h>

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
	report->knows_kernel = true;
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

/* Of those that were found, the Pythons. */
static void choose_told(struct session *session, struct report *report)
{
	const struct processes *processes = &session->follower.processes;

	session->told.len = 0;
	report->other_processes = processes->past.others;
	report->unknown = processes->past.unknown;
	for (size_t i = 0; i < processes->items.len; i++) {
		struct process *process = processes->items.items[i];

		if (!report->followed || is_python(process)) {
			if (vec__push(&session->told, process))
				report->past.pythons++;
		} else {
			report->other_processes++;
			report->unknown += process__is_unknown(process);
		}
	}
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
	sum_containers(session, report);
	fill_engine_part(session, report);
}

void session_account(struct session *session)
{
	const struct symbolize_counts *counts = &session->symbolizer.counts;
	struct report report;

	fill_report(session, &report);
	session->profile.account = (struct account){
		.engine = report.engine,
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

void session__explain_not_python(const struct session *session, struct buf *out)
{
	const struct command *command = &session->command;

	if (session->config.all) {
		buf__adds(out, "no Python process was found");
	} else if (session_has_scope(session)) {
		buf__addf(out, "no Python that can be profiled was found in %s, among %zu processes",
			  session->config.cgroups.len ? "the cgroup" : "the container",
			  session->follower.processes.items.len +
				  (size_t)session->follower.processes.past.others);
	} else if (session->config.subprocesses) {
		buf__addf(out,
			  "no Python that can be profiled was found in process %d (%s) and what it started",
			  session->first->pid, session->first->command);
	} else {
		buf__addf(out, "no Python that can be profiled was found in process %d (%s)",
			  session->first->pid, session->first->command);
		if (!session->follower.denied)
			buf__adds(out, "; if it starts one, use --subprocesses");
	}
	if (session->follower.denied)
		buf__addf(out, "; %llu of those found could not be looked at: not permitted to read",
			  (unsigned long long)session->follower.denied);
	if (command->over)
		buf__addf(out, "; the command ended with %s", command__status_text(command));
}
