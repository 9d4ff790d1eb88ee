/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See poller.h. One tick of one process: look which of its threads run, read their stacks in one call, and
 * then, if that call shows another thread holding the GIL than the ones that were read, read that one too.
 */
#include "run/poller.h"

#include "base/hmap.h"
#include "base/util.h"
#include "os/proc.h"
#include "os/stop.h"
#include "os/task.h"
#include "py/marker.h"
#include "py/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define SECOND	      1000000000ull
#define REFRESH_NS    (SECOND / 2)   /* lists of threads are read again after this at the latest */
#define REFRESH_LEAST (SECOND / 500) /* ... and not more often than this, however threads come and go */
#define YOUNG_NS	(SECOND / 10)	 /* within which a thread gets its thread state, if it is to have one */
#define SLEEP_MOST_NS (SECOND / 10)  /* between two looks for signals */
#define SPIN_RATE_HZ  25000	     /* from this on waits are spent waiting, for want of a better timer */
#define WAIT_LEAST_NS 5000	     /* shorter ones too */
#define ACTIVE_LOOKS  8		     /* looks in a row at a waiting thread before it is looked at by turns */
#define TURN_LOOKS    16	     /* threads looked at by turns in one tick */
#define THREADS_MAX   65536
#define NICE		(-10)
#define RECORD_NS	100 /* what the caller needs for each record: all of a run take it half a period at most */
#define BATCH_LEAST	12
#define SENT_MAX      (1u << 18)
#define CPU_CLOCK_NS  (SECOND / 250) /* another process's CPU clock moves with the kernel's tick ... */
#define CREDIT_NS     (SECOND / 50)  /* ... so its samples may run ahead of it by this much */

struct lane {
	struct thread_stack stack;
	bool has_stack; /* false: a thread without thread state */
	bool shares;	/* its thread has another thread state too */
	bool found;	/* in the last lists */
	bool looked_at;	/* whether it runs */
	pid_t tid;
	struct task_probe probe;
	struct stopped_task stopped;
	uint32_t waited;   /* looks in a row that found it waiting */
	uint64_t stack_id; /* of the stack that was read last, in this epoch */
	uint32_t epoch;
	uint64_t found_ns;    /* when it was found first */
	uint64_t chosen_slot; /* tick in which it was read last */
	uint32_t weight; /* ticks that a sample of this tick stands for */
	char comm[16];
};

struct polled {
	struct process *process;
	struct unwinder unwinder;
	VEC(struct lane *) lanes;
	struct hmap by_tstate, by_tid; /* -> index in lanes */
	struct hmap inner_ids;	       /* thread ids of the target's pid namespace -> ours */
	bool same_ids;
	uint64_t refreshed_ns;
	bool stale;	  /* threads have come or gone since */
	VEC(struct lane *) active, waiting; /* lanes that ran in one of the last looks, and the others */
	uint32_t running; /* threads found running in the last tick */
	bool gone;
	double credit; /* samples that its CPU time pays for */
	uint64_t cpu_ns, cpu_read_ns;
};

struct poller {
	struct poller_config config;
	VEC(struct polled *) processes;
	VEC(struct lane *) chosen; /* in this tick, of one process */
	VEC(struct thread_stack *) stacks;
	VEC(struct pbp_frame) joined; /* of thread states of one thread */
	struct hmap sent; /* stack ids */
	VEC(uint8_t) record_bytes;
	uint64_t start_ns, slot, due_ns;
	uint64_t random;
	uint64_t seed;
	struct poller_counts counts;
	struct unwind_stats past_unwind; /* of processes that were removed */
	poller_record_fn record;
	void *context;
	int records, batch; /* handed over in this run, and how many at most */
	bool news;
};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

int poller__open(struct poller **out, const struct poller_config *config)
{
	struct poller *poller = calloc(1, sizeof(*poller));

	if (!poller)
		return -ENOMEM;
	poller->config = *config;
	poller->seed = hmap_seed();
	poller->random = poller->seed | 1;
	poller->batch = max_u64(BATCH_LEAST, SECOND / config->rate_hz / 2 / RECORD_NS);
	task__raise_file_limit();
	/* Timers of a normal process may be late by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	/* On a busy machine it is late for its ticks otherwise. Only root may; others go without. */
	if (getpriority(PRIO_PROCESS, 0) > NICE)
		setpriority(PRIO_PROCESS, 0, NICE);
	if (config->frame_marker)
		marker__catch_crashes();
	*out = poller;
	return 0;
}

/* --- threads --- */

static void free_lane(struct polled *polled, struct lane *lane)
{
	thread_stack__unmark(&lane->stack, &polled->unwinder);
	stop__resume(&lane->stopped);
	thread_stack__free(&lane->stack);
	task_probe__close(&lane->probe);
	free(lane);
}

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

