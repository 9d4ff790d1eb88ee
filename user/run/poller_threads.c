/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See poller_parts.h. The lanes of a process: one for each thread state of its interpreters' lists, and one for
 * each thread that has none. A lane lives until the lists no longer have it.
 */
#include "base/clock.h"
#include "base/util.h"
#include "os/proc.h"
#include "run/poller_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 65536

bool poller_is_free_threaded(const struct polled *polled)
{
	return polled->process->target.offsets.free_threaded;
}

/* --- one lane --- */

void poller_free_lane(struct polled *polled, struct lane *lane)
{
	thread_stack__unmark(&lane->stack, &polled->unwinder);
	stop__resume(&lane->stopped);
	thread_stack__free(&lane->stack);
	task_probe__close(&lane->probe);
	free(lane);
}

struct lane *poller_find_lane(const struct polled *polled, py_addr tstate)
{
	const uint64_t *index = hmap__get(&polled->by_tstate, tstate);

	return index ? polled->lanes.items[*index] : NULL;
}

/*
 * Its thread began after the lists were read last. A look at one that waits stands for the time since the tick
 * before, the first look, too: what comes after its last one is not told of. Or it has been known without this
 * thread state.
 */
static uint64_t told_before(const struct poller *poller, const struct polled *polled, const struct lane *lane)
{
	const uint64_t *index = lane->tid ? hmap__get(&polled->by_tid, lane->tid) : NULL;
	uint64_t since_ns = lane->found_ns - max_u64(poller->stands_for, 1) * SECOND / poller->config.rate_hz;

	return index ? polled->lanes.items[*index]->told_ns : max_u64(since_ns, polled->refreshed_ns);
}

static int add_lane(const struct poller *poller, struct polled *polled, const struct py_thread *thread,
		    pid_t tid)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int err;

	if (!lane)
		return -ENOMEM;
	lane->probe.fd = -1;
	lane->tid = tid;
	lane->found = true;
	lane->found_ns = now_ns();
	lane->told_ns = told_before(poller, polled, lane);
	if (thread) {
		lane->has_stack = true;
		thread_stack__init(&lane->stack, thread);
	}
	err = tid ? task_probe__open(&lane->probe, polled->process->pid, tid) : 0;
	if (err == -ESRCH || (err && !thread)) {
		poller_free_lane(polled, lane);
		return 0; /* it has ended since */
	}
	err = vec__push(&polled->lanes, lane);
	if (err)
		poller_free_lane(polled, lane);
	return err;
}

static void read_comm(struct polled *polled, struct lane *lane)
{
	char comm[64];

	memset(lane->comm, 0, sizeof(lane->comm));
	if (lane->tid && !proc__task_comm(polled->process->pid, lane->tid, comm, sizeof(comm)))
		memcpy(lane->comm, comm, strnlen(comm, sizeof(lane->comm)));
}

/* --- all of them --- */

/* Does the lane stand for it still, and for the same thread? What is asked here costs no reading. */
static bool is_same_thread(const struct polled *polled, const struct lane *lane, const struct py_thread *thread)
{
	const struct py_thread *known = &lane->stack.thread;

	return lane->has_stack && known->thread_id == thread->thread_id && known->interp == thread->interp &&
	       known->native_thread_id == thread->native_thread_id && thread_ids__has(&polled->ids, lane->tid);
}

/* One thread state of the lists: known already, or new. */
static int note_thread(const struct poller *poller, struct polled *polled, const struct py_thread *thread)
{
	struct lane *lane = poller_find_lane(polled, thread->tstate);
	uint64_t native;
	pid_t tid;

	/* A thread state that no thread runs yet has no ids; one that is being torn down may be listed twice. */
	if (!thread->thread_id)
		return 0;
	if (lane && is_same_thread(polled, lane, thread)) {
		lane->found = true;
		return 0;
	}
	tid = thread_ids__find(&polled->ids, &polled->process->target.remote, thread, &native);
	/* What noted its number once and has no thread (any more) is nobody's. */
	if (!tid && thread->native_thread_id)
		return 0;
	/* Without an id of its own it is looked at as what holds the GIL or does not. */
	if (lane && !tid && !lane->tid && lane->stack.thread.thread_id == thread->thread_id) {
		lane->found = true;
		return 0;
	}
	return add_lane(poller, polled, thread, tid);
}

