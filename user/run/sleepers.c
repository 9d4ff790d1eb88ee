/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See sleepers.h. One thread may have several thread states, one for each interpreter that it has entered:
 * they are joined as the kernel side joins them, the newest interpreter's frames first.
 */
#include "run/sleepers.h"

#include "base/hmap.h"
#include "base/util.h"
#include "py/unwind.h"
#include "run/thread_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 65536
#define BATCH	    16 /* stacks read at once */

struct state {
	size_t sleeper; /* whose */
	struct py_thread thread;
};

struct reading {
	struct sleepers *sleepers;
	struct process *process;
	struct symbolizer *symbolizer;
	struct unwinder unwinder;
	struct thread_ids ids;
	bool all_known; /* every thread state's thread could be told */
	VEC(struct state) states;
	VEC(uint8_t) record; /* struct pbp_stack */
};

static struct sleeper *find_sleeper(const struct sleepers *sleepers, pid_t tid)
{
	size_t first = 0, end = sleepers->items.len;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (sleepers->items.items[middle].tid == tid)
			return &sleepers->items.items[middle];
		if (sleepers->items.items[middle].tid < tid)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

/* --- whose thread states --- */

static int by_sleeper(const void *left, const void *right)
{
	const struct state *a = left, *b = right;

	if (a->sleeper != b->sleeper)
		return a->sleeper < b->sleeper ? -1 : 1;
	return (b->thread.interp_id > a->thread.interp_id) - (b->thread.interp_id < a->thread.interp_id);
}

static int note_state(struct reading *reading, const struct py_thread *thread)
{
	uint64_t native_id;
	pid_t tid = thread->thread_id ? thread_ids__find(&reading->ids, &reading->process->target.remote,
							 thread, &native_id)
				      : 0;
	struct sleeper *sleeper = tid ? find_sleeper(reading->sleepers, tid) : NULL;
	struct state state = {.thread = *thread};

	reading->all_known &= tid || !thread->thread_id;
	if (!sleeper)
		return 0;
	state.sleeper = sleeper - reading->sleepers->items.items;
	return vec__push(&reading->states, state);
}

static int find_states(struct reading *reading)
{
	struct py_thread *threads = calloc(THREADS_MAX, sizeof(*threads));
	int count = threads ? py_target__threads(&reading->process->target, threads, THREADS_MAX) : -ENOMEM;
	int err = count < 0 ? count : thread_ids__read(&reading->ids, reading->process->pid, threads, count);

	reading->all_known = true;
	for (int i = 0; i < count && !err; i++)
		err = note_state(reading, &threads[i]);
	free(threads);
	if (reading->states.len)
		qsort(reading->states.items, reading->states.len, sizeof(struct state), by_sleeper);
	return err;
}

/* --- what was read --- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ hmap_mix(value)) * 0x9e3779b97f4a7c15ull;
}

static uint64_t stack_id(const struct process *process, const struct pbp_frame *frames, size_t count)
{
	uint64_t hash = mix(hmap_seed(), (uint64_t)process->epoch << 32 | (uint32_t)process->pid);

	for (size_t i = 0; i < count; i++) {
		hash = mix(hash, frames[i].code ^ (uint64_t)frames[i].flags << 56);
		hash = mix(hash, frames[i].instr ^ (uint64_t)frames[i].ident << 32);
	}
	return mix(hash, count) | 1;
}

static int add_frames(struct reading *reading, const struct pbp_frame *frames, size_t count)
{
	size_t bytes = count * sizeof(*frames);
	int err = vec__reserve(&reading->record, bytes);

	if (err)
		return err;
	memcpy(reading->record.items + reading->record.len, frames, bytes);
	reading->record.len += bytes;
	return 0;
}

static int begin_record(struct reading *reading)
{
	struct pbp_stack head = {.type = PBP_STACK, .tgid = reading->process->pid};
	int err;

	reading->record.len = 0;
	err = vec__reserve(&reading->record, sizeof(head));
	if (err)
		return err;
	memcpy(reading->record.items, &head, sizeof(head));
	reading->record.len = sizeof(head);
	return 0;
}

static int hand_over(struct reading *reading, struct pbp_sample *sample)
{
	struct pbp_stack *head = (struct pbp_stack *)reading->record.items;
	struct pbp_frame *frames = (struct pbp_frame *)(head + 1);

	head->count = (reading->record.len - sizeof(*head)) / sizeof(*frames);
	if (!head->count) {
		sample->status = PBP_STATUS_NO_FRAMES;
		return 0;
	}
	sample->leaf_instr = frames[0].instr;
	frames[0].instr = 0;
	head->id = sample->stack_id = stack_id(reading->process, frames, head->count);
	sample->status = PBP_STATUS_COMPLETE;
	return symbolizer__take(reading->symbolizer, head, reading->record.len);
}

/* All thread states of one thread, as they were read. */
static int take_thread(struct reading *reading, const struct thread_stack *stacks, size_t count,
		       struct pbp_sample *sample)
{
	int err = begin_record(reading);