static void free_polled(struct poller *poller, struct polled *polled)
{
	struct unwind_stats stats = stats_of(polled);

	add_unwind_stats(&poller->past_unwind, &stats);
	for (size_t i = 0; i < polled->lanes.len; i++)
		free_lane(polled, polled->lanes.items[i]);
	vec__free(&polled->lanes);
	vec__free(&polled->active);
	vec__free(&polled->waiting);
	hmap__free(&polled->by_tstate);
	hmap__free(&polled->by_tid);
	hmap__free(&polled->inner_ids);
	unwinder__free(&polled->unwinder);
	free(polled);
}

static struct lane *find_lane(const struct polled *polled, py_addr tstate)
{
	const uint64_t *index = hmap__get(&polled->by_tstate, tstate);

	return index ? polled->lanes.items[*index] : NULL;
}

/* The thread's id as this process numbers it; 0 when it cannot be told. */
static pid_t outer_tid(const struct polled *polled, uint64_t native_id)
{
	const uint64_t *outer = polled->same_ids ? NULL : hmap__get(&polled->inner_ids, native_id);

	return polled->same_ids ? (pid_t)native_id : outer ? (pid_t)*outer : 0;
}

static int add_lane(struct polled *polled, const struct py_thread *thread, pid_t tid)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int err;

	if (!lane)
		return -ENOMEM;
	lane->probe.fd = -1;
	lane->tid = tid;
	lane->found = true;
	lane->found_ns = now_ns();
	if (thread) {
		lane->has_stack = true;
		thread_stack__init(&lane->stack, thread);
	}
	err = tid ? task_probe__open(&lane->probe, polled->process->pid, tid) : 0;
	if (err == -ESRCH || (err && !thread)) {
		free_lane(polled, lane);
		return 0; /* it has ended since */
	}
	err = vec__push(&polled->lanes, lane);
	if (err)
		free_lane(polled, lane);
	return err;
}

static bool has_task(const struct polled *polled, pid_t tid)
{
	struct task_probe probe;
	bool has = !task_probe__open(&probe, polled->process->pid, tid);

	task_probe__close(&probe);
	return has;
}

static bool is_same_thread(const struct lane *lane, const struct py_thread *thread, pid_t tid)
{
	const struct py_thread *known = &lane->stack.thread;

	return lane->has_stack && known->thread_id == thread->thread_id && known->interp == thread->interp &&
	       lane->tid == tid;
}

/* One thread state of the lists: known already, or new. */
static int note_thread(struct polled *polled, const struct py_thread *thread)
{
	struct lane *lane = find_lane(polled, thread->tstate);
	uint64_t native = thread->native_thread_id;
	bool guessed = !native;
	pid_t tid;

	/* A thread state that no thread runs yet has no ids; one that is being torn down may be listed twice. */
	if (!thread->thread_id)
		return 0;
	if (guessed)
		native = py_threads__native_id(&polled->process->target.remote, thread->thread_id);
	tid = outer_tid(polled, native);
	/* Without an id of its own it is looked at as what holds the GIL or does not. */
	if (guessed && tid && !has_task(polled, tid))
		tid = 0;
	if (lane && is_same_thread(lane, thread, tid)) {
		lane->found = true;
		return 0;
	}
	return add_lane(polled, thread, tid);
}

/* Threads of the process that have no thread state: they take CPU time too. */
static int note_native_threads(struct polled *polled)
{
	struct proc_tasks tasks;
	int err = proc__tasks(polled->process->pid, &tasks);

	for (size_t i = 0; !err && i < tasks.tids.len; i++) {
		const uint64_t *index = hmap__get(&polled->by_tid, tasks.tids.items[i]);

		if (index)
			polled->lanes.items[*index]->found = true;
		else
			err = add_lane(polled, NULL, tasks.tids.items[i]);
	}
	vec__free(&tasks.tids);
	return err;
}

