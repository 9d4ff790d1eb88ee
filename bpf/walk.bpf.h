/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Thread state -> chain of frames, and those of the thread states that it was entered from. One walker for
 * all versions, driven by struct pbp_target; no CPython offset is written here. Also compiled for the host,
 * where tests run it on memory images (tests/unit/test_walk.c). The thread being walked is the interrupted
 * one, so its chain cannot change meanwhile; it can still be garbage, so every step is bounded and masked.
 */
#pragma once

#define PBP_NEAR_BYTES 16384 /* size of a data stack chunk */

/*
 * What a step needs. The state that changes is in scratch, a map: there the verifier takes every value for
 * unknown, so that it need not look at the loop's body once for each path through the one before.
 */
struct walker {
	const struct pbp_target *target;
	struct scratch *scratch;
};

/*
 * Keyed: a target that knows this code still cannot make two of its stacks collide, since it does not know
 * hash_seed.
 */
static __always_inline __u64 hash_mix(__u64 hash, __u64 value)
{
	value = (value ^ value >> 32) * (hash_seed | 1);
	hash = (hash + (value ^ value >> 29)) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

/* Fold in the string at `address`. What cannot be read counts as empty. Called twice, and kept out of line.
 */
static __attribute__((noinline)) __u64 fold_string(struct walker *walker, __u64 hash, __u64 address)
{
	const struct pbp_target *target = walker->target;
	struct pbp_string *string = &walker->scratch->string;

	__builtin_memset(string, 0, sizeof(*string));
	bpf_probe_read_user(string, __builtin_offsetof(struct pbp_string, tail),
			    (void *)(address + target->st_length));
	if (string->hash == PBP_STRING_NO_HASH)
		bpf_probe_read_user(string->tail, PBP_STRING_TAIL,
				    (void *)(address + pbp_string_end(target, string) - PBP_STRING_TAIL));
	return pbp_fold_string(hash, string);
}

/*
 * Identity of the code object at `code`: tells it from an earlier one at the same address. 0 when unreadable.
 * Where CPython does not number code objects, all that one is made of is looked at, and since the memory of
 * its parts is used again as well, the characters of its names.
 */
static __always_inline __u32 read_ident(struct walker *walker, __u64 code)
{
	const struct pbp_target *target = walker->target;
	__u64 *words = (__u64 *)walker->scratch->ident;
	__u32 bytes = target->co_ident_bytes & (PBP_IDENT_BYTES - 1);
	__u64 name, file, hash;

	if (target->co_ident == PBP_NONE)
		return 0;
	__builtin_memset(words, 0, PBP_IDENT_BYTES);
	if (bpf_probe_read_user(words, bytes, (void *)(code + target->co_ident)))
		return 0;
	if (bytes == 4)
		return (__u32)words[0];
	hash = pbp_fold(0, words, PBP_IDENT_WORDS);
	if (target->st_length != PBP_NONE) {
		name = scratch_u64(walker->scratch->ident, PBP_IDENT_BYTES,
				   target->co_name - target->co_ident);
		file = scratch_u64(walker->scratch->ident, PBP_IDENT_BYTES,
				   target->co_filename - target->co_ident);
		hash = fold_string(walker, hash, name);
		hash = fold_string(walker, hash, file);
	}
	return (__u32)(hash >> 32);
}

static __always_inline __u32 ident_of(struct walker *walker, __u64 code)
{
	struct ident_entry *entry = &walker->scratch->idents[code / 64 % IDENT_ENTRIES];
	__u64 stamp = walker->scratch->walk.ident_stamp;

	if (entry->code != code || entry->stamp != stamp) {
		entry->ident = read_ident(walker, code);
		entry->code = code;
		entry->stamp = entry->ident ? stamp : 0; /* unreadable now need not mean always */
	}
	return entry->ident;
}

/*
 * Bring the frame at `address` into scratch->window and return its offset there, -1 if it cannot be read. A
 * read costs some 200 ns whatever its length, and frames of the data stack lie side by side, callers below:
 * so its page is read from the start. A frame far from the last one may be a generator's, alone on the heap,
 * and is read alone.
 */
static __always_inline int load_frame(struct walker *walker, __u64 address)
{
	struct walk *walk = &walker->scratch->walk;
	__u32 bytes = walker->target->fr_bytes & (PBP_FRAME_BYTES - 1);
	__u64 offset = address - walk->window_start;
	bool near = !walk->last_read || walk->last_read - address + PBP_NEAR_BYTES < 2 * PBP_NEAR_BYTES;

	walk->last_read = address;
	if (offset < PBP_WINDOW_BYTES && offset + bytes <= walk->window_len)
		return offset;
	offset = near ? address & (PBP_WINDOW_BYTES - 1) : 0;
	walk->window_start = address - offset;
	walk->window_len = offset + bytes;
	if (bpf_probe_read_user(walker->scratch->window, offset + bytes, (void *)(address - offset)))
		return -1;
	return offset;
}

/* The frame recorded last was called from C. */
static __always_inline void note_c_below(struct walker *walker)
{
	struct walk *walk = &walker->scratch->walk;
	__u32 i = walk->count - 1;

	if (i < PBP_MAX_FRAMES) {
		walker->scratch->frames[i].flags |= PBP_FRAME_C_BELOW;
		walk->hash = hash_mix(walk->hash, PBP_FRAME_C_BELOW);
	}
}

static __always_inline void record_frame(struct walker *walker, __u64 code, __u64 instr)
{
	struct walk *walk = &walker->scratch->walk;
	__u32 ident = ident_of(walker, code);
	__u32 i = walk->count;
	struct pbp_frame *frame;

	if (i >= PBP_MAX_FRAMES)
		return;
	frame = &walker->scratch->frames[i];
	frame->code = code;
	frame->ident = ident;
	frame->flags = 0;
	walk->hash = hash_mix(walk->hash, code);
	if (i == 0) {
		/*
		 * The leaf's own instruction changes with every sample; it is sent apart, so that the stack
		 * stays the same.
		 */
		walk->leaf_instr = instr;
		instr = 0;
	}
	frame->instr = instr;
	walk->hash = hash_mix(walk->hash, instr ^ (__u64)ident << 32);
	walk->count = i + 1;
}

/*
 * Where the walk begins. In 3.11 and 3.12 an eval loop's cframe, which is on the C stack, is linked before
 * its current_frame is set: for that moment it holds what was there before, perhaps a frame that has
 * returned. So the walk has to come to the frame that the previous cframe is at.
 */
static __always_inline __u64 first_frame(const struct pbp_target *target, struct scratch *scratch)
{
	__u64 frame = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_frame);
	struct walk *walk = &scratch->walk;
	__u64 previous;

	walk->unproved = 0;
	walk->belows = 0;
	walk->is_cut = 0;
	walk->guesses_left = 0;
	if (target->cframe_frame == PBP_NONE || !frame)
		return frame;
	if (bpf_probe_read_user(scratch->cframe, (target->cframe_frame + 16) & (PBP_CFRAME_BYTES - 1),
				(void *)frame))
		return 0;
	previous = scratch_u64(scratch->cframe, PBP_CFRAME_BYTES, target->cframe_frame + 8);
	walk->below = previous ? read_user_u64(previous + target->cframe_frame) : 0;
	walk->unproved = 1;
	return scratch_u64(scratch->cframe, PBP_CFRAME_BYTES, target->cframe_frame);
}

