/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interrupted thread's PyThreadState. In order: the one that holds the GIL (to 3.11); a slot that CPython
 * keeps set also while the GIL is released; the thread state that an earlier list walk found; a bounded walk
 * of interpreters and their threads. Whatever the source, a thread state counts only if its thread_id is this
 * thread's thread pointer.
 */
#pragma once

#define RETRY_NS 100000000ull /* a thread without a thread state is looked for again this often */

/*
 * glibc's dynamic thread vector: an array of {pointer, pointer to free} at *(fsbase + 8), indexed by module.
 */
#define DTV_ENTRY_BYTES	  16
#define DTV_NOT_ALLOCATED (~0ull)

static __always_inline __u64 read_slot(const struct pbp_target *target, __u64 fsbase)
{
	__u64 block;

	switch (target->slot_kind) {
	case PBP_SLOT_FSBASE:
		return read_user_u64(fsbase + target->slot_offset);
	case PBP_SLOT_DTV:
		block = read_user_u64(read_user_u64(fsbase + 8) + target->slot_module * DTV_ENTRY_BYTES);
		return block && block != DTV_NOT_ALLOCATED ? read_user_u64(block + target->slot_offset) : 0;
	case PBP_SLOT_KEY2:
		block = read_user_u64(fsbase + target->slot_offset);
		return block ? read_user_u64(block + target->slot_offset2) : 0;
	}
	return 0;
}

struct search {
	const struct pbp_target *target;
	struct scratch *scratch;
	__u64 fsbase;
	__u64 interp; /* the next interpreter to look into, 0 = none left */
	__u64 tstate; /* the next thread state to look at, 0 = go to the next interpreter */
	__u64 skip;   /* one that is not wanted */
	__u64 found;
};

static long search_step(__u32 step, struct search *search)
{
	const struct pbp_target *target = search->target;
	__u64 interp = search->interp;

	if (step >= PBP_MAX_THREADS)
		return 1;
	if (!search->tstate) {
		if (!interp)
			return 1;
		search->tstate = read_user_u64(interp + target->in_threads_head);
		search->interp = read_user_u64(interp + target->in_next);
		return 0;
	}
	switch (read_tstate(target, search->scratch, search->tstate, search->fsbase)) {
	case 1:
		search->found = search->tstate;
		if (search->tstate != search->skip)
			return 1;
		search->found = 0;
		/* fall through */
	case 0:
		search->tstate = scratch_u64(search->scratch->tstate, PBP_TSTATE_BYTES, target->ts_next);
		return 0;
	}
	search->tstate = 0;
	return 0;
}

LOOP_BODY(search_step, struct search)

static __always_inline __u64 search_lists(const struct pbp_target *target, struct scratch *scratch,
					  __u64 fsbase, bool use_loop)
{
	struct search search = {
		.target = target,
		.scratch = scratch,
		.fsbase = fsbase,
		.interp = read_user_u64(target->interpreters_head),
	};

	count(PBP_COUNTER_LIST_WALKS);
	repeat(use_loop, PBP_MAX_THREADS, search_step, &search);
	return search.found;
}

static __always_inline struct thread *thread_of(struct task_struct *task, bool create)
{
	__u32 tid = task->pid;
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	struct thread fresh = {.start_time = task->start_time};

	if (thread && thread->start_time == fresh.start_time)
		return thread;
	if (!create)
		return NULL;
	bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY);
	return bpf_map_lookup_elem(&threads, &tid);
}

/*
 * Address of the current thread's state, whose bytes are then in scratch->tstate; 0 when it has none.
 * *faulted tells a thread state that is known but not readable from one that does not exist.
 */
static __always_inline __u64 find_tstate(const struct pbp_target *target, struct scratch *scratch,
					 struct task_struct *task, __u64 now, bool use_loop, bool *faulted)
{
	__u64 fsbase = task->thread.fsbase;
	struct thread *thread;
	__u64 tstate;
	int mine;

	*faulted = false;
	/*
	 * To 3.11 the pthread key holds a thread's first thread state, also while it runs another one, of a
	 * sub-interpreter. With the GIL the runtime tells.
	 */
	scratch->walk.holds_gil = 0;
	if (target->gil_tstate) {
		tstate = read_user_u64(target->gil_tstate);
		scratch->walk.holds_gil = read_tstate(target, scratch, tstate, fsbase) == 1;
		if (scratch->walk.holds_gil)
			return tstate;
	}
	tstate = read_slot(target, fsbase);
	mine = read_tstate(target, scratch, tstate, fsbase);
	if (mine == 1)
		return tstate;
	thread = thread_of(task, true);
	if (!thread)
		return 0;
	if (thread->tstate && read_tstate(target, scratch, thread->tstate, fsbase) == 1)
		return thread->tstate;
	*faulted = mine < 0;
	if (now < thread->retry_ns)
		return 0;
	thread->tstate = search_lists(target, scratch, fsbase, use_loop);
	if (!thread->tstate)
		thread->retry_ns = now + RETRY_NS;
	return thread->tstate;
}

/* The thread's thread states but `inner`. In the lists those of the newest interpreter come first. */
static __always_inline void search_outer(const struct pbp_target *target, struct scratch *scratch,
					 struct thread *thread, __u64 inner, __u64 fsbase, bool use_loop)
{
	struct search search = {
		.target = target,
		.scratch = scratch,
		.fsbase = fsbase,
		.interp = read_user_u64(target->interpreters_head),
		.skip = inner,
	};

	count(PBP_COUNTER_LIST_WALKS);
	__builtin_memset(thread->outer, 0, sizeof(thread->outer));
	for (int i = 0; i < PBP_OUTER_STATES; i++) {
		repeat(use_loop, PBP_MAX_THREADS, search_step, &search);
		if (!search.found)
			break;
		thread->outer[i] = search.found;
		search.found = 0;
		search.tstate = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_next);
	}
}

/*
 * A thread that runs an interpreter other than the main one may have been called from there: prepare for
 * enter_outer(). Afterwards, as before, scratch->tstate is that of the sample.
 */
static __always_inline void find_outer(const struct pbp_sample *sample, const struct pbp_target *target,
				       struct scratch *scratch, struct task_struct *task, bool use_loop)
{
	__u64 interp = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_interp);
	struct walk *walk = &scratch->walk;
	struct thread *thread;

	walk->nested = walk->next_outer = 0;
	walk->interp_id = 0;
	walk->fsbase = task->thread.fsbase;
	if (!target->main_interp || interp == target->main_interp)
		return;
	thread = thread_of(task, true);
	if (!thread)
		return;
	if (thread->inner != sample->tstate || sample->time_ns >= thread->outer_ns) {
		search_outer(target, scratch, thread, sample->tstate, walk->fsbase, use_loop);
		thread->inner = sample->tstate;
		thread->outer_ns = sample->time_ns + RETRY_NS;
	}
	__builtin_memcpy(walk->outer, thread->outer, sizeof(walk->outer));
	walk->interp_id = read_user_u64(interp + target->in_id);
	walk->nested = read_tstate(target, scratch, sample->tstate, walk->fsbase) == 1;
}