/* Threads of the process that have no thread state: they take CPU time too. */
static int note_native_threads(const struct poller *poller, struct polled *polled)
{
	const struct proc_tasks *tasks = &polled->ids.tasks;
	int err = 0;

	for (size_t i = 0; !err && i < tasks->tids.len; i++) {
		const uint64_t *index = hmap__get(&polled->by_tid, tasks->tids.items[i]);

		if (index)
			polled->lanes.items[*index]->found = true;
		else
			err = add_lane(poller, polled, NULL, tasks->tids.items[i]);
	}
	return err;
}

/* `natives`: those without a thread state, too. */
static void drop_lost_lanes(struct polled *polled, bool natives)
{
	size_t kept = 0;

	for (size_t i = 0; i < polled->lanes.len; i++) {
		if (polled->lanes.items[i]->found || (!natives && !polled->lanes.items[i]->has_stack))
			polled->lanes.items[kept++] = polled->lanes.items[i];
		else
			poller_free_lane(polled, polled->lanes.items[i]);
	}
	polled->lanes.len = kept;
}

/* The lane with a thread state is the one that a thread id stands for. */
static int index_lanes(struct polled *polled)
{
	int err = 0;

	hmap__clear(&polled->by_tstate);
	hmap__clear(&polled->by_tid);
	polled->active.len = polled->waiting.len = 0;
	for (size_t i = 0; i < polled->lanes.len && !err; i++) {
		struct lane *lane = polled->lanes.items[i];
		const uint64_t *other = lane->tid ? hmap__get(&polled->by_tid, lane->tid) : NULL;

		lane->shares = false;
		if (other && lane->has_stack && polled->lanes.items[*other]->has_stack)
			lane->shares = polled->lanes.items[*other]->shares = true;
		if (lane->has_stack)
			err = hmap__set(&polled->by_tstate, lane->stack.thread.tstate, i);
		err = err ?: lane->waited < ACTIVE_LOOKS ? vec__push(&polled->active, lane)
							 : vec__push(&polled->waiting, lane);
		if (!err && lane->tid && (!other || (lane->has_stack && !lane->shares)))
			err = hmap__set(&polled->by_tid, lane->tid, i);
	}
	return err;
}

/* All thread states of all interpreters. Owned by the caller; NULL with *count < 0: -errno. */
static struct py_thread *list_threads(struct polled *polled, int *count)
{
	struct py_thread *threads = NULL;

	for (size_t max = 256; max <= THREADS_MAX; max *= 4) {
		struct py_thread *larger = realloc(threads, max * sizeof(*threads));

		*count = -ENOMEM;
		if (!larger)
			break;
		threads = larger;
		*count = py_target__threads(&polled->process->target, threads, max);
		if (*count < (int)max)
			break;
	}
	if (*count < 0) {
		free(threads);
		return NULL;
	}
	return threads;
}

static int note_threads(const struct poller *poller, struct polled *polled)
{
	int count = 0, err = 0;
	struct py_thread *threads = list_threads(polled, &count);

	if (count < 0)
		return count;
	err = thread_ids__read(&polled->ids, polled->process->pid, threads, count);
	for (int i = 0; i < count && !err; i++)
		err = note_thread(poller, polled, &threads[i]);
	free(threads);
	return err;
}

int poller_refresh(struct poller *poller, struct polled *polled, uint64_t now)
{
	int err;

	for (size_t i = 0; i < polled->lanes.len; i++)
		polled->lanes.items[i]->found = false;
	err = unwinder__find_interpreters(&polled->unwinder) ?: note_threads(poller, polled);
	if (err)
		return err;
	drop_lost_lanes(polled, false);
	/* Those without a thread state are found as what is left. */
	err = index_lanes(polled) ?: note_native_threads(poller, polled);
	drop_lost_lanes(polled, true);
	err = err ?: index_lanes(polled);
	if (poller->config.want_names)
		for (size_t i = 0; i < polled->lanes.len; i++)
			read_comm(polled, polled->lanes.items[i]);
	polled->refreshed_ns = now;
	polled->stale = false;
	return err;
}

/* -EBUSY: a profiler that uses the frame marker is at work there. */
int poller_check_markers(struct polled *polled)
{
	struct py_target *target = &polled->process->target;

	for (size_t i = 0; i < polled->lanes.len && polled->unwinder.use_marker; i++) {
		py_addr marker = 0;

		if (polled->lanes.items[i]->has_stack &&
		    !remote__read(&target->remote,
				  polled->lanes.items[i]->stack.thread.tstate +
					  target->offsets.thread_last_profiled,
				  &marker, sizeof(marker)) &&
		    marker)
			return -EBUSY;
	}
	return 0;
}