static void drop_lost_lanes(struct polled *polled)
{
	size_t kept = 0;

	for (size_t i = 0; i < polled->lanes.len; i++) {
		if (polled->lanes.items[i]->found)
			polled->lanes.items[kept++] = polled->lanes.items[i];
		else
			free_lane(polled, polled->lanes.items[i]);
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

static void read_comm(struct polled *polled, struct lane *lane)
{
	char comm[64];

	memset(lane->comm, 0, sizeof(lane->comm));
	if (lane->tid && !proc__task_comm(polled->process->pid, lane->tid, comm, sizeof(comm)))
		memcpy(lane->comm, comm, strnlen(comm, sizeof(lane->comm)));
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

static int note_threads(struct polled *polled)
{
	int count = 0, err = 0;
	struct py_thread *threads = list_threads(polled, &count);

	if (count < 0)
		return count;
	for (int i = 0; i < count && !err; i++)
		err = note_thread(polled, &threads[i]);
	free(threads);
	return err;
}

static int refresh(struct poller *poller, struct polled *polled, uint64_t now)
{
	int err;

	for (size_t i = 0; i < polled->lanes.len; i++)
		polled->lanes.items[i]->found = false;
	err = unwinder__find_interpreters(&polled->unwinder) ?:
	      task__map_ids(polled->process->pid, &polled->inner_ids, &polled->same_ids) ?:
	      note_threads(polled);
	if (err)
		return err;
	drop_lost_lanes(polled);
	/* Those without a thread state are found as what is left. */
	err = index_lanes(polled) ?: note_native_threads(polled);
	drop_lost_lanes(polled);
	err = err ?: index_lanes(polled);
	if (poller->config.want_names)
		for (size_t i = 0; i < polled->lanes.len; i++)
			read_comm(polled, polled->lanes.items[i]);
	polled->refreshed_ns = now;
	polled->stale = false;
	return err;
}

/* -EBUSY: a profiler that uses the frame marker is at work there. */
static int check_markers(struct polled *polled)
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

int poller__add(struct poller *poller, struct process *process)
{
	struct polled *polled;
	int err;

	poller__remove(poller, process);
	polled = calloc(1, sizeof(*polled));
	if (!polled)
		return -ENOMEM;
	polled->process = process;
	err = unwinder__init(&polled->unwinder, &process->target);
	polled->unwinder.use_marker =
		poller->config.frame_marker && process->target.offsets.thread_last_profiled != PY_ABSENT;
	err = err ?: refresh(poller, polled, now_ns()) ?: check_markers(polled) ?: vec__push(&poller->processes, polled);
	if (err)
		free_polled(poller, polled);
	return err;
}

void poller__remove(struct poller *poller, const struct process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < poller->processes.len; i++) {
		struct polled *polled = poller->processes.items[i];

		if (polled->process == process)
			free_polled(poller, polled);
		else
			poller->processes.items[kept++] = polled;
	}
	poller->processes.len = kept;
}

void poller__close(struct poller *poller)
{
	if (!poller)
		return;
	while (poller->processes.len)
		free_polled(poller, poller->processes.items[--poller->processes.len]);
	vec__free(&poller->processes);
	vec__free(&poller->chosen);
	vec__free(&poller->stacks);
	vec__free(&poller->joined);
	vec__free(&poller->record_bytes);
	hmap__free(&poller->sent);
	free(poller);
}

/* --- records --- */

static void hand_over(struct poller *poller, const void *record, size_t size)
{
	poller->record(poller->context, record, size);
	poller->records++;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ hmap_mix(value)) * 0x9e3779b97f4a7c15ull;
}

/* As the kernel side does it: over all frames but the leaf's instruction. */
static uint64_t stack_id(const struct poller *poller, const struct process *process,
			 const struct pbp_frame *frames, size_t count, bool truncated)
{
	uint64_t hash = mix(poller->seed, (uint64_t)process->epoch << 32 | (uint32_t)process->pid);

	for (size_t i = 0; i < count; i++) {
		hash = mix(hash, frames[i].code ^ (uint64_t)frames[i].flags << 56);
		hash = mix(hash, (i ? frames[i].instr : 0) ^ (uint64_t)frames[i].ident << 32);
	}
	return mix(hash, count << 1 | truncated) | 1;
}

static int send_stack(struct poller *poller, const struct process *process, const struct pbp_frame *frames,
		      size_t count, bool truncated, uint64_t id)
{
	size_t bytes = count * sizeof(*frames);
	struct pbp_stack *record;
	int err;

	if (hmap__get(&poller->sent, id))
		return 0;
	if (poller->sent.len >= SENT_MAX)
		hmap__clear(&poller->sent); /* a stack that is sent twice is taken once */
	poller->record_bytes.len = 0;
	err = vec__reserve(&poller->record_bytes, sizeof(*record) + bytes)
		      ?: hmap__set(&poller->sent, id, 1);
	if (err)
		return err;
	record = (struct pbp_stack *)poller->record_bytes.items;
	*record = (struct pbp_stack){.type = PBP_STACK,
				     .tgid = process->pid,
				     .id = id,
				     .count = count,
				     .flags = truncated ? PBP_STACK_TRUNCATED : 0};
	memcpy(record + 1, frames, bytes);
	((struct pbp_frame *)(record + 1))->instr = 0;
	hand_over(poller, record, sizeof(*record) + bytes);
	poller->news = true;
	return 0;
}

static int add_joined(struct poller *poller, const struct thread_stack *stack)
{
	struct pbp_frame end = {.instr = stack->thread.interp_id, .flags = PBP_FRAME_INTERP};
	int err = vec__reserve(&poller->joined, stack->frames.len + 1);

	if (err || !stack->frames.len)
		return err;
	memcpy(poller->joined.items + poller->joined.len, stack->frames.items,
	       stack->frames.len * sizeof(*stack->frames.items));
	poller->joined.len += stack->frames.len;
	return stack->thread.interp_id ? vec__push(&poller->joined, end) : 0;
}

/* The thread's thread state of the newest interpreter below this id. NULL: there is none. */
static struct lane *outer_lane(const struct polled *polled, const struct lane *lane, int64_t below)
{
	struct lane *found = NULL;

	for (size_t i = 0; i < polled->lanes.len; i++) {
		struct lane *other = polled->lanes.items[i];
		int64_t id = other->stack.thread.interp_id;

		if (other != lane && other->tid == lane->tid && other->has_stack && id < below &&
		    (!found || id > found->stack.thread.interp_id))
			found = other;
	}
	return found;
}

/*
 * A thread that runs an interpreter other than the main one has been called from another, where it has
 * frames, too: they are its callers.
 */
static int join_outer(struct poller *poller, const struct polled *polled, const struct lane *lane,
		      bool *truncated)
{
	const struct lane *outer = lane;
	int err = add_joined(poller, &lane->stack);

	*truncated = lane->stack.truncated;
	for (int64_t below = INT64_MAX; !err && lane->shares; below = outer->stack.thread.interp_id) {
		outer = outer_lane(polled, lane, below);
		if (!outer)
			break;
		if (outer->chosen_slot != poller->slot || outer->stack.result != UNWIND_OK)
			continue;
		err = add_joined(poller, &outer->stack);
		*truncated |= outer->stack.truncated;
	}
	return err;
}

/* The frames of a sample, unless they have been sent; lane->stack_id stands for them. */
static int send_frames(struct poller *poller, const struct polled *polled, struct lane *lane)
{
	const struct process *process = polled->process;
	const struct thread_stack *stack = &lane->stack;
	const struct pbp_frame *frames = stack->frames.items;
	size_t count = stack->frames.len;
	bool truncated = stack->truncated, joins = lane->shares || stack->thread.interp_id;
	int err = 0;

	if (joins) {
		poller->joined.len = 0;
		err = join_outer(poller, polled, lane, &truncated);
		frames = poller->joined.items;
		count = poller->joined.len;
	}
	if (!err && (joins || !stack->same || lane->epoch != process->epoch)) {
		lane->stack_id = stack_id(poller, process, frames, count, truncated);
		lane->epoch = process->epoch;
	}
	return err ?: send_stack(poller, process, frames, count, truncated, lane->stack_id);
}

static int send_sample(struct poller *poller, const struct polled *polled, struct lane *lane, uint64_t now,
		       enum pbp_status status)
{
	const struct thread_stack *stack = &lane->stack;
	struct pbp_sample sample = {.type = PBP_SAMPLE,
				    .tgid = polled->process->pid,
				    .tid = lane->tid,
				    .status = status,
				    .time_ns = now};
	int err = 0;

	memcpy(sample.comm, lane->comm, sizeof(sample.comm));
	if (lane->has_stack) {
		sample.tstate = stack->thread.tstate;
		sample.flags = stack->flags;
		sample.generation = stack->generation;
	}
	if (status == PBP_STATUS_COMPLETE) {
		err = send_frames(poller, polled, lane);
		sample.stack_id = lane->stack_id;
		sample.leaf_instr = stack->frames.items[0].instr;
	}
	for (uint32_t i = 0; i < lane->weight && !err; i++)
		hand_over(poller, &sample, PBP_SAMPLE_SHORT);
	poller->counts.by_turns += lane->weight > 1 ? lane->weight : 0;
	return err;
}

/*
 * Does another thread state of the same thread speak for it? The one that is attached; if none is, the one
 * of the newest interpreter that has frames.
 */
static bool is_outer_state(const struct poller *poller, const struct polled *polled, const struct lane *lane)
{
	bool attached = lane->stack.flags & PBP_SAMPLE_ATTACHED;

	for (size_t i = 0; i < polled->lanes.len && lane->shares && !attached; i++) {
		const struct lane *other = polled->lanes.items[i];

		if (other == lane || other->tid != lane->tid || !other->has_stack ||
		    other->chosen_slot != poller->slot)
			continue;
		if (other->stack.flags & PBP_SAMPLE_ATTACHED ||
		    (other->stack.result != UNWIND_NO_FRAMES &&
		     (lane->stack.result == UNWIND_NO_FRAMES ||
		      other->stack.thread.interp_id > lane->stack.thread.interp_id)))
			return true;
	}
	return false;
}

/* ... and is one of those that it was called from not known for this instant? */
static bool has_torn_outer(const struct poller *poller, const struct polled *polled, const struct lane *lane)
{
	for (size_t i = 0; i < polled->lanes.len && lane->shares; i++) {
		const struct lane *other = polled->lanes.items[i];

		if (other != lane && other->tid == lane->tid && other->has_stack &&
		    other->chosen_slot == poller->slot &&
		    (other->stack.result == UNWIND_TORN || other->stack.flags & PBP_SAMPLE_ATTACHED))
			return true;
	}
	return false;
}

static bool is_free_threaded(const struct polled *polled)
{
	return polled->process->target.offsets.free_threaded;
}

static int take_lane(struct poller *poller, struct polled *polled, struct lane *lane, uint64_t now)
{
	struct thread_stack *stack = &lane->stack;

	if (!lane->has_stack)
		return send_sample(poller, polled, lane, now, PBP_STATUS_NO_TSTATE);
	if (is_outer_state(poller, polled, lane))
		return 0;
	if (has_torn_outer(poller, polled, lane)) {
		poller->counts.torn += lane->weight;
		return 0;
	}
	if (lane->probe.fd < 0 && is_free_threaded(polled) && !(stack->flags & PBP_SAMPLE_ATTACHED))
		return 0; /* waiting, as far as can be told */
	switch (stack->result) {
	case UNWIND_OK:
		poller->counts.moved += stack->moved ? lane->weight : 0;
		return send_sample(poller, polled, lane, now, PBP_STATUS_COMPLETE);
	case UNWIND_NO_FRAMES:
		return send_sample(poller, polled, lane, now, PBP_STATUS_NO_FRAMES);
	case UNWIND_TORN:
		poller->counts.torn += lane->weight;
		return 0;
	case UNWIND_GONE:
		poller->counts.ended += lane->weight;
		polled->stale = true;
		return 0;
	case UNWIND_UNREADABLE:
		poller->counts.unreadable += lane->weight;
		return 0;
	}
	return 0;
}

/* --- a tick --- */

static uint64_t next_random(struct poller *poller)
{
	poller->random ^= poller->random << 13;
	poller->random ^= poller->random >> 7;
	poller->random ^= poller->random << 17;
	return poller->random * 0x2545f4914f6cdd1dull;
}

/*
 * Does it run? Threads that no file could be opened for are taken for waiting unless they hold the GIL; where there
 * is none, those that are attached are taken for running (take_lane).
 */
static bool is_running(struct polled *polled, struct lane *lane, bool holds_gil)
{
	struct task_look look = task_probe__look(&lane->probe);

	lane->looked_at = true;
	if (look.state == TASK_GONE) {
		polled->stale = true;
		return false;
	}
	if (look.state == TASK_UNKNOWN)
		return holds_gil || (lane->has_stack && is_free_threaded(polled));
	if (look.state == TASK_RUNNING)
		lane->waited = 0;
	else if (lane->waited < ACTIVE_LOOKS)
		lane->waited++;
	return look.state == TASK_RUNNING;
}

static int choose(struct poller *poller, struct lane *lane, uint32_t weight)
{
	lane->weight = weight;
	lane->chosen_slot = poller->slot;
	return vec__push(&poller->chosen, lane);
}

/* Those that ran lately; the ones that have not for a while join the others. */
static int choose_active(struct poller *poller, struct polled *polled)
{
	size_t kept = 0, count = polled->active.len;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct lane *lane = polled->active.items[i];

		if (is_running(polled, lane, false))
			err = choose(poller, lane, 1);
		if (lane->waited < ACTIVE_LOOKS)
			polled->active.items[kept++] = lane;
		else
			err = err ?: vec__push(&polled->waiting, lane);
	}
	polled->active.len = kept;
	return err;
}

