/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records into the ring buffer: interning of stacks, and when the reader is woken.
 */
#pragma once

/*
 * The reader polls; a wake-up from the interrupt is an extra interrupt that the target pays. It is spent only where waiting would
 * lose something: a code object not seen before may be freed, a tail may change, the ring may fill up, or the
 * reader has gone to sleep for want of records. Whatever the target does, there are at most 100 a second.
 */
static __always_inline __u64 wakeup_flags(__u64 now, bool urgent)
{
	__u64 last = last_wakeup_ns;

	if (!urgent && !reader_idle) {
		__u64 size = bpf_ringbuf_query(&events, BPF_RB_RING_SIZE);

		if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < size / 4)
			return BPF_RB_NO_WAKEUP;
	}
	if (now - last < WAKEUP_INTERVAL_NS)
		return BPF_RB_NO_WAKEUP;
	if (__sync_val_compare_and_swap(&last_wakeup_ns, last, now) != last)
		return BPF_RB_NO_WAKEUP;
	count(PBP_COUNTER_WAKEUPS);
	return BPF_RB_FORCE_WAKEUP;
}

struct code_scan {
	struct scratch *scratch;
	__u32 count;
	__u32 fresh; /* code objects not sent before */
	__u64 seed;
};

static long code_scan_step(__u32 i, struct code_scan *scan)
{
	struct pbp_frame *frame;
	__u64 hash, *sent;
	__u32 slot;

	if (i >= scan->count || i >= PBP_MAX_FRAMES)
		return 1;
	frame = &scan->scratch->frames[i];
	hash = hash_mix(hash_mix(scan->seed, frame->code), frame->ident);
	slot = hash % SENT_CODES;
	sent = bpf_map_lookup_elem(&sent_codes, &slot);
	if (sent && *sent != hash) {
		*sent = hash;
		scan->fresh++;
	}
	return 0;
}

LOOP_BODY(code_scan_step, struct code_scan)

/*
 * Send the frames in scratch as a stack, unless that was done. Returns 0 when the reader knows the stack (or will, by
 * the time it reads the sample), else -1 and the loss is counted. *urgent: it holds code not seen before.
 */
static __always_inline int send_stack(struct scratch *scratch, __u32 tgid, __u64 id, bool use_loop,
				      bool *urgent)
{
	__u32 slot = id % SENT_STACKS, frames = scratch->walk.count;
	__u64 *sent = bpf_map_lookup_elem(&sent_stacks, &slot);
	struct code_scan scan = { .scratch = scratch, .count = frames, .seed = (__u64)tgid << 32 };

	if (!sent || frames > PBP_MAX_FRAMES)
		return -1;
	if (*sent == id)
		return 0;
	scratch->stack.type = PBP_STACK;
	scratch->stack.tgid = tgid;
	scratch->stack.id = id;
	scratch->stack.count = frames;
	if (bpf_ringbuf_output(&events, &scratch->stack, sizeof(struct pbp_stack) + frames * sizeof(struct pbp_frame),
			       BPF_RB_NO_WAKEUP)) {
		count(PBP_COUNTER_LOST_STACK);
		return -1;
	}
	count(PBP_COUNTER_STACKS);
	*sent = id;
	repeat(use_loop, frames, code_scan_step, &scan);
	*urgent = scan.fresh != 0;
	return 0;
}

static __always_inline void send_sample(struct pbp_sample *sample, bool urgent)
{
	__u64 flags = wakeup_flags(sample->time_ns, urgent);
	long err = sample->tail_frame ? bpf_ringbuf_output(&events, sample, sizeof(*sample), flags) :
					bpf_ringbuf_output(&events, sample, PBP_SAMPLE_SHORT, flags);

	if (err)
		count(PBP_COUNTER_LOST_SAMPLE);
}
