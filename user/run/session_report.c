/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See session_parts.h. What a run has to tell of itself; run/report.h puts it into words. */
#include "run/report.h"
#include "run/session_parts.h"

#include <signal.h>

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
