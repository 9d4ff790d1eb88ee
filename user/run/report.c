/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See report.h.
 */
#include "run/report.h"

#include "base/util.h"
#include "os/proc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_TOLD 16

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

uint64_t report__target_cpu_ns(const struct report *report)
{
	uint64_t sum = report->past.cpu_ns;

	for (size_t i = 0; i < report->process_count; i++)
		sum += report->processes[i]->cpu_end_ns - report->processes[i]->cpu_start_ns;
	return sum;
}

uint64_t report__lost(const struct report *report)
{
	uint64_t sum = report->counts.unknown_stack;

	for (size_t i = 0; i < report->loss_count; i++)
		sum += report->losses[i].count;
	return sum;
}

uint64_t report__not_python(const struct report *report)
{
	uint64_t known = report->denied + report->unsupported + report->excluded + report->ended_unknown;

	return report->other_processes - min_u64(report->other_processes, known);
}

uint64_t report__on_cpu(const struct report *report)
{
	uint64_t left_out = report__left_out(report) - report->counts.left_out_waits + report->counts.hidden;

	return report->counts.samples - report->counts.waits + left_out + report__lost(report) -
	       report->waits.lost;
}

uint64_t report__without_python(const struct report *report)
{
	const uint64_t *status = report->counts.status;

	return status[PBP_STATUS_NO_TARGET] + status[PBP_STATUS_NO_TSTATE] + status[PBP_STATUS_TSTATE_FAULT] +
	       status[PBP_STATUS_NO_FRAMES];
}

void report_format_targets(const struct report *report, struct buf *out)
{
	uint64_t count = report->process_count + report->past.pythons;
	char number[PIDNS_TEXT];

	if (count == 1 && report->process_count)
		buf__addf(out, "process %s (%s)", process__number(report->processes[0], number),
			  report->processes[0]->command);
	else
		buf__addf(out, "%" PRIu64 "%s process%s", count, report->followed ? " Python" : "",
			  count == 1 ? "" : "es");
}

bool report__is_cpu_short(const struct report *report)
{
	return report->followed && report->cpu_unknown;
}

static void format_rate(const struct report *report, struct buf *out)
{
	uint64_t cpu_ns = report__target_cpu_ns(report);

	if (report->mode == ENGINE_OFFCPU)
		buf__adds(out, "  CPU        not sampled");
	else
		buf__addf(out, "  rate       %u Hz of CPU time asked, ", report->rate_hz);
	if (report->mode != ENGINE_OFFCPU && cpu_ns < 10000000)
		buf__adds(out, "n/a given (too little CPU time to say)");
	else if (report->mode != ENGINE_OFFCPU)
		buf__addf(out, "%s%.1f given", report__is_cpu_short(report) ? "at most " : "",
			  report__on_cpu(report) * 1e9 / cpu_ns);
	buf__addf(out, "; %s used %.3f s of CPU in %.2f s\n",
		  report->process_count + report->past.pythons == 1 ? "the process" : "they", cpu_ns / 1e9,
		  report->wall_ns / 1e9);
	if (report__is_cpu_short(report))
		buf__addf(out,
			  "             %" PRIu64
			  " of them used more before ending, and it is not known how much\n",
			  report->cpu_unknown);
}

/* "3 (2 ring buffer full, 1 stack no longer known)": a total and what it is made of. */
static void add_reason(struct buf *out, bool *first, uint64_t count, const char *text)
{
	if (!count)
		return;
	buf__addf(out, "%s%" PRIu64 " %s", *first ? " (" : ", ", count, text);
	*first = false;
}

static void format_lost(const struct report *report, struct buf *out)
{
	bool first = true;

	buf__addf(out, "%" PRIu64 " lost", report__lost(report));
	for (size_t i = 0; i < report->loss_count; i++)
		add_reason(out, &first, report->losses[i].count, report->losses[i].why);
	add_reason(out, &first, report->counts.unknown_stack, "stack not known");
	buf__adds(out, first ? "" : ")");
}

static void format_no_python(const struct report *report, struct buf *out)
{
	static const char *const texts[PBP_STATUS_COUNT] = {
#define TEXT(name, text) [PBP_STATUS_##name] = text,
		PBP_STATUSES(TEXT)
#undef TEXT
	};
	bool first = true;

	buf__addf(out, "%" PRIu64 " without Python frames", report__without_python(report));
	for (int status = PBP_STATUS_NO_TARGET; status <= PBP_STATUS_NO_FRAMES; status++)
		add_reason(out, &first, report->counts.status[status], texts[status]);
	buf__adds(out, first ? "" : ")");
}

