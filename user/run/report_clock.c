/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the report says of samples at the kernel's tick. It meets what runs in step with it always or never.
 */
#include "run/report.h"

/* Ticks that are missing, or too many, are told of if they are a part in four, and far beyond chance. */
#define STEP_PART  4
#define STEP_SIGMA 5

static bool is_in_step(const struct report *report)
{
	uint64_t due = report__target_cpu_ns(report) / 1000 * report->rate_hz / 1000000;
	uint64_t met = report__on_cpu(report), off = met > due ? met - due : due - met;

	return STEP_PART * off > due && off * off > STEP_SIGMA * STEP_SIGMA * due &&
	       !report__is_cpu_short(report);
}

void report_format_clock(const struct report *report, struct buf *out)
{
	double due = report__target_cpu_ns(report) / 1e9 * report->rate_hz;

	if (!report->tick_hz)
		return;
	buf__addf(out, "  clock      the kernel's tick, %u a second", report->tick_hz);
	if (is_in_step(report))
		buf__addf(out,
			  "; it met %.0f%% of the CPU time: what runs in step with it has a wrong share; use "
			  "--clock perf",
			  100 * report__on_cpu(report) / due);
	buf__adds(out, "\n");
}
