/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a sample says of a thread: what state it is in, and its stack. At a tick and at a switch alike.
 */
#pragma once

/*
 * Is the interpreter collecting garbage, and how many code objects has it freed: one read where both lie
 * close together.
 */
static __always_inline void fill_interp_state(struct pbp_sample *sample, const struct pbp_target *target,
					      struct scratch *scratch)
{
	__u64 interp = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_interp);
	__u32 span = target->in_generation - target->in_gc_collecting;
	__u32 collecting = 0;

	scratch->walk.generation_read = 0;
	scratch->walk.gc_frame = 0;
	if (target->in_generation && target->in_gc_collecting && span <= PBP_INTERP_BYTES - 8) {
		if (bpf_probe_read_user(scratch->interp, span + 8,
					(void *)(interp + target->in_gc_collecting)))
			return;
		collecting = *(__u32 *)scratch->interp;
		sample->generation = scratch_u64(scratch->interp, PBP_INTERP_BYTES, span);
		scratch->walk.generation_read = 1;
	} else {
		if (target->gc_collecting || target->in_gc_collecting)
			bpf_probe_read_user(
				&collecting, sizeof(collecting),
				(void *)(target->gc_collecting ?: interp + target->in_gc_collecting));
		if (target->in_generation &&
		    !bpf_probe_read_user(&sample->generation, sizeof(sample->generation),
					 (void *)(interp + target->in_generation)))
			scratch->walk.generation_read = 1;
	}
	if (collecting)
		note_collector(sample, target, scratch, interp);
}

static __always_inline void fill_state(struct pbp_sample *sample, const struct pbp_target *target,
				       struct scratch *scratch)
{
	if (target->ts_attached != PBP_NONE) {
		__u32 state = scratch_u32(scratch->tstate, PBP_TSTATE_BYTES, target->ts_attached);

		if ((state & target->ts_attached_mask) == target->ts_attached_want)
			sample->flags |= PBP_SAMPLE_ATTACHED;
		else if (target->ts_suspended && state == target->ts_suspended)
			sample->flags |= PBP_SAMPLE_SUSPENDED;
	} else if (scratch->walk.holds_gil) {
		sample->flags |= PBP_SAMPLE_ATTACHED;
	}
	if (target->ts_exception != PBP_NONE &&
	    scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_exception))
		sample->flags |= PBP_SAMPLE_RAISING;
	if (target->ts_executor != PBP_NONE &&
	    scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_executor))
		sample->flags |= PBP_SAMPLE_JIT;
	fill_interp_state(sample, target, scratch);
}

/*
 * What identities of code objects hold for: where the interpreter counts code objects that are freed, until
 * the next one is; else for one walk.
 */
static __always_inline __u64 ident_stamp(const struct pbp_sample *sample, const struct pbp_target *target,
					 struct scratch *scratch)
{
	__u64 interp = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_interp);

	if (!scratch->walk.generation_read)
		return ++scratch->walks;
	return hash_mix(hash_mix(interp ^ (__u64)sample->tgid << 32, sample->generation), target->epoch) |
	       1ull << 63;
}

static __always_inline __u32 witness_hash(const struct pbp_target *target, struct scratch *scratch,
					  __u64 address)
{
	__u8 *bytes = scratch->window;
	__u64 instr;

	if (bpf_probe_read_user(bytes, target->fr_bytes & (PBP_FRAME_BYTES - 1), (void *)address))
		return 0;
	instr = target->fr_instr_is_index ? scratch_u32(bytes, PBP_FRAME_BYTES, target->fr_instr)
					  : scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_instr);
	return pbp_frame_hash(scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_code) &
				      ~(__u64)target->fr_tag_mask,
			      instr, scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_previous));
}

struct witness_scan {
	const struct pbp_target *target;
	struct scratch *scratch;
	const struct pbp_witnesses *list;
};

static long witness_step(__u32 i, struct witness_scan *scan)
{
	__u32 slot = i & (PBP_WITNESSES - 1);

	if (i >= PBP_WITNESSES || i >= scan->list->count)
		return 1;
	scan->scratch->witnesses[slot] = witness_hash(scan->target, scan->scratch, scan->list->frames[slot]);
	return 0;
}

