/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records into the ring buffer: interning of stacks, and when the reader is woken.
 */
#pragma once

/*
 * The reader polls; a wake-up from the interrupt is an extra interrupt that the target pays. It is spent only
 * where waiting would lose something: code objects that were too many to send may be freed, a tail may
 * change, the ring may fill up, or the reader has gone to sleep for want of records. Whatever the target
 * does, there are at most 100 a second.
 */
static __always_inline __u64 wakeup_flags(__u64 now, bool urgent)
{
	__u64 last = last_wakeup_ns;

	if (!urgent && !reader_idle) {
		__u64 size = bpf_ringbuf_query(&events, BPF_RB_RING_SIZE);

		if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < size / 4)
			return BPF_RB_NO_WAKEUP;
	}
	/* It may be older than the last one: it is that of the event, and CPUs send at the same time. */
	if ((__s64)(now - last) < (__s64)WAKEUP_INTERVAL_NS)
		return BPF_RB_NO_WAKEUP;
	if (__sync_val_compare_and_swap(&last_wakeup_ns, last, now) != last)
		return BPF_RB_NO_WAKEUP;
	count(PBP_COUNTER_WAKEUPS);
	return BPF_RB_FORCE_WAKEUP;
}

/*
 * Copy an object of at most `most` bytes (a power of two) to `to`. It may end just before memory that is not
 * mapped: then as much as its page holds. Number of bytes.
 */
static __always_inline __u32 copy_object(__u8 *to, __u32 most, __u64 address)
{
	__u32 len = -address & 4095;

	if (!address)
		return 0;
	if (!bpf_probe_read_user(to, most, (void *)address))
		return most;
	len &= most - 1; /* it crosses a page border, so this is less than `most` */
	return bpf_probe_read_user(to, len, (void *)address) ? 0 : len;
}

/* Send a code object as it is now. Returns whether the ring buffer took it. */
static __always_inline bool send_code(const struct pbp_target *target, struct scratch *scratch, __u32 tgid,
				      const struct pbp_frame *frame)
{
	struct pbp_code *code = &scratch->code;
	__u32 bytes = target->co_bytes & (PBP_CODE_BYTES - 1);

	code->type = PBP_CODE;
	code->tgid = tgid;
	code->code = frame->code;
	code->ident = frame->ident;
	if (bpf_probe_read_user(code->header, bytes, (void *)frame->code))
		return false;
	code->lens[0] = bytes;
	code->lens[1] = copy_object(code->name, PBP_NAME_BYTES,
				    scratch_u64(code->header, PBP_CODE_BYTES, target->co_name));
	code->lens[2] = copy_object(code->file, PBP_FILE_BYTES,
				    scratch_u64(code->header, PBP_CODE_BYTES, target->co_filename));
	code->lens[3] = copy_object(code->table, PBP_TABLE_BYTES,
				    scratch_u64(code->header, PBP_CODE_BYTES, target->co_linetable));
	return !bpf_ringbuf_output(&events, code, sizeof(*code), BPF_RB_NO_WAKEUP);
}

struct code_scan {
	const struct pbp_target *target;
	struct scratch *scratch;
	__u64 seed;
};

static long code_scan_step(__u32 i, struct code_scan *scan)
{
	struct scratch *scratch = scan->scratch;
	struct pbp_frame *frame;
	__u64 hash, *sent;
	__u32 slot;

	if (i >= scratch->walk.count || i >= PBP_MAX_FRAMES)
		return 1;
	frame = &scratch->frames[i];
	if (frame->flags & (PBP_FRAME_INTERP | PBP_FRAME_GC))
		return 0;
	hash = hash_mix(hash_mix(scan->seed, frame->code), frame->ident);
	slot = hash % SENT_CODES;
	sent = bpf_map_lookup_elem(&sent_codes, &slot);
	if (!sent || *sent == hash)
		return 0;
	/* Beyond the limit a code object is not marked, and user space reads it. */
	if (scratch->walk.fresh_codes++ >= PBP_TICK_CODES ||
	    !send_code(scan->target, scratch, scratch->stack.tgid, frame))
		return 0;
	*sent = hash;
	return 0;
}

LOOP_BODY(code_scan_step, struct code_scan)

/*
 * Send the frames in scratch as a stack, and first the code objects in it that were not sent before, unless
 * the stack was sent already. Returns 0 when the reader knows the stack by the time it reads the sample, else
 * -1 and the loss is counted. *urgent: it holds a code object that the reader has to read itself.
 */
static __always_inline int send_stack(const struct pbp_target *target, struct scratch *scratch, __u32 tgid,
				      __u64 id, bool use_loop, bool *urgent)
{
	__u32 slot = id % SENT_STACKS, frames = scratch->walk.count;
	__u64 *sent = bpf_map_lookup_elem(&sent_stacks, &slot);
	struct code_scan scan = {
		.target = target, .scratch = scratch, .seed = (__u64)tgid << 32 | target->epoch};

	if (!sent || frames > PBP_MAX_FRAMES)
		return -1;
	if (*sent == id)
		return 0;
	scratch->stack.type = PBP_STACK;
	scratch->stack.tgid = tgid;
	scratch->stack.id = id;
	scratch->stack.count = frames;
	scratch->walk.fresh_codes = 0;
	repeat(use_loop, frames, code_scan_step, &scan);
	if (bpf_ringbuf_output(&events, &scratch->stack,
			       sizeof(struct pbp_stack) + frames * sizeof(struct pbp_frame),
			       BPF_RB_NO_WAKEUP)) {
		count(PBP_COUNTER_LOST_STACK);
		return -1;
	}
	*sent = id;
	*urgent |= scratch->walk.fresh_codes > PBP_TICK_CODES;
	return 0;
}

static __always_inline void send_sample(struct pbp_sample *sample, bool urgent)
{
	__u64 flags = wakeup_flags(sample->time_ns, urgent);
	long err = sample->tail_frame ? bpf_ringbuf_output(&events, sample, sizeof(*sample), flags)
				      : bpf_ringbuf_output(&events, sample, PBP_SAMPLE_SHORT, flags);

	if (err)
		count(PBP_COUNTER_LOST_SAMPLE);
}

/* An exec, a fork or the like. */
static __always_inline long send_process(const struct pbp_process *record, bool urgent)
{
	long err = bpf_ringbuf_output(&events, (void *)record, sizeof(*record),
				      wakeup_flags(record->time_ns, urgent));

	if (err)
		count(PBP_COUNTER_LOST_PROCESS);
	return err;
}
