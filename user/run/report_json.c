/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of a run for programs (report__format_json in report.h).
 */
#include "run/report.h"

#include "os/proc.h"
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

static void add_number(struct buf *out, const char *name, uint64_t value)
{
	buf__addf(out, ", \"%s\": %" PRIu64, name, value);
}

static void add_seconds(struct buf *out, const char *name, uint64_t ns)
{
	buf__addf(out, ", \"%s\": %.6f", name, ns / 1e9);
}

static void add_text(struct buf *out, const char *name, const char *text)
{
	buf__addf(out, ", \"%s\": ", name);
	json__string(out, text, strlen(text));
}

static void add_container_id(struct buf *out, const char *name, const struct container *container)
{
	if (container)
		add_text(out, name, container->id);
	else
		buf__addf(out, ", \"%s\": null", name);
}

static void add_containers(const struct report *report, struct buf *out)
{
	buf__adds(out, ", \"containers\": [");
	for (size_t i = 0; i < report->container_count; i++) {
		const struct report_container *sum = &report->containers[i];

		buf__addf(out, "%s{\"processes\": %" PRIu64, i ? ", " : "", sum->pythons);
		add_container_id(out, "id", sum->container);
		if (sum->container && sum->container->name)
			add_text(out, "name", sum->container->name);
		else
			buf__adds(out, ", \"name\": null");
		add_number(out, "samples", sum->samples);
		add_seconds(out, "cpu_s", sum->cpu_ns);
		buf__adds(out, "}");
	}
	buf__adds(out, "]");
	add_number(out, "processes_left", report->left);
}

/* By what it was when it was last found so. */
static void add_halt(const struct process *process, struct buf *out)
{
	struct buf text = {0};

	if (!process->halts.halted) {
		buf__adds(out, ", \"halted\": null");
		return;
	}
	halt__describe(&process->halts.last, &text);
	buf__addc(&text, '\0');
	add_text(out, "halted", text.err ? "" : text.data);
	buf__free(&text);
}

static void add_processes(const struct report *report, struct buf *out)
{
	buf__adds(out, ", \"processes\": [");
	for (size_t i = 0; i < report->process_count; i++) {
		const struct process *process = report->processes[i];

		buf__addf(out, "%s{\"pid\": %d", i ? ", " : "", process->pid);
		buf__addf(out, process->inner_pid ? ", \"inner_pid\": %d" : ", \"inner_pid\": null",
			  process->inner_pid);
		add_text(out, "command", process->command);
		add_number(out, "execs", process->execs);
		if (report->container_count)
			add_container_id(out, "container", process->container);
		add_number(out, "samples", process->samples);
		add_seconds(out, "cpu_s", process->cpu_end_ns - process->cpu_start_ns);
		add_number(out, "looks", process->halts.looks);
		add_number(out, "looks_halted", process->halts.halted);
		add_halt(process, out);
		buf__adds(out, "}");
	}
	buf__adds(out, "]");
	add_number(out, "processes_past", report->past.pythons);
	add_number(out, "processes_not_python", report__not_python(report));
	add_number(out, "processes_ended_unknown", report->ended_unknown);
	add_number(out, "processes_going_on", report->going_on);
	add_number(out, "processes_denied", report->denied);
	add_number(out, "processes_unsupported", report->unsupported);
	add_number(out, "processes_not_opened", report->unopened);
	add_number(out, "processes_excluded", report->excluded);
	add_number(out, "processes_beyond_limit", report->beyond);
	if (report->knows_kernel)
		add_number(out, "samples_left_out", report->counts.skipped);
	else
		buf__adds(out, ", \"samples_left_out\": null");
}

static void add_losses(const struct report *report, struct buf *out)
{
	buf__addf(out, ", \"lost\": {\"total\": %" PRIu64, report__lost(report));
	for (size_t i = 0; i < report->loss_count; i++)
		add_number(out, report->losses[i].why, report->losses[i].count);
	add_number(out, "stack not known", report->counts.unknown_stack);
	buf__adds(out, "}");
}