/*
 * Of the others, every one whose number leaves a certain rest, which is drawn anew for each tick: so each is
 * looked at in one of so many ticks, and stands for as many if it is found running.
 */
static int choose_by_turns(struct poller *poller, struct polled *polled)
{
	size_t ticks = (polled->waiting.len + TURN_LOOKS - 1) / TURN_LOOKS;
	int err = 0;

	for (size_t i = ticks > 1 ? next_random(poller) % ticks : 0; i < polled->waiting.len && !err; i += ticks) {
		struct lane *lane = polled->waiting.items[i];

		if (lane->chosen_slot != poller->slot && is_running(polled, lane, false))
			err = choose(poller, lane, ticks);
	}
	return err;
}

/* What was found running in this tick is looked at in the next one. */
static int activate_chosen(struct poller *poller, struct polled *polled)
{
	int err = 0;

	for (size_t i = polled->waiting.len; i-- > 0 && poller->chosen.len && !err;) {
		struct lane *lane = polled->waiting.items[i];

		if (lane->waited)
			continue;
		polled->waiting.items[i] = polled->waiting.items[--polled->waiting.len];
		err = vec__push(&polled->active, lane);
	}
	return err;
}

/*
 * A thread that waits for a CPU looks as one that runs. So a process gets no more samples than its CPU time
 * is worth.
 */
