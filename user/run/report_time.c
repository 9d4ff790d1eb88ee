/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the account that is about time: how much of it was spent on what, and how much of that was
 * seen.
 */
#include "run/report.h"

#include "base/json.h"
#include "base/util.h"

#include <inttypes.h>
#include <string.h>

#define REASONS_TOLD 12

void report_format_time_head(const struct report *report, struct buf *out)
{
	buf__addf(out, "%.3f s %sof ", profile__total(report->profile) / 1e9,
		  report->mode == ENGINE_OFFCPU ? "off the CPU "
		  : report->mode == ENGINE_GIL	? "holding the GIL or waiting for it, "
						: "");
}

/* "[sleep]" without its brackets. */
static void add_reason(struct buf *out, const char *text)
{
	size_t len = strlen(text);

	buf__add(out, text + 1, len < 2 ? 0 : len - 2);
}

static void format_reasons(const struct report *report, struct buf *out)
{
	struct profile_waits waits;
	uint64_t on_cpu = profile__total(report->profile), rest = 0;
	const char *comma = "";

	if (profile__waits(report->profile, &waits))
		waits.items.len = 0;
	for (size_t i = 0; i < waits.items.len; i++)
		on_cpu -= waits.items.items[i].time_ns;
	buf__adds(out, "  time       ");
	if (report->mode == ENGINE_WALL) {
		buf__addf(out, "%.3f s on the CPU", on_cpu / 1e9);
		comma = ", ";
	}
	for (size_t i = 0; i < waits.items.len; i++) {
		const struct profile_wait *wait = &waits.items.items[i];

		if (i >= REASONS_TOLD) {
			rest += wait->time_ns;
			continue;
		}
		buf__addf(out, "%s%.3f s ", comma, wait->time_ns / 1e9);
		add_reason(out, strtab__get(report->profile->strings, wait->reason));
		comma = ", ";
	}
	if (rest)
		buf__addf(out, ", %.3f s of other kinds", rest / 1e9);
	buf__adds(out, *comma ? "\n" : "none\n");
	profile_waits__free(&waits);
}

static void format_waits(const struct report *report, struct buf *out)
{
	const struct report_waits *waits = &report->waits;
	uint64_t walked = report->counts.waits;

	if (!report->knows_kernel)
		buf__addf(out,
			  "  waits      %" PRIu64
			  " met at ticks, each stands for the time since the thread was looked at before",
			  walked);
	else
		buf__addf(out, "  waits      %" PRIu64 " told of", walked);
	if (waits->skipped)
		buf__addf(out,
			  "; of the short ones 1 in %.1f: they stand for %" PRIu64 " more, of %.3f s in all",
			  (double)(walked + waits->skipped) / (walked ?: 1), waits->skipped,
			  waits->skipped_ns / 1e9);
	if (report->counts.status[PBP_STATUS_NOT_WALKED])
		buf__addf(out, "; %" PRIu64 " without their stack",
			  report->counts.status[PBP_STATUS_NOT_WALKED]);
	if (waits->found)
		buf__addf(out, "; %" PRIu64 " thread%s asleep before it began", waits->found,
			  plural(waits->found));
	if (waits->lost)
		buf__addf(out, "; %" PRIu64 " lost, of %.3f s", waits->lost, waits->lost_ns / 1e9);
	if (waits->missed)
		buf__addf(out, "; %" PRIu64 " switch%s not seen", waits->missed,
			  waits->missed == 1 ? "" : "es");
	if (waits->unseen)
		buf__addf(out, "; the end of %" PRIu64 " not traced by the kernel, and found by CPU time",
			  waits->unseen);
	if (waits->lost_threads)
		buf__addf(out, "; %" PRIu64 " of more threads than there is room for", waits->lost_threads);
	buf__adds(out, "\n");
	if (report->hides_idle)
		buf__addf(
			out,
			"  idle       %.3f s hidden, of pools, event loops and servers that waited for work "
			"(--idle=show)\n",
			report->counts.hidden_ns / 1e9);
}

void report_format_time(const struct report *report, struct buf *out)
{
	format_reasons(report, out);
	format_waits(report, out);
	if (report->gil)
		report_format_gil(report, out);
}

void report_format_time_json(const struct report *report, struct buf *out)
{
	const struct report_waits *counts = &report->waits;
	struct profile_waits waits;
	uint64_t on_cpu = profile__total(report->profile);

	buf__addf(out, ", \"mode\": \"%s\", \"time\": {\"total_s\": %.6f, \"waits\": {",
		  report->mode == ENGINE_WALL  ? "wall"
		  : report->mode == ENGINE_GIL ? "gil"
					       : "offcpu",
		  on_cpu / 1e9);
	if (profile__waits(report->profile, &waits))
		waits.items.len = 0;
	for (size_t i = 0; i < waits.items.len; i++) {
		const struct profile_wait *wait = &waits.items.items[i];
		const char *text = strtab__get(report->profile->strings, wait->reason);

		on_cpu -= wait->time_ns;
		buf__adds(out, i ? ", " : "");
		json__string(out, text + 1, strlen(text) - 2);
		buf__addf(out, ": %.6f", wait->time_ns / 1e9);
	}
	buf__addf(out,
		  "}, \"on_cpu_s\": %.6f, \"told\": %" PRIu64 ", \"skipped\": %" PRIu64
		  ", \"skipped_s\": %.6f, \"asleep_before\": %" PRIu64
		  ", \"lost_s\": %.6f, \"hidden_s\": %.6f}",
		  on_cpu / 1e9, report->counts.waits, counts->skipped, counts->skipped_ns / 1e9,
		  counts->found, counts->lost_ns / 1e9, report->counts.hidden_ns / 1e9);
	profile_waits__free(&waits);
	if (report->gil)
		report_format_gil_json(report, out);
}
