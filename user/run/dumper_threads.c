/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks are read in as few calls as the memory for the copies allows.
 */
#include "run/dumper_parts.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

#define THREADS_MAX	  65536
#define BATCH_THREADS	  256
#define BATCH_NEW_THREADS 16
#define BATCH_BYTES	  (64u << 20)

void dumper_free_watched(struct watched *watched)
{
	thread_stack__free(&watched->stack);
	dump_thread__free(&watched->made);
	vec__free(&watched->raw);
	free(watched);
}

static struct watched *find_watched(const struct dumper *dumper, const struct py_thread *thread)
{
	const uint64_t *index = hmap__get(&dumper->by_tstate, thread->tstate);
	struct watched *watched = index ? dumper->watched.items[*index] : NULL;

	return watched && watched->stack.thread.thread_id == thread->thread_id &&
			       watched->stack.thread.interp == thread->interp
		       ? watched
		       : NULL;
}

static int index_watched(struct dumper *dumper)
{
	int err = 0;

	hmap__clear(&dumper->by_tstate);
	for (size_t i = 0; i < dumper->watched.len && !err; i++)
		err = hmap__set(&dumper->by_tstate, dumper->watched.items[i]->stack.thread.tstate, i);
	return err;
}

static int note_thread(struct dumper *dumper, const struct py_thread *thread)
{
	struct watched *watched = find_watched(dumper, thread);
	int err;

	/* No thread runs it yet. */
	if (!thread->thread_id)
		return 0;
	if (!watched) {
		watched = calloc(1, sizeof(*watched));
		if (!watched)
			return -ENOMEM;
		thread_stack__init(&watched->stack, thread);
		watched->before = UNWIND_GONE;
		err = vec__push(&dumper->watched, watched);
		if (err) {
			dumper_free_watched(watched);
			return err;
		}
	}
	watched->tid =
		thread_ids__find(&dumper->ids, &dumper->process.target.remote, thread, &watched->native_id);
	watched->found = true;
	return 0;
}

static void drop_lost(struct dumper *dumper)
{
	size_t kept = 0;

	for (size_t i = 0; i < dumper->watched.len; i++) {
		if (dumper->watched.items[i]->found)
			dumper->watched.items[kept++] = dumper->watched.items[i];
		else
			dumper_free_watched(dumper->watched.items[i]);
	}
	dumper->watched.len = kept;
}

int dumper_list_threads(struct dumper *dumper)
{
	struct py_thread *threads = NULL, *larger;
	int count = 0, err = 0;

	for (size_t max = 256; max <= THREADS_MAX; max *= 4) {
		larger = realloc(threads, max * sizeof(*threads));
		count = larger ? py_target__threads(&dumper->process.target, larger, max) : -ENOMEM;
		threads = larger ?: threads;
		if (count < (int)max)
			break;
	}
	for (size_t i = 0; i < dumper->watched.len; i++)
		dumper->watched.items[i]->found = false;
	if (count >= 0)
		err = thread_ids__read(&dumper->ids, dumper->process.pid, threads, count);
	for (int i = 0; i < count && !err; i++)
		err = note_thread(dumper, &threads[i]);
	free(threads);
	drop_lost(dumper);
	return count < 0 ? count : err ?: index_watched(dumper);
}

/* --- one reading of all stacks --- */

static int read_batch(struct dumper *dumper)
{
	int err = dumper->batch.len
			  ? unwinder__read(&dumper->unwinder, dumper->batch.items, dumper->batch.len)
			  : 0;

	dumper->batch.len = 0;
	return err;
}

/* In as few calls as the memory for the copies allows; what a new thread needs is not known before. */
int dumper_read_stacks(struct dumper *dumper)
{
	size_t bytes = 0, fresh = 0;
	int err = 0;

	dumper->unwinder.want_gils = true;
	for (size_t i = 0; i < dumper->watched.len && !err; i++) {
		struct watched *watched = dumper->watched.items[i];

		watched->before = watched->stack.readings ? watched->stack.result : UNWIND_GONE;
		bytes += 2 * watched->stack.copy_bytes;
		fresh += !watched->stack.readings;
		err = vec__push(&dumper->batch, &watched->stack);
		if (!err && (dumper->batch.len >= BATCH_THREADS || fresh >= BATCH_NEW_THREADS ||
			     bytes > BATCH_BYTES)) {
			err = read_batch(dumper);
			bytes = fresh = 0;
		}
	}
	return err ?: read_batch(dumper);
}

/* Is the stack that was read the one that was read before, but for the line of the innermost frame? */
static bool is_same_stack(const struct thread_stack *stack)
{
	if (stack->same)
		return true;
	if (stack->frames.len != stack->last_frames.len || stack->moved)
		return false;
	for (size_t i = 0; i < stack->frames.len; i++) {
		const struct pbp_frame *now = &stack->frames.items[i], *then = &stack->last_frames.items[i];

		if (stack->addresses.items[i] != stack->last_addresses.items[i] || now->code != then->code ||
		    now->ident != then->ident || (i && now->instr != then->instr))
			return false;
	}
	return true;
}

bool dumper_agrees(const struct watched *watched)
{
	const struct thread_stack *stack = &watched->stack;

	if (stack->result != watched->before)
		return false;
	return stack->result == UNWIND_NO_FRAMES || (stack->result == UNWIND_OK && is_same_stack(stack));
}