/*
 * What has been walked did not lead to where it had to (first_frame): go on from the next guess, and from the
 * frame it should have led to when there is none left.
 */
static __always_inline bool start_elsewhere(struct walk *walk)
{
	if (!walk->unproved)
		return false;
	walk->hash = walk->start_hash;
	walk->last_frame = 0;
	walk->count = walk->start_count;
	if (!walk->count)
		walk->leaf_instr = 0;
	if (walk->guesses_left) {
		walk->frame = walk->guesses[--walk->guesses_left & 7];
	} else {
		walk->frame = walk->below;
		walk->unproved = 0;
		walk->belows = 1;
	}
	return true;
}

/*
 * The frame that the eval loop was entered from is none. A compiler may set the previous cframe after the new
 * one is linked, too (gcc does, both fields at once): for some instructions what is there is of an earlier
 * call, and the frame, or before that the previous cframe, is in a register.
 */
static __always_inline bool start_below(struct walker *walker)
{
	struct walk *walk = &walker->scratch->walk;
	struct pt_regs *registers;
	__u64 value = 0;

	if (!walk->belows || walk->count != walk->start_count)
		return false;
	registers = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (walk->belows == 1)
		bpf_probe_read_kernel(&value, 8, &registers->si);
	if (walk->belows == 2 && !bpf_probe_read_kernel(&value, 8, &registers->ax))
		value = read_user_u64(value + walker->target->cframe_frame);
	if (walk->belows > 2)
		return false;
	walk->belows++;
	walk->frame = value ?: walk->below;
	return true;
}