static void format_samples(const struct report *report, struct buf *out)
{
	const struct symbolize_counts *counts = &report->counts;

	buf__addf(out, "  samples    %" PRIu64 " taken, ", counts->samples);
	format_lost(report, out);
	buf__addf(out, ", %" PRIu64 " truncated, %" PRIu64 " unverified", counts->truncated,
		  counts->unverified);
	if (counts->unreadable)
		buf__addf(out, ", %" PRIu64 " with code freed before it was read", counts->unreadable);
	if (counts->exited)
		buf__addf(out, ", %" PRIu64 " of processes that ended before all was read", counts->exited);
	if (report->lines_unknown)
		buf__addf(out, ", %" PRIu64 " with a caller's line unknown", report->lines_unknown);
	if (counts->pruned)
		buf__addf(out, ", %" PRIu64 " beyond the profile's size limit", counts->pruned);
	buf__adds(out, ", ");
	format_no_python(report, out);
	buf__adds(out, "\n");
	if (counts->tails_completed)
		buf__addf(out,
			  "  deep       %" PRIu64
			  " stack%s over %u frames completed and verified from user space\n",
			  counts->tails_completed, plural(counts->tails_completed), report->max_frames);
}

/* Does every process tell who holds its GIL, or which threads are attached where there is none? */
static bool knows_attached(const struct report *report)
{
	for (size_t i = 0; i < report->process_count; i++) {
		const struct pbp_target *layout = &report->processes[i]->target.layout;

		if (layout->ts_attached == PBP_NONE && !layout->gil_tstate)
			return false;
	}
	return true;
}

static bool knows_collector(const struct report *report)
{
	for (size_t i = 0; i < report->process_count; i++)
		if (report->processes[i]->attached &&
		    report->processes[i]->target.layout.collector == PBP_COLLECTOR_UNKNOWN)
			return false;
	return true;
}

size_t report__free_threaded(const struct report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->process_count; i++)
		count += report->processes[i]->target.offsets.free_threaded;
	return count;
}

/* To run Python a thread has to be attached. That is to hold the GIL, but in free-threaded builds. */
static const char *attached_words(const struct report *report)
{
	size_t free_threaded = report__free_threaded(report);

	if (!free_threaded)
		return "holding the GIL";
	return free_threaded == report->process_count ? "attached" : "holding the GIL or attached";
}

static void format_state(const struct report *report, struct buf *out)
{
	const struct symbolize_counts *counts = &report->counts;
	uint64_t samples = counts->samples - counts->waits; /* on the CPU */

	if (!samples)
		return;
	if (knows_attached(report))
		buf__addf(out, "  state      %.1f%% %s", percent(counts->attached, samples),
			  attached_words(report));
	else
		buf__adds(out, "  state      who held the GIL is not known");
	if (knows_collector(report))
		buf__addf(out, ", %.1f%% collecting garbage", percent(counts->collecting, samples));
	else
		buf__adds(out, ", who collected garbage is not known");
	buf__addf(out, ", %.1f%% with an exception set", percent(counts->raising, samples));
	if (report->only_exceptions)
		buf__addf(out, ", %.1f%% handling one", percent(counts->handling, samples));
	if (report->knows_kernel)
		buf__addf(out, ", %.1f%% in %s", percent(counts->in_kernel, samples),
			  report->tick_hz ? "system calls" : "the kernel");
	buf__adds(out, "\n");
}

/* The JIT's code says only now and then how far it is (pbp_sample.flags). */
static void format_lines(const struct report *report, struct buf *out)
{
	if (report->counts.approximate)
		buf__addf(out,
			  "  lines      of %" PRIu64 " sample%s (%.1f%%) approximate, marked ~: in code "
			  "that the JIT made\n",
			  report->counts.approximate, plural(report->counts.approximate),
			  percent(report->counts.approximate, report->counts.samples));
}

