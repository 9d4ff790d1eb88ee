/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread is at besides running its frames, as both sides tell it of one memory image: in which frame
 * the collection of garbage began, by which thread, and whether an exception is being handled.
 */
#include "kernel_side.h"
#include "py/unwind.h"

#define EXCEPTION 1 << 30

enum { OBJECTS = IMAGE_RUNTIME + 2048, ITEMS = IMAGE_INTERP_2 };

static struct unwinder unwinder;
static struct thread_stack stack;

static void begin(int version)
{
	int minor = image_minor(version);
	struct py_thread thread;

	start(version);
	host_set_knob(&want_exceptions, 1);
	thread = (struct py_thread){.tstate = image__at(&image, IMAGE_TSTATE),
				    .interp = image__at(&image, IMAGE_INTERP),
				    .thread_id = image__at(&image, IMAGE_THREAD_ID)};
	thread_stack__init(&stack, &thread);
	cr_assert_eq(unwinder__init(&unwinder, &image.target), 0);
	unwinder.want_exceptions = true;
	cr_assert_eq(unwinder__find_interpreters(&unwinder), 0);
	if (minor < 15 && minor > 11) /* where every stack begins */
		image__push(&image, IMAGE_MARKER, 0, 0, 0);
}

static void end(void)
{
	thread_stack__free(&stack);
	unwinder__free(&unwinder);
	image__free(&image);
}

/* Both sides. What user space does not know of is not asked for. */
static void expect_flags(uint32_t flags, const char *what)
{
	struct thread_stack *stacks[] = {&stack};

	take_tick();
	cr_expect_eq(sent.sample.flags, flags, "%s: kernel side: %u", what, sent.sample.flags);
	tick_again(false);
	cr_expect_eq(sent.sample.flags, flags, "%s: kernel side, bounded: %u", what, sent.sample.flags);
	take_tick();
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 5; k++) {
			cr_assert_eq(unwinder__read(&unwinder, stacks, 1), 0);
			if (stack.result != UNWIND_TORN)
				break; /* else a scheduler has interrupted the call */
		}
		cr_expect_eq(stack.flags, flags, "%s: user side: %u", what, stack.flags);
	}
}

/* --- collections --- */

static void collect(uint64_t frame)
{
	const struct py_offsets *offsets = &image.target.offsets;
	uint64_t interp = image__at(&image, IMAGE_INTERP);

	image__put(image.target.layout.gc_collecting ?: interp + offsets->interp_gc_collecting, 1, 4);
	if (py_offsets__has(offsets->interp_gc_frame))
		image__put(interp + offsets->interp_gc_frame, frame, 8);
}

static void attach(bool on)
{
	const struct py_offsets *offsets = &image.target.offsets;
	uint64_t tstate = image__at(&image, IMAGE_TSTATE);

	if (offsets->thread_state != PY_ABSENT)
		image__put(tstate + offsets->thread_state, on, 4);
	else if (offsets->thread_status != PY_ABSENT)
		image__put(tstate + offsets->thread_status, on << 4, 4);
	else
		image__put(image.target.layout.gil_tstate, on ? tstate : 0, 8);
}

/* To 3.14, who holds the GIL; of free-threaded builds, who has stopped the others, if that is known. */
Test(activity, who_collects)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		const struct py_offsets *offsets = &image.target.offsets;
		bool by_attached = version < 15;

		begin(version);
		push_ordinary();
		expect_flags(PBP_SAMPLE_ATTACHED, "nothing");
		collect(0x1000);
		expect_flags(PBP_SAMPLE_ATTACHED | (by_attached ? PBP_SAMPLE_GC : 0), "attached");
		attach(false);
		expect_flags(0, "another thread");
		if (offsets->interp_requester != PY_ABSENT) {
			attach(true);
			image__put(image__at(&image, IMAGE_INTERP) + offsets->interp_requester,
				   image__at(&image, IMAGE_TSTATE), 8);
			expect_flags(PBP_SAMPLE_ATTACHED | PBP_SAMPLE_GC, "it has stopped the others");
			cr_expect_eq(stack.collection, SIZE_MAX);
		}
		end();
	}
}

/* Frames of the image, with that of the collection before the one at `index`. */
static void expect_collection(size_t index, const char *what)
{
	size_t whole = image__expect(&image, expected, addresses);

	expect_flags(PBP_SAMPLE_ATTACHED | PBP_SAMPLE_GC, what);
	cr_expect_eq(stack.collection, index, "%s: %zu", what, stack.collection);
	cr_assert_eq(sent.stack->count, whole + 1, "%s", what);
	for (size_t i = 0; i < whole; i++) {
		const struct pbp_frame *frame = &sent.frames[i + (i >= index)];
		uint64_t instr = i || !index ? expected[i].instr : 0;

		cr_expect(frame->code == expected[i].code && frame->instr == instr &&
				  frame->ident == expected[i].ident && frame->flags == expected[i].flags,
			  "%s: frame %zu", what, i);
	}
	cr_expect(sent.frames[index].flags == PBP_FRAME_GC && !sent.frames[index].code, "%s", what);
}