/*
 * The chain has ended. A generator's frame may be linked to its caller a few instructions after it has become
 * the current frame; the caller's frame is in a register then.
 */
static __always_inline bool ends_too_early(struct walk *walk)
{
	if (walk->unproved && !walk->is_cut) {
		walk->is_cut = 1;
		/* r15, r14, r13, r12, rbp, rbx as the program had them: those that calls preserve. */
		if (!bpf_probe_read_kernel(walk->guesses, WALK_GUESSES * 8,
					   (void *)bpf_task_pt_regs(bpf_get_current_task_btf())))
			walk->guesses_left = WALK_GUESSES;
	}
	return start_elsewhere(walk);
}

static __always_inline bool is_code(const struct pbp_target *target, __u64 code)
{
	return target->code_type && read_user_u64(code + target->co_type) == target->code_type;
}

/* At the first frame below: is it none? */
static __always_inline bool is_wrong_below(const struct pbp_target *target, const struct walk *walk,
					   __u64 code, bool is_marker)
{
	return walk->belows && walk->count == walk->start_count && !is_marker && target->code_type &&
	       !is_code(target, code);
}

/* At the first frame of a guess: is it one? */
static __always_inline bool is_wrong_guess(const struct pbp_target *target, const struct walk *walk,
					   __u64 code, bool is_marker)
{
	return walk->is_cut && walk->unproved && walk->count == walk->start_count &&
	       (is_marker || !is_code(target, code));
}

/* What has been walked since the last thread state is of an interpreter that has an id to show. */
static __always_inline void note_interp(struct walker *walker)
{
	struct walk *walk = &walker->scratch->walk;
	__u32 i = walk->count;

	if (i >= PBP_MAX_FRAMES || i == walk->start_count || !walk->interp_id)
		return;
	walker->scratch->frames[i] =
		(struct pbp_frame){.instr = walk->interp_id, .flags = PBP_FRAME_INTERP};
	walk->hash = hash_mix(walk->hash, walk->interp_id ^ (__u64)PBP_FRAME_INTERP << 32);
	walk->count = i + 1;
}

/*
 * The collection began in the frame that comes next: what has been walked was called by it. Of a thread that
 * has no frames there is nothing to tell.
 */
static __always_inline void note_gc(struct walker *walker, bool is_frame)
{
	struct walk *walk = &walker->scratch->walk;
	__u32 i = walk->count;

	if (i >= PBP_MAX_FRAMES - 1 || walk->found_collector || (!is_frame && !i))
		return;
	walker->scratch->frames[i] = (struct pbp_frame){.flags = PBP_FRAME_GC};
	walk->hash = hash_mix(walk->hash, (__u64)PBP_FRAME_GC << 32);
	walk->count = i + 1;
	walk->found_collector = 1;
}

