/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why nothing was sampled.
 */
#include "run/report.h"

#include "os/proc.h"
#include "py/hint.h"

#include <inttypes.h>

#define PERIODS_SURE 10 /* of CPU time without a sample: none is late by that much */

static const char *state_words(char state)
{
	switch (state) {
	case 'S':
		return "sleeping";
	case 'D':
		return "in an uninterruptible sleep (for a disk, or for a child that it has vforked)";
	case 'Z':
		return "a zombie";
	case 'R':
		return "runnable";
	}
	return "in another state";
}

/* Was it so at every look, and has it used no CPU time that could be seen? */
static bool was_always_halted(const struct report *report)
{
	const struct process_halts *halts = &report->processes[0]->halts;

	return halts->halted && halts->halted == halts->looks &&
	       report__target_cpu_ns(report) * report->rate_hz < 1000000000ull;
}

static void explain_halted(const struct report *report, struct buf *out)
{
	const struct process *process = report->processes[0];

	buf__adds(out, "no samples: the whole time ");
	report_format_targets(report, out);
	buf__adds(out, " was ");
	halt__describe(&process->halts.last, out);
	if (process->halts.last.kind == HALT_STOPPED)
		buf__addf(out, "; kill -CONT %d lets it go on", process->pid);
}

static void explain_now(const struct report *report, struct buf *out)
{
	const struct process *process = report->processes[0];
	struct proc_stat stat;

	if (process->halts.now) {
		buf__adds(out, " and is ");
		halt__describe(&process->halts.last, out);
		buf__adds(out, " now");
	} else if (!proc__stat(process->pid, &stat)) {
		buf__addf(out, " and is %s now",
			  stat.state == 'Z' && stat.num_threads > 1
				  ? "without its main thread, which has ended"
				  : state_words(stat.state));
		py_hint__descendants(process->pid, out);
	}
}

void report__explain_empty(const struct report *report, struct buf *out)
{
	uint64_t cpu_ns = report__target_cpu_ns(report);

	if (report_explain_left_out(report, out))
		return;
	if (report->hides_idle && report->counts.hidden_ns) {
		buf__addf(out, "no samples: the %.3f s of ", report->counts.hidden_ns / 1e9);
		report_format_targets(report, out);
		buf__adds(out, " were all waits for work, which --idle=hide leaves out");
		return;
	}
	/* What is no one's business with --mode gil has been seen all the same. */
	if (report__lost(report) && !report->counts.hidden_ns) {
		buf__addf(out, "no samples: all %" PRIu64 " were lost", report__lost(report));
		return;
	}
	if (report->mode == ENGINE_OFFCPU) {
		buf__adds(out, "no waits: no thread of ");
		report_format_targets(report, out);
		buf__addf(out, " was off the CPU in %.2f s", report->wall_ns / 1e9);
		return;
	}
	if (report->gil) {
		buf__adds(out, "no samples: no thread of ");
		report_format_targets(report, out);
		buf__addf(out, " held a GIL or waited for one in %.2f s%s", report->wall_ns / 1e9,
			  report__free_threaded(report)
				  ? "; free-threaded builds have none, and no stop-the-world pause was seen"
				  : "");
		return;
	}
	if (report->process_count == 1 && was_always_halted(report)) {
		explain_halted(report, out);
		return;
	}
	buf__adds(out, "no samples: ");
	report_format_targets(report, out);
	buf__addf(out, " used %.6f s of CPU in %.2f s", cpu_ns / 1e9, report->wall_ns / 1e9);
	if (report->process_count == 1)
		explain_now(report, out);
	if (cpu_ns * report->rate_hz / 1000000000ull < PERIODS_SURE)
		buf__addf(out, "; CPU time is what is sampled, one sample each %.1f ms of it",
			  1000.0 / report->rate_hz);
	else if (report->tick_hz)
		buf__adds(out,
			  "; the kernel's ticks have met none of it, so that it is in step with them: use "
			  "--clock perf");
	else
		buf__adds(out, ", so there should be some: this is a fault of the profiler or the kernel");
}