static void format_cost(const struct report *report, struct buf *out)
{
	uint64_t own = proc__own_cpu_ns();

	buf__addf(out, "  cost       profiler %.3f s CPU (%.2f%% of a CPU), %.1f MB resident (%.1f at most)",
		  own / 1e9, percent(own, proc__age_ns(getpid())), proc__own_rss() / 1048576.0,
		  proc__own_peak_rss() / 1048576.0);
	if (report->max_frames)
		buf__addf(out, ", %" PRIu64 " wake-up%s", report->wakeups, plural(report->wakeups));
	if (report->tick_ns)
		buf__addf(out, "; in the kernel %.2f us a %s, %" PRIu64 " ticks", report->tick_ns / 1e3,
			  report->tick_hz ? "tick or other timer" : "tick", report->ticks);
	if (report->waits.switch_ns)
		buf__addf(out, "; in the kernel %.2f us a switch", report->waits.switch_ns / 1e3);
	buf__adds(out, "\n");
}

static void format_stats(const struct report *report, struct buf *out)
{
	const struct unwind_stats *unwind = &report->unwind;

	buf__addf(out,
		  "  reads      %" PRIu64 " calls, %" PRIu64 " segments, %" PRIu64 " bytes, %" PRIu64
		  " segments short\n",
		  report->reads.calls, report->reads.segments, report->reads.bytes, report->reads.faults);
	if (!unwind->readings)
		return;
	buf__addf(out,
		  "  stacks     %" PRIu64 " read: %" PRIu64 " predicted, %" PRIu64
		  " but for some frames, %" PRIu64 " not; %" PRIu64 " thread states gone\n",
		  unwind->readings, unwind->hits, unwind->partial, unwind->misses, unwind->stale);
	buf__addf(out,
		  "  repeated   %" PRIu64 " since the stack changed, %" PRIu64
		  " since the call was slow, %" PRIu64 " since one copy did not do; %" PRIu64
		  " torn, %" PRIu64 " lines unknown\n",
		  unwind->retries, unwind->slow, unwind->unproven, unwind->torn, unwind->moved);
	if (unwind->writes)
		buf__addf(out, "  markers    %" PRIu64 " set; %" PRIu64 " stacks read down to one\n",
			  unwind->writes, unwind->marked);
	buf__addf(out,
		  "  caches     code identities: %" PRIu64 " known, %" PRIu64 " read; pages: %" PRIu64
		  " known, %" PRIu64 " read\n",
		  unwind->ident_hits, unwind->ident_reads, unwind->page_hits, unwind->page_reads);
}

static int more_samples(const void *a, const void *b)
{
	const struct process *x = *(struct process *const *)a, *y = *(struct process *const *)b;

	return x->samples != y->samples ? (x->samples < y->samples ? 1 : -1)
					: (x->pid > y->pid) - (x->pid < y->pid);
}

/* Each by itself, if they are few. */
static void format_each(const struct report *report, struct buf *out)
{
	struct process *sorted[PROCESSES_TOLD];
	char number[PIDNS_TEXT];

	if (report->process_count + report->past.pythons > PROCESSES_TOLD || report->process_count < 2)
		return;
	memcpy(sorted, report->processes, report->process_count * sizeof(*sorted));
	qsort(sorted, report->process_count, sizeof(*sorted), more_samples);
	for (size_t i = 0; i < report->process_count; i++)
		buf__addf(out, "  process    %s (%s): %" PRIu64 " sample%s, %.3f s of CPU\n",
			  process__number(sorted[i], number), sorted[i]->command, sorted[i]->samples,
			  plural(sorted[i]->samples),
			  (sorted[i]->cpu_end_ns - sorted[i]->cpu_start_ns) / 1e9);
}

static void format_containers(const struct report *report, struct buf *out)
{
	if (report->container_count > PROCESSES_TOLD || !report->container_count ||
	    (report->container_count == 1 && !report->containers->container))
		return;
	for (size_t i = 0; i < report->container_count; i++) {
		const struct report_container *sum = &report->containers[i];

		buf__addf(
			out, "  container  %s: %" PRIu64 " process%s, %" PRIu64 " sample%s, %.3f s of CPU\n",
			sum->container ? sum->container->label : "none (host)", sum->pythons,
			sum->pythons == 1 ? "" : "es", sum->samples, plural(sum->samples), sum->cpu_ns / 1e9);
	}
}

/* What was kept from running while it was to be sampled. */
static void format_halts(const struct report *report, struct buf *out)
{
	char number[PIDNS_TEXT];

	for (size_t i = 0, told = 0; i < report->process_count && told < PROCESSES_TOLD; i++) {
		const struct process *process = report->processes[i];

		if (!process->halts.halted)
			continue;
		buf__addf(out, "  halted     process %s in %u of %u looks, one a second: ",
			  process__number(process, number), process->halts.halted, process->halts.looks);
		halt__describe(&process->halts.last, out);
		buf__adds(out, process->halts.now ? "; it is so now\n" : "\n");
		told++;
	}
}