/*
 * The chain of a thread state has ended. The thread's other thread states, of the interpreters that this one
 * was entered from, wait below on the same C stack: their frames are its callers. False: none is left.
 */
static __always_inline bool enter_outer(struct walker *walker)
{
	const struct pbp_target *target = walker->target;
	struct scratch *scratch = walker->scratch;
	struct walk *walk = &scratch->walk;
	__u64 tstate, interp;

	if (!walk->nested)
		return false;
	note_interp(walker);
	tstate = walk->next_outer < PBP_OUTER_STATES ? walk->outer[walk->next_outer & 3] : 0;
	walk->next_outer++;
	walk->nested = read_tstate(target, scratch, tstate, walk->fsbase) == 1;
	if (!walk->nested)
		return false;
	interp = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_interp);
	walk->interp_id = interp == target->main_interp ? 0 : read_user_u64(interp + target->in_id);
	walk->base_frame = target->ts_base_frame == PBP_NONE ? 0 : tstate + target->ts_base_frame;
	walk->last_read = 0;
	walk->ident_stamp = ++scratch->walks; /* the inner one's says nothing of this interpreter's code */
	walk->start_hash = walk->hash;
	walk->start_count = walk->count;
	walk->frame = first_frame(target, scratch);
	return true;
}

/* One frame. Returns 1 when the walk is over. */
static long walk_step(__u32 step, struct walker *walker)
{
	const struct pbp_target *target = walker->target;
	struct walk *walk = &walker->scratch->walk;
	__u64 address = walk->frame;
	bool from_c = false, is_marker;
	__u32 owner = 0;
	__u8 *bytes;
	__u64 code, instr;
	int offset;

	if (step >= 2 * max_frames)
		return 1;
	if (!address)
		return !ends_too_early(walk) && !enter_outer(walker);
	offset = load_frame(walker, address);
	if (offset < 0) {
		walk->faulted = !start_elsewhere(walk) && !start_below(walker);
		return walk->faulted;
	}
	bytes = walker->scratch->window + (offset & (PBP_WINDOW_BYTES - 1));
	if (target->fr_owner != PBP_NONE)
		owner = bytes[target->fr_owner & (PBP_FRAME_BYTES - 1)];
	is_marker = target->fr_first_other_owner && owner >= target->fr_first_other_owner;
	code = scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_code) & ~(__u64)target->fr_tag_mask;
	if (is_wrong_guess(target, walk, code, is_marker)) {
		start_elsewhere(walk);
		return 0;
	}
	if (is_wrong_below(target, walk, code, is_marker)) {
		walk->faulted = !start_below(walker);
		return walk->faulted;
	}
	if (is_marker) {
		from_c = address != walk->base_frame;
		if (address == walk->gc_frame)
			note_gc(walker, false);
	} else if (walk->count >= walk->limit) {
		return 1; /* checked here, so that a stack of just this depth is not cut before its last
			     marker */
	} else {
		if (address == walk->gc_frame)
			note_gc(walker, true);
		instr = target->fr_instr_is_index ? scratch_u32(bytes, PBP_FRAME_BYTES, target->fr_instr)
						  : scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_instr);
		record_frame(walker, code, instr);
		from_c = target->fr_all_from_c;
		if (target->fr_from_c != PBP_NONE)
			from_c = bytes[target->fr_from_c & (PBP_FRAME_BYTES - 1)] != 0;
		walk->last_frame = address;
	}
	walk->frame = scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_previous);
	if (!from_c)
		return 0;
	note_c_below(walker);
	if (walk->frame == walk->below)
		walk->unproved = 0;
	start_elsewhere(walk);
	return 0;
}

LOOP_BODY(walk_step, struct walker)