static void update_credit(struct poller *poller, struct polled *polled, uint64_t now)
{
	double most = (double)CREDIT_NS * poller->config.rate_hz / SECOND + 2;
	uint64_t cpu_ns;

	if (now - polled->cpu_read_ns < CPU_CLOCK_NS || proc__cpu_ns(polled->process->pid, &cpu_ns))
		return;
	if (polled->cpu_read_ns)
		polled->credit += (double)(cpu_ns - polled->cpu_ns) * poller->config.rate_hz / SECOND;
	else
		polled->credit = most;
	/* What was not sampled when it was due is not made up for later. */
	if (polled->credit > 2 * most)
		polled->credit = 2 * most;
	polled->cpu_ns = cpu_ns;
	polled->cpu_read_ns = now;
}

/* Thread states of one thread run as one. */
static bool is_paid_for(const struct poller *poller, size_t count, const struct lane *lane)
{
	for (size_t i = 0; i < count && lane->shares; i++)
		if (poller->chosen.items[i]->tid == lane->tid)
			return true;
	return false;
}

/*
 * Leaves out what the CPU time does not pay for, whichever: where more threads are ready to run than there are CPUs
 * for, none is to come before the others. False: that is all that there was.
 */
static bool spend_credit(struct poller *poller, struct polled *polled)
{
	size_t kept = 0, count = poller->chosen.len;

	for (size_t i = 0; i < count; i++) {
		size_t drawn = i + next_random(poller) % (count - i);
		struct lane *lane = poller->chosen.items[drawn];

		poller->chosen.items[drawn] = poller->chosen.items[i];
		if (!is_paid_for(poller, kept, lane)) {
			if (polled->credit < lane->weight) {
				poller->counts.waiting += lane->weight;
				continue;
			}
			polled->credit -= lane->weight;
		}
		poller->chosen.items[kept++] = lane;
	}
	poller->chosen.len = kept;
	return kept || !count;
}