static void add_samples(const struct report *report, struct buf *out)
{
	static const char *const names[PBP_STATUS_COUNT] = {
#define NAME(name, text) [PBP_STATUS_##name] = #name,
		PBP_STATUSES(NAME)
#undef NAME
	};
	const struct symbolize_counts *counts = &report->counts;

	add_number(out, "samples", counts->samples);
	add_losses(report, out);
	add_number(out, "truncated", counts->truncated);
	add_number(out, "unverified", counts->unverified);
	add_number(out, "code_freed", counts->unreadable);
	add_number(out, "exited", counts->exited);
	add_number(out, "line_unknown", report->lines_unknown);
	add_number(out, "line_approximate", counts->approximate);
	add_number(out, "not_stopped", report->not_stopped);
	add_number(out, "beyond_size_limit", counts->pruned);
	add_number(out, "deep_completed", counts->tails_completed);
	buf__addf(out, ", \"walks\": {\"total\": %" PRIu64, counts->samples);
	for (size_t i = 0; i < PBP_STATUS_COUNT; i++)
		add_number(out, names[i], counts->status[i]);
	buf__addf(out, "}, \"state\": {\"attached\": %" PRIu64, counts->attached);
	add_number(out, "collecting_garbage", counts->collecting);
	add_number(out, "exception_set", counts->raising);
	if (report->knows_kernel)
		add_number(out, "in_kernel", counts->in_kernel);
	else
		buf__adds(out, ", \"in_kernel\": null");
	if (report->only_exceptions)
		add_number(out, "exception_handled", counts->handling);
	buf__adds(out, "}");
	report_format_left_out_json(report, out);
}

static void add_cost(const struct report *report, struct buf *out)
{
	buf__addf(out, ", \"cost\": {\"cpu_s\": %.6f", proc__own_cpu_ns() / 1e9);
	add_number(out, "resident_bytes", proc__own_rss());
	add_number(out, "resident_peak_bytes", proc__own_peak_rss());
	add_number(out, "wakeups", report->wakeups);
	if (report->tick_ns) {
		add_number(out, "kernel_tick_ns", report->tick_ns);
		add_number(out, "kernel_ticks", report->ticks);
	}
	buf__adds(out, "}");
}

static void add_reads(const struct report *report, struct buf *out)
{
	const struct unwind_stats *unwind = &report->unwind;

	buf__addf(out, ", \"reads\": {\"calls\": %" PRIu64, report->reads.calls);
	add_number(out, "segments", report->reads.segments);
	add_number(out, "bytes", report->reads.bytes);
	add_number(out, "segments_short", report->reads.faults);
	buf__adds(out, "}");
	if (!unwind->readings)
		return;
	buf__addf(out, ", \"stacks\": {\"read\": %" PRIu64, unwind->readings);
	add_number(out, "predicted", unwind->hits);
	add_number(out, "partly_predicted", unwind->partial);
	add_number(out, "not_predicted", unwind->misses);
	add_number(out, "thread_states_gone", unwind->stale);
	add_number(out, "repeated_changed", unwind->retries);
	add_number(out, "repeated_slow", unwind->slow);
	add_number(out, "repeated_one_copy", unwind->unproven);
	add_number(out, "torn", unwind->torn);
	add_number(out, "lines_unknown", unwind->moved);
	add_number(out, "markers_set", unwind->writes);
	add_number(out, "read_to_marker", unwind->marked);
	buf__addf(out, "}, \"caches\": {\"identities_known\": %" PRIu64, unwind->ident_hits);
	add_number(out, "identities_read", unwind->ident_reads);
	add_number(out, "pages_known", unwind->page_hits);
	add_number(out, "pages_read", unwind->page_reads);
	buf__adds(out, "}");
}

void report__format_json(const struct report *report, struct buf *out)
{
	uint64_t cpu_ns = report__target_cpu_ns(report);

	buf__adds(out, "{\"pybpfprof\": \"" PYBPFPROF_VERSION "\"");
	add_text(out, "engine", report->engine);
	add_text(out, "end", report->end);
	add_processes(report, out);
	if (report->container_count)
		add_containers(report, out);
	add_seconds(out, "duration_s", report->wall_ns);
	add_seconds(out, "target_cpu_s", cpu_ns);
	add_number(out, "rate_asked_hz", report->rate_hz);
	if (cpu_ns)
		buf__addf(out, ", \"rate_given_hz\": %.1f",
			  report__on_cpu(report) * 1e9 / cpu_ns);
	else
		buf__adds(out, ", \"rate_given_hz\": null");
	if (report->tick_hz)
		add_number(out, "kernel_ticks_hz", report->tick_hz);
	if (report->profile)
		report_format_time_json(report, out);
	else
		add_text(out, "mode", report->only_exceptions ? "exception" : "cpu");
	add_samples(report, out);
	add_cost(report, out);
	add_reads(report, out);
	buf__adds(out, "}\n");
}