	sample->tstate = stacks[0].thread.tstate;
	sample->generation = stacks[0].generation;
	sample->flags |= stacks[0].flags;
	for (size_t i = 0; i < count && !err; i++) {
		struct pbp_frame end = {.instr = stacks[i].thread.interp_id, .flags = PBP_FRAME_INTERP};
		struct pbp_frame collection = {.flags = PBP_FRAME_GC};
		size_t called = min_u64(stacks[i].collection, stacks[i].frames.len); /* by the collection */

		if (stacks[i].result == UNWIND_NO_FRAMES)
			continue;
		if (stacks[i].result != UNWIND_OK)
			return 0; /* as it was found: not walked */
		err = add_frames(reading, stacks[i].frames.items, called);
		if (!err && stacks[i].collection != SIZE_MAX)
			err = add_frames(reading, &collection, 1);
		err = err
			      ?: add_frames(reading, stacks[i].frames.items + called,
					    stacks[i].frames.len - called);
		if (!err && stacks[i].thread.interp_id)
			err = add_frames(reading, &end, 1);
		if (stacks[i].truncated && !err)
			((struct pbp_stack *)reading->record.items)->flags |= PBP_STACK_TRUNCATED;
	}
	return err ?: hand_over(reading, sample);
}

/* --- reading --- */

/* Thread states from `first` on: as many as are read at once, and all of the last one's thread. */
static size_t batch_end(const struct reading *reading, size_t first)
{
	size_t end = first + BATCH;

	while (end < reading->states.len &&
	       reading->states.items[end].sleeper == reading->states.items[end - 1].sleeper)
		end++;
	return end < reading->states.len ? end : reading->states.len;
}

static int take_batch(struct reading *reading, const struct thread_stack *stacks, size_t first, size_t end)
{
	int err = 0;

	for (size_t i = first, next; i < end && !err; i = next) {
		size_t sleeper = reading->states.items[i].sleeper;

		for (next = i + 1; next < end && reading->states.items[next].sleeper == sleeper;)
			next++;
		err = take_thread(reading, stacks + i - first, next - i,
				  &reading->sleepers->items.items[sleeper].sample);
	}
	return err;
}

static int read_batch(struct reading *reading, size_t first, size_t end)
{
	size_t count = end - first;
	struct thread_stack *stacks = calloc(count, sizeof(*stacks));
	struct thread_stack **pointers = calloc(count, sizeof(*pointers));
	int err = stacks && pointers ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++) {
		thread_stack__init(&stacks[i], &reading->states.items[first + i].thread);
		pointers[i] = &stacks[i];
	}
	err = err ?: unwinder__read(&reading->unwinder, pointers, count);
	err = err ?: take_batch(reading, stacks, first, end);
	for (size_t i = 0; i < count && stacks; i++)
		thread_stack__free(&stacks[i]);
	free(stacks);
	free(pointers);
	return err;
}

static int by_tid(const void *left, const void *right)
{
	const struct sleeper *a = left, *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
}

static void sort(struct sleepers *sleepers)
{
	size_t kept = 0;

	if (sleepers->items.len)
		qsort(sleepers->items.items, sleepers->items.len, sizeof(struct sleeper), by_tid);
	for (size_t i = 0; i < sleepers->items.len; i++)
		if (!kept || sleepers->items.items[i].tid != sleepers->items.items[kept - 1].tid)
			sleepers->items.items[kept++] = sleepers->items.items[i];
	sleepers->items.len = kept;
}

static void init_samples(struct reading *reading)
{
	for (size_t i = 0; i < reading->sleepers->items.len; i++) {
		struct sleeper *sleeper = &reading->sleepers->items.items[i];

		sleeper->sample = (struct pbp_sample){.type = PBP_SAMPLE,
						      .tgid = reading->process->pid,
						      .tid = sleeper->tid,
						      .status = PBP_STATUS_NOT_WALKED,
						      .flags = PBP_SAMPLE_KERNEL,
						      .time_ns = sleeper->out_ns};
	}
}

/* Those without a thread state, if that can be told. */
static void note_natives(struct reading *reading)
{
	struct sleepers *sleepers = reading->sleepers;
	size_t state = 0;

	for (size_t i = 0; i < sleepers->items.len && reading->all_known; i++) {
		bool has_state = false;

		for (; state < reading->states.len && reading->states.items[state].sleeper <= i; state++)
			has_state |= reading->states.items[state].sleeper == i;
		if (!has_state)
			sleepers->items.items[i].sample.status = PBP_STATUS_NO_TSTATE;
	}
}

int sleepers__read(struct sleepers *sleepers, struct process *process, struct symbolizer *symbolizer)
{
	struct reading reading = {.sleepers = sleepers, .process = process, .symbolizer = symbolizer};
	int err;

	sort(sleepers);
	init_samples(&reading);
	err = unwinder__init(&reading.unwinder, &process->target);
	err = err ?: unwinder__find_interpreters(&reading.unwinder) ?: find_states(&reading);
	if (!err)
		note_natives(&reading);
	for (size_t first = 0, end; first < reading.states.len && !err; first = end) {
		end = batch_end(&reading, first);
		err = read_batch(&reading, first, end);
	}
	unwinder__free(&reading.unwinder);
	thread_ids__free(&reading.ids);
	vec__free(&reading.states);
	vec__free(&reading.record);
	return err;
}
