/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the account that is about samples that were taken and not asked for.
 */
#include "run/report.h"

#include <inttypes.h>

uint64_t report__left_out(const struct report *report)
{
	return report->counts.left_out_threads + report->counts.left_out_exceptions;
}

/* "880 of other threads, 20 of threads that had no exception" */
static void add_reasons(const struct report *report, struct buf *out)
{
	const struct symbolize_counts *counts = &report->counts;

	if (counts->left_out_threads)
		buf__addf(out, "%" PRIu64 " of threads that were not asked for", counts->left_out_threads);
	if (counts->left_out_threads && counts->left_out_exceptions)
		buf__adds(out, ", ");
	if (counts->left_out_exceptions)
		buf__addf(out, "%" PRIu64 " of threads that neither handled nor raised an exception",
			  counts->left_out_exceptions);
}

void report_format_left_out(const struct report *report, struct buf *out)
{
	uint64_t left_out = report__left_out(report), kept = report->counts.samples;

	if (!left_out && !report->only_exceptions)
		return;
	buf__addf(out, "  kept       %" PRIu64 " of %" PRIu64 " samples (%.1f%%)", kept, kept + left_out,
		  kept + left_out ? 100.0 * kept / (kept + left_out) : 0);
	buf__adds(out, left_out ? "; left out: " : "");
	add_reasons(report, out);
	if (report->profile)
		buf__addf(out, ", %.3f s", report->counts.left_out_ns / 1e9);
	buf__adds(out, "\n");
}

void report_format_left_out_json(const struct report *report, struct buf *out)
{
	const struct symbolize_counts *counts = &report->counts;

	buf__addf(out,
		  ", \"left_out\": {\"total\": %" PRIu64 ", \"of_other_threads\": %" PRIu64
		  ", \"without_exception\": %" PRIu64 ", \"time_s\": %.6f}",
		  report__left_out(report), counts->left_out_threads, counts->left_out_exceptions,
		  report->profile ? counts->left_out_ns / 1e9 : 0.0);
}

bool report_explain_left_out(const struct report *report, struct buf *out)
{
	uint64_t left_out = report__left_out(report);

	if (!left_out)
		return false;
	buf__addf(out, "no samples that were asked for: of %" PRIu64 " that were taken all were left out, ",
		  left_out);
	add_reasons(report, out);
	return true;
}
