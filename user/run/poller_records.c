/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See poller_parts.h. The records, as the kernel side makes them: a sample of each thread that was read, before
 * it its stack if that has not been sent yet, and that a process runs another program. Of a thread with several
 * thread states one of them speaks, with the frames of the others as its callers.
 */
#include "base/util.h"
#include "run/poller_parts.h"

#include <string.h>

#define SENT_MAX (1u << 18)

static void hand_over(struct poller *poller, const void *record, size_t size)
{
	poller->record(poller->context, record, size);
	poller->records++;
}

int poller_tell_exec(struct poller *poller, struct polled *polled, uint64_t now)
{
	struct pbp_process record = {.type = PBP_EXEC, .tgid = polled->process->pid, .time_ns = now};

	polled->gone = true;
	poller->news = true;
	hand_over(poller, &record, sizeof(record));
	return 0;
}

/* --- stacks --- */

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

static void add_frames(struct poller *poller, const struct thread_stack *stack, size_t first, size_t end)
{
	memcpy(poller->joined.items + poller->joined.len, stack->frames.items + first,
	       (end - first) * sizeof(*stack->frames.items));
	poller->joined.len += end - first;
}

static int add_joined(struct poller *poller, const struct thread_stack *stack)
{
	struct pbp_frame end = {.instr = stack->thread.interp_id, .flags = PBP_FRAME_INTERP};
	size_t called = min_u64(stack->collection, stack->frames.len); /* by the collection */
	int err = vec__reserve(&poller->joined, stack->frames.len + 2);

	if (err || !stack->frames.len)
		return err;
	add_frames(poller, stack, 0, called);
	if (stack->collection != SIZE_MAX)
		poller->joined.items[poller->joined.len++] = (struct pbp_frame){.flags = PBP_FRAME_GC};
	add_frames(poller, stack, called, stack->frames.len);
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
	bool truncated = stack->truncated;
	bool joins = lane->shares || stack->thread.interp_id || stack->collection != SIZE_MAX;
	int err = 0;

	if (joins) {
		poller->joined.len = 0;
		err = join_outer(poller, polled, lane, &truncated);
		frames = poller->joined.items;
		count = poller->joined.len;
	}
	if (!err && (joins || !stack->same || lane->epoch != process->epoch ||
		     lane->collection != stack->collection)) {
		lane->stack_id = stack_id(poller, process, frames, count, truncated);
		lane->epoch = process->epoch;
		lane->collection = stack->collection;
	}
	return err ?: send_stack(poller, process, frames, count, truncated, lane->stack_id);
}

/* --- samples --- */

uint64_t poller_told_until(const struct polled *polled, const struct lane *lane)
{
	uint64_t until_ns = lane->told_ns;

	for (size_t i = 0; i < polled->lanes.len && lane->shares; i++)
		if (polled->lanes.items[i]->tid == lane->tid)
			until_ns = max_u64(until_ns, polled->lanes.items[i]->told_ns);
	return until_ns;
}

/* Met at a tick: it stands for all the time since it was looked at last. Of what runs, for what it had no CPU
 * in. */
static void send_wait(struct poller *poller, const struct polled *polled, struct lane *lane,
		      const struct pbp_sample *sample)
{
	uint64_t since_ns = max_u64(poller_told_until(polled, lane), poller->start_ns);
	uint64_t whole_ns = sample->time_ns > since_ns ? sample->time_ns - since_ns : 0;
	uint64_t unpaid_ns = lane->unpaid * SECOND / poller->config.rate_hz;
	bool is_ready = lane->is_ready || !lane->off_cpu;
	struct pbp_wait wait = {.type = PBP_WAIT,
				.flags = PBP_WAIT_TICK | PBP_WAIT_CERTAIN |
					 (is_ready	    ? PBP_WAIT_READY
					  : polled->stopped ? PBP_WAIT_STOPPED
							    : 0),
				.out_ns = since_ns,
				.duration_ns = lane->off_cpu ? whole_ns : min_u64(unpaid_ns, whole_ns),
				.syscall = lane->probe.is_stat || lane->look.state == TASK_UNKNOWN
						   ? PBP_SYSCALL_UNKNOWN
						   : lane->look.syscall,
				.arg = lane->look.arg,
				.sample = *sample};

	wait.ready_ns = is_ready ? wait.duration_ns : 0;
	hand_over(poller, &wait, PBP_WAIT_SHORT);
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
	if ((lane->off_cpu || (lane->unpaid && poller->config.takes != POLLER_ON_CPU)) && !err)
		send_wait(poller, polled, lane, &sample);
	lane->told_ns = now;
	for (uint32_t i = 0; i < lane->weight && !lane->off_cpu && !err; i++)
		if (poller->config.takes != POLLER_OFF_CPU)
			hand_over(poller, &sample, PBP_SAMPLE_SHORT);
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

/* The time of what waits is told of the next time that it is read, if there is one. */
static void count_lost(const struct poller *poller, struct lane *lane, uint64_t now, uint64_t *count)
{
	if (lane->off_cpu && !poller->last && lane->stack.result != UNWIND_GONE)
		return;
	*count += lane->off_cpu ? 1 : lane->weight;
	lane->told_ns = now;
}

int poller_take_lane(struct poller *poller, struct polled *polled, struct lane *lane, uint64_t now)
{
	struct thread_stack *stack = &lane->stack;

	if (!lane->has_stack)
		return send_sample(poller, polled, lane, now, PBP_STATUS_NO_TSTATE);
	if (is_outer_state(poller, polled, lane))
		return 0;
	if (has_torn_outer(poller, polled, lane)) {
		count_lost(poller, lane, now, &poller->counts.torn);
		return 0;
	}
	if (lane->probe.fd < 0 && poller_is_free_threaded(polled) && !(stack->flags & PBP_SAMPLE_ATTACHED))
		return 0; /* waiting, as far as can be told */
	switch (stack->result) {
	case UNWIND_OK:
		poller->counts.moved += stack->moved ? lane->weight : 0;
		return send_sample(poller, polled, lane, now, PBP_STATUS_COMPLETE);
	case UNWIND_NO_FRAMES:
		return send_sample(poller, polled, lane, now, PBP_STATUS_NO_FRAMES);
	case UNWIND_TORN:
		count_lost(poller, lane, now, &poller->counts.torn);
		return 0;
	case UNWIND_GONE:
		count_lost(poller, lane, now, &poller->counts.ended);
		polled->stale = true;
		return 0;
	case UNWIND_UNREADABLE:
		count_lost(poller, lane, now, &poller->counts.unreadable);
		return 0;
	}
	return 0;
}
