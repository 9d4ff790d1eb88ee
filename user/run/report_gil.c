/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the account that is about GILs: how long they were held and waited for, by whom.
 */
#include "run/report.h"

#include "base/json.h"
#include "base/utf8.h"
#include "os/pidns.h"
#include "run/gil.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define THREADS_TOLD	16
#define GIL_THREAD_COMM (sizeof(((struct gil_thread *)0)->comm) + 1)

static const char *name_of(const struct report *report, const struct gil_thread *thread,
			   char comm[GIL_THREAD_COMM])
{
	if (thread->name)
		return strtab__get(report->profile->strings, thread->name);
	memcpy(comm, thread->comm, sizeof(thread->comm));
	comm[sizeof(thread->comm)] = '\0';
	utf8_repair(comm);
	return comm;
}

/* "12 (name)", escaped; of several processes with that of its own. */
static void add_thread(const struct report *report, const struct gil_thread *thread, struct buf *out)
{
	char number[PIDNS_TEXT], comm[GIL_THREAD_COMM];
	const char *name = name_of(report, thread, comm);

	buf__adds(out, pidns__text(number, thread->tid, thread->inner_tid));
	if (name[0]) {
		buf__adds(out, " (");
		buf__add_escaped(out, name, NULL);
		buf__addc(out, ')');
	}
	if (report->process_count + report->past.pythons > 1)
		buf__addf(out, " of process %d", thread->pid);
}

static void add_sums(const struct gil_sums *sums, struct buf *out)
{
	buf__addf(out, ": held %.3f s", (sums->on_ns + sums->off_ns) / 1e9);
	if (sums->off_ns >= 500000)
		buf__addf(out, " (%.3f s of it off the CPU)", sums->off_ns / 1e9);
	buf__addf(out, ", waited %.3f s\n", sums->waited_ns / 1e9);
}

static void add_to(struct gil_sums *sum, const struct gil_sums *sums)
{
	sum->on_ns += sums->on_ns;
	sum->off_ns += sums->off_ns;
	sum->waited_ns += sums->waited_ns;
}

static void format_threads(const struct report *report, const struct gil_sums *all, struct buf *out)
{
	struct gil_rows rows = {0};
	struct gil_sums rest = {0};
	size_t more = 0;

	if (gil__rows(report->gil, all, &rows))
		rows.items.len = 0;
	for (size_t i = 0; i < rows.items.len; i++) {
		const struct gil_row *row = &rows.items.items[i];

		if (i >= THREADS_TOLD || !row->thread) {
			add_to(&rest, &row->sums);
			more++; /* the last may stand for several */
			continue;
		}
		buf__adds(out, "  thread     ");
		add_thread(report, row->thread, out);
		add_sums(&row->sums, out);
	}
	if (more) {
		buf__addf(out, "  threads    %zu more", more);
		add_sums(&rest, out);
	}
	vec__free(&rows.items);
}

static size_t count_without_gil(const struct report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->process_count; i++)
		count += report->processes[i]->target.offsets.free_threaded && !report->processes[i]->had_gil;
	return count;
}

void report_format_gil(const struct report *report, struct buf *out)
{
	size_t without = count_without_gil(report);
	uint64_t cpu_ns = report__target_cpu_ns(report);
	struct gil_sums all;

	gil__sums(report->gil, &all);
	buf__addf(out, "  GIL        held %.3f s, on the CPU %.3f and off it %.3f; waited for %.3f s",
		  (all.on_ns + all.off_ns) / 1e9, all.on_ns / 1e9, all.off_ns / 1e9, all.waited_ns / 1e9);
	if (all.unseen_ns)
		buf__addf(out, ", of which %.3f with the holder not seen", all.unseen_ns / 1e9);
	/* Of threads that are left out it is not told which part they had it. */
	if (report->knows_kernel && report__on_cpu(report) && !report__left_out(report) && cpu_ns > all.on_ns)
		buf__addf(out, "; %.3f s on the CPU without it", (cpu_ns - all.on_ns) / 1e9);
	buf__addc(out, '\n');
	if (without)
		buf__addf(out,
			  "  no GIL     in %zu process%s that %s free-threaded: stop-the-world pauses of "
			  "%.3f s in "
			  "all\n",
			  without, without == 1 ? "" : "es", without == 1 ? "is" : "are",
			  all.paused_ns / 1e9);
	format_threads(report, &all, out);
}

static void add_json_sums(const struct gil_sums *sums, struct buf *out)
{
	buf__addf(out, "\"held_on_cpu_s\": %.6f, \"held_off_cpu_s\": %.6f, \"waited_s\": %.6f",
		  sums->on_ns / 1e9, sums->off_ns / 1e9, sums->waited_ns / 1e9);
}

void report_format_gil_json(const struct report *report, struct buf *out)
{
	struct gil_rows rows = {0};
	struct gil_sums all;

	gil__sums(report->gil, &all);
	buf__adds(out, ", \"gil\": {");
	add_json_sums(&all, out);
	buf__addf(out, ", \"holder_not_seen_s\": %.6f, \"stop_the_world_s\": %.6f, \"threads\": [",
		  all.unseen_ns / 1e9, all.paused_ns / 1e9);
	if (gil__rows(report->gil, &all, &rows))
		rows.items.len = 0;
	for (size_t i = 0; i < rows.items.len; i++) {
		const struct gil_row *row = &rows.items.items[i];
		char comm[GIL_THREAD_COMM];

		buf__adds(out, i ? ", {" : "{");
		if (row->thread) {
			const char *name = name_of(report, row->thread, comm);

			buf__addf(out, "\"pid\": %d, \"tid\": %d, \"name\": ", row->thread->pid,
				  row->thread->tid);
			json__string(out, name, strlen(name));
			buf__adds(out, ", ");
		}
		add_json_sums(&row->sums, out);
		buf__addc(out, '}');
	}
	buf__adds(out, "]}");
	vec__free(&rows.items);
}
