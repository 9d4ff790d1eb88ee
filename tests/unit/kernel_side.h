/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel side as a library for tests: its sources compiled for the host (host_shim.h), a memory image
 * (image.h) for its target, one tick at a time, and what was sent.
 */
#pragma once

#include "host_shim.h"
#include "image.h"

#include "../../bpf/pybpfprof.bpf.c"

static struct image image;
static bool user_mode = true; /* what is interrupted */

/* What one tick sent. */
static struct {
	struct pbp_sample sample;
	size_t sample_size;
	const struct pbp_stack *stack; /* NULL: it was not sent (again) */
	const struct pbp_frame *frames;
	uint32_t codes;
	struct pbp_wait wait; /* its sample is `sample`, too */
	uint32_t waits;
} sent;

static void set_target(void)
{
	__u32 tgid = host.task.tgid;

	bpf_map_update_elem(&targets, &tgid, &image.target.layout, BPF_ANY);
}

static void start(int version)
{
	image__init(&image, version);
	host_forget_maps();
	host.task = (struct task_struct){.pid = 4712, .tgid = 4711, .start_time = 1};
	host.task.thread.fsbase = image__at(&image, IMAGE_THREAD_ID);
	host.task.group_leader = &host.task;
	host.task.thread_pid = &host.task_ids;
	set_target();
}

static void take_record(const struct host_record *record)
{
	__u32 type = load_u32(record->bytes);

	switch (type) {
	case PBP_SAMPLE:
		sent.sample_size = record->size;
		memcpy(&sent.sample, record->bytes, record->size);
		break;
	case PBP_STACK:
		sent.stack = record->bytes;
		sent.frames = (const struct pbp_frame *)(sent.stack + 1);
		cr_assert_eq(record->size,
			     sizeof(*sent.stack) + sent.stack->count * sizeof(struct pbp_frame));
		break;
	case PBP_CODE:
		sent.codes++;
		break;
	case PBP_WAIT:
		sent.waits++;
		memcpy(&sent.wait, record->bytes, record->size);
		sent.sample_size = record->size - offsetof(struct pbp_wait, sample);
		memcpy(&sent.sample, &sent.wait.sample, sent.sample_size);
		break;
	}
}

/* One tick, with all that was sent before kept in mind. */
static void tick_of(struct perf_event *event, bool use_loop)
{
	/*
	 * The program's one pointer is to both: the registers, and the kernel's own view with the event
	 * behind them.
	 */
	union {
		struct bpf_perf_event_data_kern kern;
		struct bpf_perf_event_data data;
	} context = {.kern.event = event};

	_Static_assert(sizeof(context.data) <= offsetof(struct bpf_perf_event_data_kern, event),
		       "no overlap");
	context.data.regs.cs = user_mode ? 3 : 0;

	host_forget_records();
	memset(&sent, 0, sizeof(sent));
	host.reads = host.read_bytes = 0;
	if (use_loop)
		on_tick(&context.data);
	else
		on_tick_bounded(&context.data);
	for (size_t i = 0; i < host.records.len; i++)
		take_record(&host.records.items[i]);
}

static void tick_again(bool use_loop)
{
	struct perf_event event = {.cpu = -1};

	tick_of(&event, use_loop);
}

static void forget_sent(void)
{
	__u32 first = 0;

	memset(bpf_map_lookup_elem(&sent_stacks, &first), 0, SENT_STACKS * sizeof(__u64));
	memset(bpf_map_lookup_elem(&sent_codes, &first), 0, SENT_CODES * sizeof(__u64));
}

/* One tick that sends all it knows. */
static void take_tick(void)
{
	forget_sent();
	tick_again(true);
	cr_assert(sent.sample_size, "no sample");
}

static __u64 counted(__u32 counter)
{
	return *bpf_map_lookup_elem(&counters, &counter);
}

static struct scratch *scratch(void)
{
	__u32 cpu = 0;

	return bpf_map_lookup_elem(&scratch_memory, &cpu);
}

static struct pbp_frame expected[IMAGE_MAX_DEPTH];
static uint64_t addresses[IMAGE_MAX_DEPTH];

/* Are the frames sent the first `count` of the image's? The leaf's instruction is in the sample. */
static void expect_frames(size_t count, const char *what)
{
	size_t whole = image__expect(&image, expected, addresses);

	cr_assert(sent.stack, "%s: no stack", what);
	cr_assert_leq(count, whole);
	cr_assert_eq(sent.stack->count, count, "%s: %u frames, not %zu", what, sent.stack->count, count);
	cr_expect_eq(sent.sample.stack_id, sent.stack->id);
	cr_expect_eq(sent.sample.leaf_instr, expected[0].instr, "%s", what);
	expected[0].instr = 0;
	for (size_t i = 0; i < count; i++) {
		/* A stack that is cut off ends before the marker that would set the flag. */
		__u32 flags = i + 1 == count && count < whole ? sent.frames[i].flags : expected[i].flags;

		cr_assert(sent.frames[i].code == expected[i].code &&
				  sent.frames[i].instr == expected[i].instr &&
				  sent.frames[i].ident == expected[i].ident && sent.frames[i].flags == flags,
			  "%s: frame %zu", what, i);
	}
}

static void expect_whole(const char *what)
{
	expect_frames(image__expect(&image, expected, addresses), what);
	cr_expect_eq(sent.sample.status, PBP_STATUS_COMPLETE, "%s: status %u", what, sent.sample.status);
	cr_expect_eq(sent.sample_size, PBP_SAMPLE_SHORT);
}

/* The walk ended before frame `count`, at `tail`. */
static void expect_tail(enum pbp_status status, size_t count, __u64 tail, const char *what)
{
	cr_expect_eq(sent.sample.status, status, "%s: status %u", what, sent.sample.status);
	cr_assert_eq(sent.sample_size, sizeof(struct pbp_sample), "%s", what);
	cr_expect_eq(sent.sample.tail_frame, tail, "%s", what);
	if (!count) {
		cr_expect(!sent.stack && !sent.sample.stack_id && !sent.sample.link_frame, "%s", what);
		return;
	}
	expect_frames(count, what);
	cr_expect_eq(sent.sample.link_frame, addresses[count - 1], "%s", what);
}

/* main -> f -> C -> generator -> g -> g */
static void push_ordinary(void)
{
	image__push(&image, IMAGE_PLAIN, 0, 10, 2);
	image__push(&image, IMAGE_PLAIN, 1, 20, 3);
	image__push(&image, IMAGE_MARKER, 0, 0, 0);
	image__push(&image, IMAGE_GENERATOR, 2, 30, 0);
	image__push(&image, IMAGE_PLAIN, 3, 40, 1);
	image__push(&image, IMAGE_PLAIN, 3, 50, 1);
}

static void recycle(uint32_t code, uint32_t version)
{
	image__set_version(&image, code, version);
	for (size_t i = 0; i < image.depth; i++)
		if (image.stack[i].frame.code == image__code(&image, code))
			image.stack[i].frame.ident = image__ident(&image, code);
	if (image.target.layout.in_generation) {
		__u64 address = image__at(&image, IMAGE_INTERP) + image.target.layout.in_generation;

		image__put(address, image__get(address) + 1, 8);
	}
}