LOOP_BODY(witness_step, struct witness_scan)

/* The walk stops here, the stack goes on: say how some of the frames further down look at this instant. */
static __always_inline void look_at_witnesses(struct pbp_sample *sample, const struct pbp_target *target,
					      struct scratch *scratch, bool use_loop)
{
	struct pbp_witness_key key = {.tstate = sample->tstate, .tgid = sample->tgid};
	struct pbp_witnesses *list = bpf_map_lookup_elem(&witness_lists, &key);
	struct witness_scan scan = {.target = target, .scratch = scratch, .list = list};

	if (!list)
		return;
	sample->witness_version = list->version;
	sample->witness_count = list->count;
	repeat(use_loop, PBP_WITNESSES, witness_step, &scan);
	__builtin_memcpy(sample->witnesses, scratch->witnesses, sizeof(sample->witnesses));
}

/*
 * Walk the thread whose state is in scratch and fill in the sample. Returns whether the sample may be sent.
 */
static __always_inline bool take_stack(struct pbp_sample *sample, const struct pbp_target *target,
				       struct scratch *scratch, bool use_loop, bool *urgent)
{
	struct walker walker = {.target = target, .scratch = scratch};
	struct walk *walk = &scratch->walk;

	walk->frame = first_frame(target, scratch);
	walk->last_read = 0;
	walk->last_frame = 0;
	walk->base_frame = target->ts_base_frame == PBP_NONE ? 0 : sample->tstate + target->ts_base_frame;
	walk->hash = hash_mix(hash_seed, (__u64)target->epoch << 32 | sample->tgid);
	walk->start_hash = walk->hash;
	walk->start_count = 0;
	walk->leaf_instr = 0;
	walk->count = 0;
	walk->limit = max_frames;
	walk->faulted = 0;
	walk->window_len = 0;
	walk->found_collector = 0;
	walk->ident_stamp = ident_stamp(sample, target, scratch);
	repeat(use_loop, 2 * max_frames, walk_step, &walker);

	sample->leaf_instr = walk->leaf_instr;
	if (walk->found_collector)
		sample->flags |= PBP_SAMPLE_GC;
	if (walk->frame) {
		if (walk->nested)
			sample->flags |= PBP_SAMPLE_NESTED;
		sample->status = walk->faulted ? PBP_STATUS_FRAME_FAULT : PBP_STATUS_DEEP;
		sample->link_frame = walk->last_frame;
		sample->tail_frame = walk->frame;
		look_at_witnesses(sample, target, scratch, use_loop);
		*urgent = true;
	} else if (!walk->count) {
		sample->status = PBP_STATUS_NO_FRAMES;
	}
	if (!walk->count)
		return true;
	sample->stack_id = hash_mix(walk->hash, walk->count);
	return !send_stack(target, scratch, sample->tgid, sample->stack_id, use_loop, urgent);
}

/*
 * Everything but the ids. Returns whether the sample may be sent; *urgent: the reader should look at it soon.
 */
static __always_inline bool take_sample(struct pbp_sample *sample, const struct pbp_target *target,
					struct scratch *scratch, struct task_struct *task, bool use_loop,
					bool *urgent)
{
	bool faulted = false;

	sample->time_ns = bpf_ktime_get_ns();
	if (want_names)
		bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	if (!target->interpreters_head) {
		sample->status = PBP_STATUS_NO_TARGET;
		return true;
	}
	sample->tstate = find_tstate(target, scratch, task, sample->time_ns, use_loop, &faulted);
	if (!sample->tstate) {
		sample->status = faulted ? PBP_STATUS_TSTATE_FAULT : PBP_STATUS_NO_TSTATE;
		return true;
	}
	fill_state(sample, target, scratch);
	note_handled(sample, target, scratch, use_loop);
	find_outer(sample, target, scratch, task, use_loop);
	return take_stack(sample, target, scratch, use_loop, urgent);
}
