/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks read from outside, on memory images (image.h): the same frames as the kernel side walks, in one call
 * once they are known, and never a mixture of two stacks while a thread changes them.
 */
#include "kernel_side.h"
#include "py/unwind.h"

#include <pthread.h>
#include <stdatomic.h>

static struct unwinder unwinder;
static struct thread_stack stack;

static struct py_thread image_thread(void)
{
	return (struct py_thread){.tstate = image__at(&image, IMAGE_TSTATE),
				  .interp = image__at(&image, IMAGE_INTERP),
				  .thread_id = image__at(&image, IMAGE_THREAD_ID)};
}

static void begin(int version)
{
	int minor = image_minor(version);
	struct py_thread thread;

	start(version);
	thread = image_thread();
	cr_assert_eq(unwinder__init(&unwinder, &image.target), 0);
	cr_assert_eq(unwinder__find_interpreters(&unwinder), 0);
	cr_assert_eq(unwinder.interps.len, 1);
	thread_stack__init(&stack, &thread);
	if (minor < 15 && minor > 11) /* where every stack begins */
		image__push(&image, IMAGE_MARKER, 0, 0, 0);
}

static void end(void)
{
	thread_stack__free(&stack);
	unwinder__free(&unwinder);
	image__free(&image);
}

static enum unwind_result read_stack(void)
{
	struct thread_stack *stacks[] = {&stack};

	cr_assert_eq(unwinder__read(&unwinder, stacks, 1), 0);
	return stack.result;
}

/* Nothing but a scheduler that interrupts the call makes a quiet stack come out as torn: tried again. */
static void read_quiet(enum unwind_result want, const char *what)
{
	for (int i = 0; i < 5 && read_stack() == UNWIND_TORN; i++)
		;
	cr_assert_eq(stack.result, want, "%s: %d", what, stack.result);
}

static void expect_stack(const char *what)
{
	size_t whole = image__expect(&image, expected, addresses);

	read_quiet(UNWIND_OK, what);
	cr_assert_eq(stack.frames.len, whole, "%s: %zu frames, not %zu", what, stack.frames.len, whole);
	for (size_t i = 0; i < whole; i++) {
		const struct pbp_frame *frame = &stack.frames.items[i];

		cr_assert(frame->code == expected[i].code && frame->instr == expected[i].instr &&
				  frame->ident == expected[i].ident && frame->flags == expected[i].flags,
			  "%s: frame %zu", what, i);
		cr_assert_eq(stack.addresses.items[i], addresses[i]);
	}
}

Test(unwind, ordinary_stack_of_every_version)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		int minor = image_minor(version);

		begin(version);
		push_ordinary();
		expect_stack("first");
		expect_stack("again");
		cr_expect_eq(stack.flags, PBP_SAMPLE_ATTACHED, "3.%d", minor);
		if (minor > 13) {
			image__put(image__at(&image, IMAGE_TSTATE) + image.target.offsets.thread_executor,
				   0x1000, 8);
			expect_stack("in code that the JIT made");
			cr_expect_eq(stack.flags, PBP_SAMPLE_ATTACHED | PBP_SAMPLE_JIT, "3.%d", minor);
		}
		if (version >= IMAGE_FREE_THREADED) {
			image__put(image__at(&image, IMAGE_TSTATE) + image.target.offsets.thread_state, 2, 4);
			expect_stack("in a stop-the-world pause");
			cr_expect(stack.flags & PBP_SAMPLE_SUSPENDED && !(stack.flags & PBP_SAMPLE_ATTACHED));
		}
		end();
	}
}

/* One image, two walkers. */
Test(unwind, as_the_kernel_side)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		for (unsigned int seed = 1; seed <= 60; seed++) {
			begin(version);
			image.seed = seed;
			image__push_random(&image, 1 + rand_r(&image.seed) % 400);
			take_tick();
			if (sent.sample.status == PBP_STATUS_NO_FRAMES) {
				read_quiet(UNWIND_NO_FRAMES, "no frames");
				end();
				continue;
			}
			cr_assert_eq(sent.sample.status, PBP_STATUS_COMPLETE);
			expect_whole("kernel side");
			expect_stack("user side");
			for (int i = 0; i < 8; i++) {
				uint32_t pops = rand_r(&image.seed) % 40;

				while (pops-- && image.depth > 2)
					image__pop(&image);
				image__push_random(&image, rand_r(&image.seed) % 40);
				take_tick();
				if (sent.sample.status == PBP_STATUS_COMPLETE)
					expect_stack("after calls and returns");
			}
			end();
		}
	}
}