/* For --blocking. One that cannot be stopped is read as it runs. */
static void stop_chosen(struct poller *poller)
{
	for (size_t i = 0; i < poller->chosen.len && poller->config.blocking; i++) {
		struct lane *lane = poller->chosen.items[i];

		/* Told to stop in an earlier tick, and has not yet. */
		if (!lane->has_stack || !stop__resume(&lane->stopped))
			continue;
		if (stop__task(&lane->stopped, lane->tid))
			poller->counts.not_stopped += lane->weight;
		lane->stack.still = lane->stopped.state == STOP_DONE;
	}
}

static void resume_chosen(struct poller *poller)
{
	for (size_t i = 0; i < poller->chosen.len && poller->config.blocking; i++)
		stop__resume(&poller->chosen.items[i]->stopped);
}

/* Threads that stopped only after they were given up. */
static void resume_late(struct poller *poller, struct polled *polled)
{
	for (size_t i = 0; i < polled->lanes.len && poller->config.blocking; i++)
		if (polled->lanes.items[i]->stopped.state != STOP_NONE)
			stop__resume(&polled->lanes.items[i]->stopped);
}

static bool is_young(const struct lane *lane, uint64_t now)
{
	return !lane->has_stack && now - lane->found_ns < YOUNG_NS;
}

/* No stack is read twice at once. */
static bool is_chosen(const struct poller *poller, const struct lane *lane)
{
	for (size_t i = 0; i < poller->chosen.len; i++)
		if (poller->chosen.items[i] == lane)
			return true;
	return false;
}