/* Those that could not be looked at may be Python; by their names some are. */
static void add_denied(const struct report *report, bool *first, struct buf *out)
{
	add_reason(out, first, report->denied, "not permitted to read");
	if (report->denied_pythons)
		buf__addf(out, ": Python by the name %s %s%s", report->denied_pythons == 1 ? "is" : "are",
			  report->denied_names,
			  report->denied_pythons > FOLLOW_NAMED_MAX ? " and others" : "");
}

static void format_found(const struct report *report, struct buf *out)
{
	uint64_t reasons = report->denied + report->unsupported + report->unopened + report->excluded +
			   report->ended_unknown;
	/* One that was profiled as something else is among the reasons only. */
	uint64_t others = max_u64(report->other_processes + report->unopened, reasons);
	bool first = true;

	if (report->going_on)
		buf__addf(out,
			  "  going on   %" PRIu64
			  " Python process%s that the command started: no longer profiled\n",
			  report->going_on, report->going_on == 1 ? "" : "es");
	format_containers(report, out);
	if (!report->followed)
		return;
	format_each(report, out);
	if (report->left)
		buf__addf(out,
			  "  left       %" PRIu64
			  " process%s while profiled, by being put into another cgroup\n",
			  report->left, report->left == 1 ? "" : "es");
	if (!report->other_processes && !report->denied && !report->unsupported && !report->unopened &&
	    !report->excluded)
		return;
	buf__addf(out, "  others     %" PRIu64 " process%s found that %s not profiled", others,
		  others == 1 ? "" : "es", others == 1 ? "was" : "were");
	add_denied(report, &first, out);
	add_reason(out, &first, report->unsupported, "of a version or build that is not supported");
	add_reason(out, &first, report->unopened, "not opened");
	add_reason(out, &first, report->excluded, "Python, but not asked for");
	add_reason(out, &first, report->ended_unknown, "ended before it was known what they were");
	if (first)
		buf__adds(out, ", not Python");
	else
		buf__adds(out, others > reasons ? ", the others not Python)" : ")");
	/* The readv engine reads none of them. */
	if (report->knows_kernel)
		buf__addf(out, "; %" PRIu64 " sample%s of them left out", report->counts.skipped,
			  plural(report->counts.skipped));
	buf__addc(out, '\n');
}

void report__format(const struct report *report, struct buf *out)
{
	if (report->profile)
		report_format_time_head(report, out);
	else
		buf__addf(out, "%" PRIu64 " sample%s of ", report->counts.samples,
			  plural(report->counts.samples));
	report_format_targets(report, out);
	buf__addf(out, " in %.1f s by the %s engine (%s)\n", report->wall_ns / 1e9, report->engine,
		  report->end);
	format_samples(report, out);
	report_format_left_out(report, out);
	if (report->profile)
		report_format_time(report, out);
	format_rate(report, out);
	report_format_clock(report, out);
	format_state(report, out);
	format_lines(report, out);
	if (report->not_stopped)
		buf__addf(out,
			  "  blocking   %" PRIu64
			  " sample%s of threads that could not be stopped, read as they ran\n",
			  report->not_stopped, plural(report->not_stopped));
	if (report->unmarked)
		buf__addf(out,
			  "  marker     not in %" PRIu64
			  " process%s, read without: Python has one from 3.15 on\n",
			  report->unmarked, report->unmarked == 1 ? "" : "es");
	for (size_t i = 0; i < report->process_count; i++)
		if (report->processes[i]->execs && !report->followed)
			buf__addf(out, "  exec       process %d became another program %u time%s; now %s\n",
				  report->processes[i]->pid, report->processes[i]->execs,
				  plural(report->processes[i]->execs), report->processes[i]->command);
	format_found(report, out);
	if (report->beyond)
		buf__addf(out,
			  "  limits     %" PRIu64
			  " process%s not followed: no room for more than %d at a time\n",
			  report->beyond, report->beyond == 1 ? " was" : "es were", SAMPLER_TARGETS_MAX);
	format_halts(report, out);
	if (report->lost_process)
		buf__addf(out, "  events     %" PRIu64 " of processes and threads lost, ring buffer full\n",
			  report->lost_process);
	format_cost(report, out);
	if (report->with_stats)
		format_stats(report, out);
}