Test(unwind, one_call_in_the_steady_state)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		uint64_t calls, slow;

		begin(version);
		for (uint32_t i = 0; i < 30; i++)
			image__push(&image,
				    i == 7   ? IMAGE_MARKER
				    : i == 8 ? IMAGE_GENERATOR
					     : IMAGE_PLAIN,
				    i, i, 3);
		for (int i = 0; i < 5; i++)
			expect_stack("30 frames");
		calls = image.target.remote.stats.calls;
		slow = unwinder.stats.slow;
		for (int i = 0; i < 1000; i++)
			expect_stack("steady");
		cr_expect_leq(image.target.remote.stats.calls - calls, 1000 + unwinder.stats.slow - slow);
		end();
	}
}

Test(unwind, deep)
{
	begin(15);
	for (uint32_t i = 0; i < 4000; i++)
		image__push(&image, IMAGE_PLAIN, i % 40, 3, 4);
	cr_assert_geq(image.chunk, 20);
	expect_stack("4000 frames");
	for (int i = 0; i < 3000; i++)
		image__pop(&image);
	expect_stack("1000 frames");
	end();
}

/* Code objects that are freed and made again at the same address. */
Test(unwind, identities)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		begin(version);
		push_ordinary();
		expect_stack("before");
		for (uint32_t number = 7; number < 20; number++) {
			recycle(3, number);
			expect_stack("recycled");
		}
		end();
	}
}

Test(unwind, thread_state_of_another_thread)
{
	begin(14);
	push_ordinary();
	expect_stack("its own");
	image__put(stack.thread.tstate + image.target.offsets.thread_thread_id, 4711, 8);
	read_quiet(UNWIND_GONE, "another thread's");
	end();
}

Test(unwind, chains_that_lead_nowhere)
{
	begin(14);
	push_ordinary();
	expect_stack("sound");
	image__put(image.stack[1].address + image.target.offsets.frame_previous, 16, 8);
	read_quiet(UNWIND_UNREADABLE, "previous");
	image__put(image.stack[1].address + image.target.offsets.frame_previous, image.stack[3].address, 8);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(read_stack(), UNWIND_TORN, "a circle");
	image__put(stack.thread.tstate + image.target.offsets.thread_current_frame, 24, 8);
	read_quiet(UNWIND_UNREADABLE, "current_frame");
	end();
}

/*
 * Where callers do not show that they have not returned: what shows that it runs does, although the thread
 * state is ahead; while no frame does, a known call is enough.
 */
Test(unwind, between_calls)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		const struct image_frame *leaf;

		begin(version);
		if (image.target.offsets.frame_stacktop == PY_ABSENT) {
			end();
			continue;
		}
		push_ordinary();
		for (int i = 0; i < 3; i++)
			expect_stack("a call that is known now");
		leaf = &image.stack[image.depth - 1];
		image__set_running(&image, leaf, false);
		expect_stack("it is being entered");

		image__set_running(&image, leaf, true);
		image.depth--;
		image__publish(&image);
		image.depth++;
		expect_stack("the thread state is ahead");

		image__publish(&image);
		image__pop(&image);
		expect_stack("it has returned");
		image__push(&image, IMAGE_PLAIN, 9, 50, 1);
		image__set_running(&image, &image.stack[image.depth - 1], false);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(read_stack(), UNWIND_TORN, "it calls a function that it never has");
		end();
	}
}

static atomic_bool stop;

static void spend(unsigned int turns)
{
	while (turns--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* Functions 1 and 2 recur by turns in the same memory. No interpreter calls faster than this. */
static void *take_turns(void *arg)
{
	unsigned int seed = 1;
	size_t base = image.depth;

	while (!stop) {
		uint32_t code = 1 + rand_r(&seed) % 2, depth = 3 + rand_r(&seed) % 8;

		for (uint32_t i = 0; i < depth; i++) {
			image__push(&image, IMAGE_PLAIN, code, 5, 3);
			spend(80);
		}
		spend(rand_r(&seed) % 4000);
		while (image.depth > base) {
			image__pop(&image);
			spend(40);
		}
	}
	return NULL;
}

/* Everything but the outermost frame is one function, recurring. */
static bool is_possible(void)
{
	size_t len = stack.frames.len;

	if (stack.frames.items[len - 1].code != image__code(&image, 0))
		return false;
	for (size_t i = 0; i + 1 < len; i++)
		if (stack.frames.items[i].code != stack.frames.items[0].code)
			return false;
	return true;
}

Test(unwind, never_a_mixture)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		uint64_t held = 0, impossible = 0;
		pthread_t thread;

		begin(version);
		image__push(&image, IMAGE_PLAIN, 0, 1, 2);
		stop = false;
		pthread_create(&thread, NULL, take_turns, NULL);
		for (int i = 0; i < 30000; i++) {
			if (read_stack() != UNWIND_OK)
				continue;
			held++;
			impossible += !is_possible();
		}
		stop = true;
		pthread_join(thread, NULL);
		cr_expect_geq(held, 10000, "%lu held", held);
		cr_expect_eq(impossible, 0, "%lu of %lu impossible, version %d", impossible, held, version);
		end();
	}
}