/* A thread that had no thread state when it was found may have got one since: look again before it is sampled. */
static int look_again_at_young(struct poller *poller, struct polled *polled, uint64_t now)
{
	VEC(struct lane) chosen = {0};
	bool young = false;
	int err = 0;

	for (size_t i = 0; i < poller->chosen.len; i++)
		young |= is_young(poller->chosen.items[i], now);
	if (!young || now - polled->refreshed_ns < REFRESH_LEAST)
		return 0;
	for (size_t i = 0; i < poller->chosen.len && !err; i++)
		err = vec__push(&chosen, *poller->chosen.items[i]); /* only tid, weight and the thread state are used */
	err = err ?: refresh(poller, polled, now);
	poller->chosen.len = 0;
	for (size_t i = 0; i < chosen.len && !err; i++) {
		const struct lane *then = &chosen.items[i];
		const uint64_t *index = then->tid ? hmap__get(&polled->by_tid, then->tid) : NULL;
		struct lane *lane = then->has_stack ? find_lane(polled, then->stack.thread.tstate) : NULL;

		if (!lane && index)
			lane = polled->lanes.items[*index];
		if (lane && !is_chosen(poller, lane))
			err = choose(poller, lane, then->weight);
	}
	vec__free(&chosen);
	return err;
}

/* Thread states of one thread are read together. */
static int choose_shared(struct poller *poller, struct polled *polled)
{
	size_t count = poller->chosen.len;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		const struct lane *lane = poller->chosen.items[i];

		for (size_t j = 0; j < polled->lanes.len && lane->shares && !err; j++) {
			struct lane *other = polled->lanes.items[j];

			if (other->tid == lane->tid && other->has_stack && other->chosen_slot != poller->slot)
				err = choose(poller, other, lane->weight);
		}
	}
	return err;
}

static int read_chosen(struct poller *poller, struct polled *polled, uint64_t now)
{
	int err = choose_shared(poller, polled);

	poller->stacks.len = 0;
	for (size_t i = 0; i < poller->chosen.len && !err; i++)
		if (poller->chosen.items[i]->has_stack)
			err = vec__push(&poller->stacks, &poller->chosen.items[i]->stack);
	stop_chosen(poller);
	err = err ?: unwinder__read(&polled->unwinder, poller->stacks.items, poller->stacks.len);
	resume_chosen(poller);
	for (size_t i = 0; i < poller->chosen.len && !err; i++)
		err = take_lane(poller, polled, poller->chosen.items[i], now);
	return err;
}

static bool has_attached(const struct poller *poller)
{
	for (size_t i = 0; i < poller->stacks.len; i++)
		if (poller->stacks.items[i]->result != UNWIND_GONE &&
		    poller->stacks.items[i]->flags & PBP_SAMPLE_ATTACHED)
			return true;
	return false;
}

/* Threads that hold a GIL but were not among those that were read. */
static int choose_holders(struct poller *poller, struct polled *polled)
{
	int err = 0;

	poller->chosen.len = 0;
	for (size_t i = 0; i < polled->unwinder.gils.len && !err; i++) {
		py_addr holder = polled->unwinder.gils.items[i].holder;
		struct lane *lane = holder ? find_lane(polled, holder) : NULL;

		polled->stale |= holder && !lane;
		if (!lane || lane->chosen_slot == poller->slot)
			continue;
		if (is_running(polled, lane, true))
			err = choose(poller, lane, 1);
	}
	return err;
}

/* Without a GIL: threads that were not known when the others were looked at. */
static int choose_new(struct poller *poller, struct polled *polled)
{
	int err = 0;

	for (size_t i = 0; i < polled->active.len && is_free_threaded(polled) && !err; i++) {
		struct lane *lane = polled->active.items[i];

		if (!lane->looked_at && is_running(polled, lane, false))
			err = choose(poller, lane, 1);
	}
	return err;
}

/* Lists of threads whose first one is not the one that was first. */
static void notice_new_threads(struct polled *polled)
{
	for (size_t i = 0; i < polled->unwinder.interps.len && !polled->stale; i++) {
		const struct unwind_interp *interp = &polled->unwinder.interps.items[i];

		polled->stale = interp->readable && interp->threads_head &&
				!hmap__get(&polled->by_tstate, interp->threads_head);
	}
}

static int tell_exec(struct poller *poller, struct polled *polled, uint64_t now)
{
	struct pbp_process record = {.type = PBP_EXEC, .tgid = polled->process->pid, .time_ns = now};

	polled->gone = true;
	poller->news = true;
	hand_over(poller, &record, sizeof(record));
	return 0;
}

/* Where nobody that was read is attached, somebody else may hold the GIL. */
static int find_holders(struct poller *poller, struct polled *polled)
{
	int err = 0;

	if (!polled->unwinder.want_gils && polled->unwinder.gils.len && !has_attached(poller)) {
		polled->unwinder.want_gils = true;
		err = unwinder__read(&polled->unwinder, NULL, 0);
	}
	polled->unwinder.want_gils = !has_attached(poller) || polled->unwinder.gils.len > 1;
	notice_new_threads(polled);
	return err;
}

static bool is_due(const struct polled *polled, uint64_t now)
{
	uint64_t age = now - polled->refreshed_ns;

	return age > REFRESH_NS || (polled->stale && age > REFRESH_LEAST);
}