Test(activity, where_a_collection_began)
{
	for (int version = 15; version <= IMAGE_LAST_VERSION; version += 3) {
		__u64 id;

		begin(version);
		push_ordinary();
		take_tick();
		id = sent.sample.stack_id;
		collect(image.stack[image.depth - 1].address);
		expect_collection(0, "the innermost");
		cr_expect_neq(sent.sample.stack_id, id, "another stack");
		id = sent.sample.stack_id;
		collect(image.stack[1].address);
		expect_collection(3, "below a marker");
		cr_expect_neq(sent.sample.stack_id, id, "another stack");
		collect(image.stack[0].address);
		expect_collection(4, "the outermost");
		collect(image__at(&image, IMAGE_TSTATE) + image.target.layout.ts_base_frame);
		expect_collection(5, "outside of all");
		while (image.depth)
			image__pop(&image);
		expect_flags(PBP_SAMPLE_ATTACHED, "no frames");
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_FRAMES);
		end();
	}
}

/* A budget that ends there or thereabouts. */
Test(activity, where_a_deep_collection_began)
{
	for (__u32 budget = 1; budget <= 6; budget++) {
		size_t whole;

		begin(15);
		host_set_knob(&max_frames, budget);
		push_ordinary();
		collect(image.stack[1].address);
		whole = image__expect(&image, expected, addresses);
		take_tick();
		host_set_knob(&max_frames, PBP_MAX_FRAMES);
		if (budget <= 3) {
			expect_tail(PBP_STATUS_DEEP, budget, addresses[budget], "before it");
			cr_expect(!(sent.sample.flags & PBP_SAMPLE_GC));
		} else {
			cr_expect(sent.sample.flags & PBP_SAMPLE_GC);
			cr_expect_eq(sent.stack->count, budget < 6 ? 5 : whole + 1, "budget %u", budget);
			cr_expect_eq(sent.frames[3].flags, PBP_FRAME_GC);
			cr_expect_eq(sent.sample.link_frame, budget < 6 ? addresses[3] : 0);
			cr_expect_eq(sent.sample.tail_frame, budget < 6 ? addresses[4] : 0);
		}
		end();
	}
}

/* --- exceptions --- */

/* An object whose type has these flags. */
static uint64_t make_object(uint32_t number, uint64_t flags)
{
	uint64_t object = image__at(&image, OBJECTS + number * 768), type = object + 64;

	image__put(object + image.target.offsets.object_type, type, 8);
	image__put(type + image.target.offsets.type_flags, flags, 8);
	return object;
}

static void put_item(uint64_t item, uint64_t value, uint64_t previous)
{
	image__put(item + image.target.offsets.exception_value, value, 8);
	image__put(item + image.target.offsets.exception_previous, previous, 8);
}

Test(activity, exceptions)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		const struct py_offsets *offsets = &image.target.offsets;
		uint64_t tstate, own, of_generator, none, exception;

		begin(version);
		push_ordinary();
		tstate = image__at(&image, IMAGE_TSTATE);
		own = tstate + offsets->thread_exc_state;
		of_generator = image__at(&image, ITEMS);
		none = make_object(0, 1 << 9);
		exception = make_object(1, EXCEPTION);
		image__put(tstate + offsets->thread_exc_info, own, 8);
		expect_flags(PBP_SAMPLE_ATTACHED, "none");
		put_item(own, none, 0);
		expect_flags(PBP_SAMPLE_ATTACHED, "None");
		put_item(own, exception, 0);
		expect_flags(PBP_SAMPLE_ATTACHED | PBP_SAMPLE_HANDLING, "one");
		image__put(tstate + offsets->thread_current_exception, exception, 8);
		expect_flags(PBP_SAMPLE_ATTACHED | PBP_SAMPLE_HANDLING | PBP_SAMPLE_RAISING,
			     "and one is raised");
		image__put(tstate + offsets->thread_current_exception, 0, 8);
		image__put(tstate + offsets->thread_exc_info, of_generator, 8);
		put_item(of_generator, none, own);
		expect_flags(PBP_SAMPLE_ATTACHED | PBP_SAMPLE_HANDLING, "by the caller of a generator");
		put_item(own, none, 0);
		expect_flags(PBP_SAMPLE_ATTACHED, "by neither");
		put_item(of_generator, exception, own);
		expect_flags(PBP_SAMPLE_ATTACHED | PBP_SAMPLE_HANDLING, "by a generator");
		/* What is made to look like a list. */
		put_item(of_generator, 0, of_generator);
		expect_flags(PBP_SAMPLE_ATTACHED, "a list without end");
		put_item(of_generator, 0, 0x1000);
		expect_flags(PBP_SAMPLE_ATTACHED, "one that leads nowhere");
		image__put(tstate + offsets->thread_exc_info, UINT64_MAX - 3, 8);
		expect_flags(PBP_SAMPLE_ATTACHED, "one that is nowhere");
		end();
	}
}

Test(activity, exceptions_that_nobody_asked_for)
{
	begin(14);
	host_set_knob(&want_exceptions, 0);
	unwinder.want_exceptions = false;
	push_ordinary();
	image__put(image__at(&image, IMAGE_TSTATE) + image.target.offsets.thread_exc_info,
		   image__at(&image, ITEMS), 8);
	put_item(image__at(&image, ITEMS), make_object(1, EXCEPTION), 0);
	expect_flags(PBP_SAMPLE_ATTACHED, "one");
	end();
}
