/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See poller_parts.h. Processes come and go, and one that is there already may come anew: then all is read anew that
 * is known of its memory, but its account goes on.
 */
#include "base/clock.h"
#include "run/poller_parts.h"

#include <errno.h>
#include <stdlib.h>

static void add_unwind_stats(struct unwind_stats *sum, const struct unwind_stats *part)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)part;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

static struct unwind_stats stats_of(const struct polled *polled)
{
	struct unwind_stats stats = polled->unwinder.stats;

	stats.page_hits = polled->unwinder.pages.hits;
	stats.page_reads = polled->unwinder.pages.misses;
	return stats;
}

void poller_free_polled(struct poller *poller, struct polled *polled)
{
	struct unwind_stats stats = stats_of(polled);

	add_unwind_stats(&poller->past_unwind, &stats);
	for (size_t i = 0; i < polled->lanes.len; i++)
		poller_free_lane(polled, polled->lanes.items[i]);
	vec__free(&polled->lanes);
	vec__free(&polled->active);
	vec__free(&polled->waiting);
	hmap__free(&polled->by_tstate);
	hmap__free(&polled->by_tid);
	thread_ids__free(&polled->ids);
	unwinder__free(&polled->unwinder);
	free(polled);
}

static struct polled *take_out(struct poller *poller, const struct process *process)
{
	struct polled *found = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < poller->processes.len; i++)
		if (poller->processes.items[i]->process == process)
			found = poller->processes.items[i];
		else
			poller->processes.items[kept++] = poller->processes.items[i];
	poller->processes.len = kept;
	return found;
}

/* What is told of it, up to now and for what CPU time, has been told. */
static void go_on(struct polled *polled, const struct polled *before)
{
	polled->credit = before->credit;
	polled->missed = before->missed;
	polled->running = before->running;
	polled->cpu_ns = before->cpu_ns;
	polled->cpu_read_ns = before->cpu_read_ns;
	polled->run_ns = before->run_ns;
	polled->since_ns = before->since_ns;
	for (size_t i = 0; i < polled->lanes.len; i++) {
		struct lane *lane = polled->lanes.items[i];
		const uint64_t *index = lane->tid ? hmap__get(&before->by_tid, lane->tid) : NULL;

		if (index)
			lane->told_ns = poller_told_until(before, before->lanes.items[*index]);
	}
}

int poller__add(struct poller *poller, struct process *process)
{
	struct polled *before = take_out(poller, process);
	struct polled *polled = calloc(1, sizeof(*polled));
	int err;

	if (!polled) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; before && i < before->lanes.len; i++)
		thread_stack__unmark(&before->lanes.items[i]->stack, &before->unwinder);
	polled->process = process;
	err = unwinder__init(&polled->unwinder, &process->target);
	polled->unwinder.want_exceptions = poller->config.want_exceptions;
	polled->unwinder.use_marker =
		poller->config.frame_marker && process->target.offsets.thread_last_profiled != PY_ABSENT;
	err = err ?: poller_refresh(poller, polled, now_ns()) ?:
	      poller_check_markers(polled) ?:
	      vec__push(&poller->processes, polled);
	if (err)
		poller_free_polled(poller, polled);
	else if (before)
		go_on(polled, before);
	else
		poller_begin_credit(poller, polled, now_ns());
out:
	if (before && err)
		poller_settle_credit(poller, before, now_ns());
	if (before)
		poller_free_polled(poller, before);
	return err;
}

void poller__remove(struct poller *poller, const struct process *process)
{
	struct polled *polled = take_out(poller, process);

	if (!polled)
		return;
	poller_settle_credit(poller, polled, now_ns());
	poller_free_polled(poller, polled);
}

struct unwind_stats poller__unwind_stats(const struct poller *poller)
{
	struct unwind_stats sum = poller->past_unwind;

	for (size_t i = 0; i < poller->processes.len; i++) {
		struct unwind_stats stats = stats_of(poller->processes.items[i]);

		add_unwind_stats(&sum, &stats);
	}
	return sum;
}