static int tick_process(struct poller *poller, struct polled *polled, uint64_t now)
{
	int err = 0;

	if (is_due(polled, now)) {
		if (!py_target__is_alive(&polled->process->target))
			return tell_exec(poller, polled, now);
		err = refresh(poller, polled, now);
	}
	update_credit(poller, polled, now);
	resume_late(poller, polled);
	poller->chosen.len = 0;
	err = err ?: choose_active(poller, polled) ?: choose_by_turns(poller, polled)
						   ?: look_again_at_young(poller, polled, now);
	polled->running = poller->chosen.len;
	if (!err && !spend_credit(poller, polled))
		return 0; /* they only wait for a CPU, all of them */
	err = err ?: activate_chosen(poller, polled) ?: read_chosen(poller, polled, now)
						     ?: find_holders(poller, polled);
	err = err ?: choose_holders(poller, polled);
	/* One that started since the last tick, perhaps with the thread state of one that has ended. */
	if (!err && polled->stale && is_due(polled, now)) {
		polled->unwinder.want_gils = true;
		err = refresh(poller, polled, now) ?: unwinder__read(&polled->unwinder, NULL, 0)
						   ?: choose_holders(poller, polled)
						   ?: choose_new(poller, polled);
	}
	polled->running += poller->chosen.len;
	err = err ?: activate_chosen(poller, polled);
	err = err ?: look_again_at_young(poller, polled, now);
	if (!err && poller->chosen.len && spend_credit(poller, polled))
		err = read_chosen(poller, polled, now);
	return err;
}

static int tick(struct poller *poller, uint64_t now)
{
	int err = 0;

	for (size_t i = 0; i < poller->processes.len && !err; i++) {
		struct polled *polled = poller->processes.items[i];

		if (polled->gone)
			continue;
		err = tick_process(poller, polled, now);
		if (err != -ESRCH)
			continue;
		/* Its end is told by its pidfd. */
		polled->gone = true;
		poller->news = true;
		err = 0;
	}
	return err;
}

/* --- the timer --- */

static uint64_t slot_start(const struct poller *poller, uint64_t slot)
{
	return poller->start_ns + (uint64_t)((unsigned __int128)slot * SECOND / poller->config.rate_hz);
}

static void next_slot(struct poller *poller)
{
	uint64_t start = slot_start(poller, poller->slot),
		 period = slot_start(poller, poller->slot + 1) - start;

	poller->due_ns = start + (period ? next_random(poller) % period : 0);
}

/* A tick that is late by a period or more was missed, by every thread that was running then. */
static void skip_missed(struct poller *poller, uint64_t now)
{
	uint64_t slots = (unsigned __int128)(now - poller->due_ns) * poller->config.rate_hz / SECOND;

	if (!slots)
		return;
	for (size_t i = 0; i < poller->processes.len; i++) {
		struct polled *polled = poller->processes.items[i];
		uint64_t missed = slots * polled->running, paid;

		update_credit(poller, polled, now);
		paid = min_u64(missed, polled->credit > 0 ? polled->credit : 0);
		polled->credit -= paid;
		poller->counts.missed += paid;
		poller->counts.waiting += missed - paid;
	}
	poller->slot += slots;
}

/* False: a signal came. */
static bool sleep_until(uint64_t when)
{
	struct timespec time = {.tv_sec = when / SECOND, .tv_nsec = when % SECOND};

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != EINTR;
}

int poller__run(struct poller *poller, uint64_t until_ns, poller_record_fn record, void *context)
{
	uint64_t now = now_ns();
	int err = 0;

	poller->record = record;
	poller->context = context;
	poller->records = 0;
	poller->news = false;
	if (!poller->start_ns) {
		poller->start_ns = now;
		next_slot(poller);
	}
	while (!err && !poller->news && now < until_ns && poller->records < poller->batch) {
		uint64_t wake = min_u64(poller->due_ns, until_ns);

		if (now < wake) {
			wake = min_u64(wake, now + SLEEP_MOST_NS);
			if (poller->config.rate_hz < SPIN_RATE_HZ && wake - now > WAIT_LEAST_NS &&
			    !sleep_until(wake))
				break;
			now = now_ns();
			continue;
		}
		skip_missed(poller, now);
		err = poller->config.empty ? 0 : tick(poller, now);
		poller->slot++;
		next_slot(poller);
		now = now_ns();
	}
	return err ?: poller->records;
}

void poller__send_again(struct poller *poller, uint64_t stack_id)
{
	hmap__del(&poller->sent, stack_id);
}

struct poller_counts poller__counts(const struct poller *poller)
{
	return poller->counts;
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
