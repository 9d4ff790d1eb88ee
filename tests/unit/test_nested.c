/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that has entered one interpreter from another: the frames of both, as one stack. The second memory
 * image is the interpreter that it comes from.
 */
#include "kernel_side.h"

enum { INNER_ID = 7 };

static struct image outer;

static void link_interpreters(uint64_t first, uint64_t second)
{
	image__put(image.target.layout.interpreters_head, first, 8);
	image__put(first + image.target.offsets.interp_next, second, 8);
}

/* The thread is in an interpreter with an id, entered from the main one. */
static void start_nested(int version)
{
	start(version);
	image__init(&outer, version);
	image__make_thread(&outer, image__at(&outer, IMAGE_TSTATE), image__at(&outer, IMAGE_INTERP),
			   host.task.thread.fsbase);
	image__put(image__at(&image, IMAGE_INTERP) + image.target.offsets.interp_id, INNER_ID, 8);
	link_interpreters(image__at(&image, IMAGE_INTERP), image__at(&outer, IMAGE_INTERP));
	image.target.layout.main_interp = image__at(&outer, IMAGE_INTERP);
	set_target();
	push_ordinary();
	for (uint32_t i = 0; i < 3; i++) {
		if (i == 2)
			image__push(&outer, IMAGE_MARKER, 0, 0, 0);
		image__push(&outer, IMAGE_PLAIN, 10 + i, 100 + i, i);
	}
}

static void free_both(void)
{
	image__free(&image);
	image__free(&outer);
}

static bool is_same(const struct pbp_frame *frame, const struct pbp_frame *wanted)
{
	return frame->code == wanted->code && frame->instr == wanted->instr &&
	       frame->ident == wanted->ident && frame->flags == wanted->flags;
}

/* Of the interpreter that runs, an end with its id, and then of the one that it was entered from. */
static void expect_joined(bool with_outer, const char *what)
{
	size_t count = image__expect(&image, expected, addresses);

	expected[0].instr = 0;
	expected[count++] = (struct pbp_frame){.instr = INNER_ID, .flags = PBP_FRAME_INTERP};
	if (with_outer)
		count += image__expect(&outer, expected + count, addresses);
	cr_expect_eq(sent.sample.status, PBP_STATUS_COMPLETE, "%s: status %u", what, sent.sample.status);
	cr_expect_eq(sent.sample.tstate, image__at(&image, IMAGE_TSTATE), "%s", what);
	cr_assert(sent.stack, "%s: no stack", what);
	cr_assert_eq(sent.stack->count, count, "%s: %u frames, not %zu", what, sent.stack->count, count);
	for (size_t i = 0; i < count; i++)
		cr_assert(is_same(&sent.frames[i], &expected[i]), "%s: frame %zu", what, i);
}

Test(nested, one_stack)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		start_nested(version);
		take_tick();
		expect_joined(true, "with bpf_loop");
		forget_sent();
		tick_again(false);
		expect_joined(true, "with a bounded loop");
		free_both();
	}
}

/* Stacks that differ in nothing but the interpreter are two; the leaf's instruction makes no difference. */
Test(nested, stack_ids)
{
	struct image_frame *leaf;
	__u64 id;

	start_nested(14);
	take_tick();
	id = sent.sample.stack_id;
	leaf = &image.stack[image.depth - 1];
	image__put(leaf->address + image.target.offsets.frame_instr, leaf->frame.instr + 2, 8);
	tick_again(true);
	cr_expect_eq(sent.sample.stack_id, id);
	image__put(image__at(&image, IMAGE_INTERP) + image.target.offsets.interp_id, INNER_ID + 1, 8);
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id);
	free_both();
}

/* The main interpreter has no callers in others, and what another thread does there is none either. */
Test(nested, not_nested)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		start_nested(version);
		image.target.layout.main_interp = image__at(&image, IMAGE_INTERP);
		set_target();
		take_tick();
		expect_whole("in the main interpreter");
		image.target.layout.main_interp = 0;
		set_target();
		take_tick();
		expect_whole("the main interpreter is not known");

		image.target.layout.main_interp = image__at(&outer, IMAGE_INTERP);
		set_target();
		image__make_thread(&outer, image__at(&outer, IMAGE_TSTATE), image__at(&outer, IMAGE_INTERP),
				   12345);
		image__make_thread(&image, image__at(&image, IMAGE_TSTATE), image__at(&image, IMAGE_INTERP),
				   host.task.thread.fsbase); /* the holder of the GIL again */
		take_tick();
		expect_joined(false, "another thread");
		free_both();
	}
}

/* The other thread states are looked for once in a while; one that was found is checked each time. */
Test(nested, searches)
{
	__u64 walks;

	start_nested(13);
	link_interpreters(image__at(&image, IMAGE_INTERP), 0);
	take_tick();
	expect_joined(false, "not linked yet");
	link_interpreters(image__at(&image, IMAGE_INTERP), image__at(&outer, IMAGE_INTERP));
	walks = counted(PBP_COUNTER_LIST_WALKS);
	take_tick();
	expect_joined(false, "not looked for again yet");
	cr_expect_eq(counted(PBP_COUNTER_LIST_WALKS), walks);
	host.now_ns += RETRY_NS;
	take_tick();
	expect_joined(true, "found");
	image__make_thread(&outer, image__at(&outer, IMAGE_TSTATE), image__at(&outer, IMAGE_INTERP),
			   12345);
	take_tick();
	expect_joined(false, "it is another thread's now");
	free_both();
}

/* Lists that lead in circles, and callers without end. */
Test(nested, garbage)
{
	for (int use_loop = 0; use_loop < 2; use_loop++) {
		start_nested(14);
		image__put(image__at(&outer, IMAGE_INTERP) + image.target.offsets.interp_next,
			   image__at(&image, IMAGE_INTERP), 8);
		host.task.pid += use_loop;
		tick_again(use_loop);
		cr_expect_leq(host.reads, 4 * PBP_MAX_THREADS, "reads: %llu", host.reads);
		cr_expect_leq(sent.stack->count, 50u);
		free_both();
	}
}

Test(nested, callers_that_are_not_resident)
{
	start_nested(14);
	image__put(outer.stack[1].address + image.target.offsets.frame_previous, 8, 8);
	take_tick();
	cr_expect_eq(sent.sample.status, PBP_STATUS_FRAME_FAULT);
	cr_expect(sent.sample.flags & PBP_SAMPLE_NESTED);
	cr_expect_eq(sent.sample.tail_frame, 8u);
	free_both();
}

/* That the walk ended before it came to the callers in other interpreters is told. */
Test(nested, deep)
{
	start_nested(14);
	host_set_knob(&max_frames, 3);
	take_tick();
	expect_tail(PBP_STATUS_DEEP, 3, image.stack[image.depth - 5].address, "a budget of three");
	cr_expect(sent.sample.flags & PBP_SAMPLE_NESTED);
	host_set_knob(&max_frames, PBP_MAX_FRAMES);
	take_tick();
	expect_joined(true, "a budget for all");
	cr_expect(!(sent.sample.flags & PBP_SAMPLE_NESTED));
	free_both();
}
