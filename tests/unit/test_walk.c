/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walker of the kernel side on memory images: what it makes of ordinary and of garbage chains, and of
 * code objects that are recycled. What user space reads of the same images (py/tail.c) must be the same.
 */
#include "kernel_side.h"
#include "py/code.h"
#include "py/tail.h"

/* ---- chains ---- */

Test(walk, ordinary_stack_of_every_version)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		push_ordinary();
		take_tick();
		expect_whole("with bpf_loop");
		cr_expect_eq(sent.sample.flags, PBP_SAMPLE_ATTACHED);
		cr_expect_eq(sent.frames[2].flags, PBP_FRAME_C_BELOW, "the generator was called from C");
		cr_expect_eq(sent.sample.tstate, image__at(&image, IMAGE_TSTATE));
		cr_expect(sent.sample.tgid == 4711 && sent.sample.tid == 4712);
		cr_expect_eq(sent.sample.time_ns, host.now_ns);
		forget_sent();
		tick_again(false);
		expect_whole("with a bounded loop");
		image__free(&image);
	}
}

/*
 * The chain of 3.12 to 3.14 ends in the marker of the first entry from C; that of 3.15 in the thread's
 * sentinel, which is none.
 */
Test(walk, outermost_frame)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		int minor = image_minor(version);

		start(version);
		if (minor < 15)
			image__push(&image, IMAGE_MARKER, 0, 0, 0);
		image__push(&image, IMAGE_PLAIN, 0, 10, 2);
		take_tick();
		expect_whole("one frame");
		cr_expect_eq(sent.frames[0].flags, minor < 15 ? PBP_FRAME_C_BELOW : 0);
		image__free(&image);
	}
}

Test(walk, no_frames)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		take_tick();
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_FRAMES);
		cr_expect(!sent.stack && !sent.sample.stack_id && sent.sample_size == PBP_SAMPLE_SHORT);
		image__push(&image, IMAGE_MARKER, 0, 0, 0);
		take_tick();
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_FRAMES, "an entry marker alone");
		image__free(&image);
	}
}

/* A stack is interned: the same while only the leaf moves on, another when anything else does. */
Test(walk, stack_ids)
{
	__u64 id;
	struct image_frame *leaf, *caller;

	start(14);
	push_ordinary();
	leaf = &image.stack[image.depth - 1];
	caller = leaf - 1;
	take_tick();
	id = sent.sample.stack_id;

	image__put(leaf->address + image.target.offsets.frame_instr, leaf->frame.instr += 2, 8);
	tick_again(true);
	cr_expect_eq(sent.sample.stack_id, id, "the leaf's instruction is apart");
	cr_expect(!sent.stack, "and the stack is not sent again");
	cr_expect_eq(sent.sample.leaf_instr, leaf->frame.instr);

	image__put(caller->address + image.target.offsets.frame_instr, caller->frame.instr += 2, 8);
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id, "a caller's instruction");
	expect_whole("moved");
	id = sent.sample.stack_id;

	image__set_version(&image, 3, 7);
	leaf->frame.ident = caller->frame.ident = 7;
	image__put(image__at(&image, IMAGE_INTERP) + image.target.offsets.interp_generation, 1, 8);
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id, "an identity");
	expect_whole("recycled");
	id = sent.sample.stack_id;

	image.target.layout.epoch++;
	set_target();
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id, "the epoch");
	id = sent.sample.stack_id;

	host.task.tgid = 99;
	set_target();
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id, "the process");
	id = sent.sample.stack_id;

	/* Code that never got a version has no identity but its address. */
	image__set_version(&image, 5, 0);
	image__set_version(&image, 6, 0);
	image__pop(&image);
	image__push(&image, IMAGE_PLAIN, 5, 7, 0);
	tick_again(true);
	id = sent.sample.stack_id;
	image__pop(&image);
	image__push(&image, IMAGE_PLAIN, 6, 7, 0);
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id, "the code object");
	id = sent.sample.stack_id;

	image__pop(&image);
	tick_again(true);
	cr_expect_neq(sent.sample.stack_id, id, "the depth");
	image__free(&image);
}

/* Frames that differ in nothing but whether C called them. */
Test(walk, stack_ids_with_markers)
{
	__u64 id;

	start(13);
	image__push(&image, IMAGE_PLAIN, 0, 1, 0);
	image__push(&image, IMAGE_PLAIN, 0, 1, 0);
	take_tick();
	id = sent.sample.stack_id;
	image__pop(&image);
	image__push(&image, IMAGE_MARKER, 0, 0, 0);
	image__push(&image, IMAGE_PLAIN, 0, 1, 0);
	tick_again(true);
	expect_whole("with a marker");
	cr_expect_neq(sent.sample.stack_id, id);
	image__free(&image);
}

/* ---- where frames lie ---- */

/* Every position of a frame across a page border and at the end of a mapping. */
Test(walk, page_borders)
{
	for (int version = IMAGE_FIRST_TABLE; version <= IMAGE_LAST_VERSION; version++) {
		uint32_t bytes;

		start(version);
		bytes = image.target.layout.fr_bytes;
		image__push(&image, IMAGE_PLAIN, 0, 1, 0);
		image__push(&image, IMAGE_PLAIN, 1, 2, 0);
		for (uint32_t before = 8; before <= 2 * bytes; before += 8) {
			struct image_frame *leaf = &image.stack[image.depth - 1];

			leaf->address = image__chunk(&image, 0) + 8192 - before;
			image__write_frame(&image, leaf, image.stack[0].address);
			image__publish(&image);
			take_tick();
			expect_whole("across a border");

			/* The end of the chunk is the end of what is mapped. */
			leaf->address = image__chunk(&image, 0) + IMAGE_CHUNK - bytes - (before - 8);
			memset((void *)(uintptr_t)leaf->address, 0, bytes);
			image__put(leaf->address + image.target.offsets.frame_executable, leaf->frame.code,
				   8);
			image__put(leaf->address + image.target.offsets.frame_previous,
				   image.stack[0].address, 8);
			image__put(leaf->address + image.target.offsets.frame_instr, leaf->frame.instr, 8);
			image__publish(&image);
			take_tick();
			expect_whole("at the end");
		}
		/* A generator's, with which a mapping begins. */
		image.stack[1].address = image__chunk(&image, 2);
		image__write_frame(&image, &image.stack[1], image.stack[0].address);
		image__push(&image, IMAGE_PLAIN, 2, 3, 0);
		take_tick();
		expect_whole("at the start");
		image__pop(&image);
		/* A frame that the mapping ends in. */
		image.stack[1].address = image__chunk(&image, 0) + IMAGE_CHUNK - bytes + 8;
		image__publish(&image);
		take_tick();
		expect_tail(PBP_STATUS_FRAME_FAULT, 0, image.stack[1].address, "juts out");
		image__free(&image);
	}
}

/*
 * Deep stacks take a read for each page, not for each frame, and none for the identity of code that recurs.
 */
Test(walk, reads)
{
	start(14);
	for (int i = 0; i < 300; i++)
		image__push(&image, IMAGE_PLAIN, 5, i, 4);
	cr_assert_geq(image.chunk, 2);
	take_tick();
	expect_whole("recursion");
	cr_expect_leq(host.reads, 5 + 4 * (image.chunk + 1) + 4, "%llu", host.reads);
	tick_again(true);
	cr_expect_leq(host.reads, 4 + 4 * (image.chunk + 1), "nothing new: %llu", host.reads);
	image__free(&image);
}

Test(walk, frame_not_resident)
{
	start(15);
	for (int i = 0; i < 600; i++)
		image__push(&image, IMAGE_PLAIN, i % IMAGE_CODES, i, 4);
	cr_assert_geq(image.chunk, 3);
	/* The second chunk from the base has been swapped out. */
	host.fault_start = image__chunk(&image, 1);
	host.fault_end = host.fault_start + IMAGE_CHUNK;
	take_tick();
	for (size_t i = image.depth; i-- > 0;) {
		if (image.stack[i].address - host.fault_start >= IMAGE_CHUNK)
			continue;
		expect_tail(PBP_STATUS_FRAME_FAULT, image.depth - 1 - i, image.stack[i].address,
			    "swapped out");
		break;
	}
	host.fault_start = host.fault_end = 0;
	take_tick();
	expect_whole("back again");
	image__free(&image);
}

/* The window of a page must not be taken for another page's after a failed read. */
Test(walk, window_after_a_fault)
{
	start(14);
	push_ordinary();
	take_tick();
	expect_whole("before");
	host.fault_start = image.stack[image.depth - 1].address & ~4095ull;
	host.fault_end = host.fault_start + 4096;
	take_tick();
	expect_tail(PBP_STATUS_FRAME_FAULT, 0, image.stack[image.depth - 1].address, "leaf");
	take_tick();
	expect_tail(PBP_STATUS_FRAME_FAULT, 0, image.stack[image.depth - 1].address, "leaf once more");
	host.fault_start = host.fault_end = 0;
	image__free(&image);
}

Test(walk, limit)
{
	static const __u32 limits[] = {1, 2, 63, 64, 65, 100};

	start(14);
	for (int i = 0; i < 100; i++)
		image__push(&image, i % 5 ? IMAGE_PLAIN : IMAGE_GENERATOR, i % 7, i, 4);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		host_set_knob(&max_frames, limits[i]);
		take_tick();
		if (limits[i] < 100)
			expect_tail(PBP_STATUS_DEEP, limits[i], image.stack[99 - limits[i]].address, "limit");
		else
			expect_whole("no more than the limit");
	}
	image__free(&image);
}

/*
 * What is left of the chain when the budget has been spent may be no Python frame: then the stack is whole.
 */
Test(walk, as_deep_as_the_budget)
{
	for (int version = IMAGE_FIRST_TABLE; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		host_set_knob(&max_frames, 64);
		image__push(&image, IMAGE_MARKER, 0, 0, 0);
		for (int i = 0; i < 64; i++)
			image__push(&image, IMAGE_PLAIN, i % 7, i, 4);
		take_tick();
		expect_whole("64 frames");
		image__push(&image, IMAGE_PLAIN, 1, 1, 4);
		take_tick();
		expect_tail(PBP_STATUS_DEEP, 64, image.stack[1].address, "one more");
		image__free(&image);
	}
}

Test(walk, as_deep_as_a_record_can_be)
{
	start(13);
	for (int i = 0; i < IMAGE_MAX_DEPTH; i++)
		image__push(&image, IMAGE_PLAIN, i % 3, i, 0);
	take_tick();
	expect_whole("4096 frames");
	image__free(&image);
}

/* ---- garbage ---- */

Test(walk, cycles)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		push_ordinary();
		for (size_t back = 0; back < image.depth; back++) {
			/* The outermost frame was "called" by one of its callees, or by itself. */
			image__put(image.stack[0].address + image.target.offsets.frame_previous,
				   image.stack[back].address, 8);
			take_tick();
			cr_expect_eq(sent.sample.status, PBP_STATUS_DEEP, "back to %zu", back);
			cr_expect_leq(host.reads, 4u * PBP_MAX_FRAMES);
			if (image.stack[back].owner == IMAGE_MARKER && !back)
				continue;
			cr_assert(sent.stack);
			cr_expect_leq(sent.stack->count, PBP_MAX_FRAMES);
		}
		image__free(&image);
	}
}

/* Nothing but entry markers: they cost steps too. */
Test(walk, cycle_of_markers)
{
	start(14);
	image__push(&image, IMAGE_MARKER, 0, 0, 0);
	image__put(image.stack[0].address + image.target.offsets.frame_previous, image.stack[0].address, 8);
	for (int use_loop = 0; use_loop < 2; use_loop++) {
		tick_again(use_loop);
		cr_expect_eq(sent.sample.status, PBP_STATUS_DEEP);
		cr_expect(!sent.stack && !sent.sample.link_frame && !sent.sample.stack_id);
		cr_expect_leq(host.reads, 2 * PBP_MAX_FRAMES + 10);
	}
	image__free(&image);
}

Test(walk, garbage_pointers)
{
	static const __u64 garbage[] = {
		1,
		8,
		4095,
		4096,
		0x7fffffffefff,
		0x7ffffffff000,
		1ull << 47,
		1ull << 63,
		0xffff888000000000,
		UINT64_MAX,
		UINT64_MAX - 4095,
		UINT64_MAX - 8,
	};

	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		int minor = image_minor(version);

		if (minor == 11 || minor == 12)
			continue; /* see eval_loop_that_has_not_set_its_frame */
		start(version);
		push_ordinary();
		for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
			/*
			 * The caller of the third frame from the leaf; the current frame; the thread state.
			 */
			image__put(image.stack[image.depth - 3].address + image.target.offsets.frame_previous,
				   garbage[i], 8);
			take_tick();
			expect_tail(PBP_STATUS_FRAME_FAULT, 3, garbage[i], "previous");
			image__put(image__at(&image, IMAGE_TSTATE) +
					   image.target.offsets.thread_current_frame,
				   garbage[i], 8);
			take_tick();
			expect_tail(PBP_STATUS_FRAME_FAULT, 0, garbage[i], "current_frame");
			image__publish(&image);
		}
		image__free(&image);
	}
}

/* ---- frames that are being linked, 3.11 and 3.12 ---- */

/* Are the frames sent all but the first `skipped`? */
static void expect_without(size_t skipped, const char *what)
{
	size_t whole = image__expect(&image, expected, addresses);

	cr_assert_eq(sent.sample.status, PBP_STATUS_COMPLETE, "%s: status %u", what, sent.sample.status);
	cr_assert(sent.stack && sent.stack->count == whole - skipped, "%s: %u frames", what,
		  sent.stack ? sent.stack->count : 0);
	for (size_t i = 0; i < whole - skipped; i++)
		cr_expect(sent.frames[i].code == expected[skipped + i].code &&
				  sent.frames[i].flags == expected[skipped + i].flags,
			  "%s: frame %zu", what, i);
	cr_expect_eq(sent.sample.leaf_instr, expected[skipped].instr, "%s", what);
}

static void set_current_frame(__u64 frame)
{
	image__put(image__at(&image, IMAGE_C_STACK) + image.target.offsets.cframe_current_frame, frame, 8);
}

/*
 * Its cframe is linked already, and holds what was there before: nothing, garbage, or a frame of an earlier
 * call. The frame that called it is the one.
 */
Test(walk, eval_loop_that_has_not_set_its_frame)
{
	static const __u64 garbage[] = {0, 8, 0x7ffffffff000, 1ull << 63, UINT64_MAX};

	for (int minor = 11; minor <= 12; minor++) {
		__u64 id, stale;
		size_t depth;

		start(minor);
		push_ordinary();
		image__pop(&image);
		image__pop(&image);
		image__pop(&image); /* down to the entry of the generator's loop */
		take_tick();
		id = sent.sample.stack_id;

		depth = image.depth;
		push_ordinary();
		stale = image.stack[image.depth - 1].address;
		while (image.depth > depth)
			image__pop(&image);
		if (minor == 11)
			image__push(&image, IMAGE_MARKER, 0, 0, 0);
		image__push(&image, IMAGE_GENERATOR, 2, 30, 0);
		for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
			set_current_frame(garbage[i]);
			take_tick();
			expect_without(1, "garbage");
			cr_expect_eq(sent.sample.stack_id, id, "the same as before the call");
		}
		image__put(stale + image.target.offsets.frame_previous, 0, 8);
		set_current_frame(stale);
		take_tick();
		expect_without(1, "a generator that has been suspended");
		image__put(stale + image.target.offsets.frame_previous, stale, 8);
		host_set_knob(&max_frames, 64);
		take_tick();
		cr_expect_eq(sent.sample.status, PBP_STATUS_DEEP, "a cycle ends");
		host_set_knob(&max_frames, PBP_MAX_FRAMES);
		image__free(&image);
	}
}

/* Nor the previous cframe: that, or its frame, is in a register. What is no frame is never shown as one. */
Test(walk, eval_loop_that_has_not_set_its_cframe)
{
	for (int minor = 11; minor <= 12; minor++) {
		__u64 id, caller, cframe, field, garbage;

		start(minor);
		push_ordinary();
		image__pop(&image);
		image__pop(&image);
		image__pop(&image);
		take_tick();
		id = sent.sample.stack_id;
		field = image.target.offsets.cframe_current_frame;
		cframe = image__at(&image, IMAGE_C_STACK);
		if (minor == 11)
			image__push(&image, IMAGE_MARKER, 0, 0, 0);
		image__push(&image, IMAGE_GENERATOR, 2, 30, 0);
		caller = image__get(image__get(cframe + field + 8) + field);
		garbage = image__at(&image, IMAGE_RUNTIME); /* can be read, and is no frame */
		set_current_frame(garbage);
		image__put(garbage + field, garbage, 8);
		image__put(cframe + field + 8, garbage, 8);

		host.registers = (struct pt_regs){};
		take_tick();
		cr_expect_eq(sent.sample.status, PBP_STATUS_FRAME_FAULT, "nobody knows");
		cr_expect_eq(sent.sample.stack_id, 0, "no frames");
		host.registers.si = caller;
		take_tick();
		cr_expect_eq(sent.sample.stack_id, id, "the frame is in a register");
		host.registers = (struct pt_regs){.si = cframe, .ax = cframe + 64};
		take_tick();
		cr_expect_eq(sent.sample.stack_id, id, "the previous cframe is");
		image__free(&image);
	}
	host.registers = (struct pt_regs){};
}

/* It is the current frame already, and its caller's is in a register. */
Test(walk, generator_that_is_not_linked_yet)
{
	__u64 caller, generator;

	for (int minor = 11; minor <= 12; minor++) {
		start(minor);
		push_ordinary();
		caller = image.stack[image.depth - 1].address;
		generator = image__push(&image, IMAGE_GENERATOR, 7, 5, 0);
		image__put(generator + image.target.offsets.frame_previous, 0, 8);

		host.registers = (struct pt_regs){};
		take_tick();
		expect_without(4, "nobody knows: what called the loop");
		host.registers.r13 = caller;
		take_tick();
		expect_without(1, "in a register");
		/* Registers hold other things, too. */
		host.registers.bx = generator;
		host.registers.bp = image__code(&image, 3);
		host.registers.r12 = image.stack[0].address;
		host.registers.r14 = host.registers.r15 = 0xdeadbeef0000;
		take_tick();
		expect_without(1, "in one of them");
		image.target.layout.code_type = 0;
		set_target();
		take_tick();
		expect_without(4, "frames cannot be told from other things");
		user_mode = false;
		image.target.layout.code_type = image__at(&image, IMAGE_RUNTIME + 4096);
		set_target();
		take_tick();
		expect_without(1, "interrupted in the kernel");
		user_mode = true;
		image__free(&image);
	}
	host.registers = (struct pt_regs){};
}

/* ---- names that belong to an identity, to 3.11 ---- */

/* Everything of a code object lies where it lay before, and is another one's. */
Test(walk, recycled_code_without_a_number)
{
	for (int minor = 8; minor <= 11; minor++) {
		start(minor);
		push_ordinary();
		for (uint32_t which = 0; which < 2; which++) {
			for (uint32_t code = 0; code < 4; code++) {
				__u64 string = image__string(&image, code, which), id;
				char *last = (char *)(uintptr_t)string +
					     image.target.offsets.unicode_ascii_size +
					     image__get(string + 16) - 1;

				take_tick();
				id = sent.sample.stack_id;
				/* Its characters, or its hash where that has been computed. */
				if (code % 3)
					(*last)++;
				else
					image__put(string + 24, 4711 + which, 8);
				for (size_t i = 0; i < image.depth; i++)
					if (image.stack[i].frame.code == image__code(&image, code))
						image.stack[i].frame.ident = image__ident(&image, code);
				take_tick();
				expect_whole("another name");
				cr_expect_neq(sent.sample.stack_id, id, "name %u of code %u", which, code);
			}
		}
		image__free(&image);
	}
}

static struct strtab *strings;

/* Load the codes of the frames sent from the process; the state of the one that was changed meanwhile. */
static enum py_code_state load_changed(uint32_t changed)
{
	struct code_cache cache;
	enum py_code_state state = PY_CODE_INVALID;

	code_cache__init(&cache, strings);
	cr_assert_eq(code_cache__load(&cache, &image.target, sent.frames, sent.stack->count, true), 0);
	for (size_t i = 0; i < cache.codes.len; i++) {
		const struct py_code *code = &cache.codes.items[i];
		uint32_t number = (code->address - image__code(&image, 0)) / IMAGE_CODE_BYTES;
		char name[64];

		if (number == changed)
			state = code->state;
		else
			cr_assert_eq(code->state, PY_CODE_OK, "code %u is in state %d", number, code->state);
		if (code->state != PY_CODE_OK)
			continue;
		sprintf(name, "name_%u", number);
		cr_expect_str_eq(strtab__get(strings, code->function), name);
		sprintf(name, "/usr/lib/python3/file_%u.py", number);
		cr_expect_str_eq(strtab__get(strings, code->file), name);
	}
	code_cache__free(&cache);
	return state;
}

/* What user space reads a moment later is the sampled code object's, or it is not used. */
Test(walk, names_that_are_read_later)
{
	cr_assert_eq(strtab__new(&strings), 0);
	for (int minor = 8; minor <= 11; minor++) {
		char *text;

		start(minor);
		push_ordinary();
		take_tick();
		cr_expect_eq(load_changed(1), PY_CODE_OK);
		image__put(image__string(&image, 1, 0) + 24, 77, 8);
		cr_expect_eq(load_changed(1), PY_CODE_OK, "its name's hash has been computed meanwhile");
		image__put(image__string(&image, 1, 1) + 24, 78, 8);
		cr_expect_eq(load_changed(1), PY_CODE_OK, "... and its file's");
		text = (char *)(uintptr_t)image__string(&image, 2, 1) +
		       image.target.offsets.unicode_ascii_size;
		text[20]++;
		cr_expect_eq(load_changed(2), PY_CODE_GONE, "another file");
		text[20]--;
		image__put(image__string(&image, 3, 0) + 24, 79, 8);
		cr_expect_eq(load_changed(3), PY_CODE_GONE, "another name, by its hash");
		image__put(image__string(&image, 3, 0) + 24, 3 * 77, 8);
		image__set_version(&image, 0, 4711);
		cr_expect_eq(load_changed(0), PY_CODE_GONE, "another first line");
		image__free(&image);
	}
	strtab__free(strings);
}

/* The GIL is another thread's: then the slot tells, and the thread is said not to hold it. */
Test(walk, holder_of_the_gil)
{
	for (int minor = 8; minor <= 11; minor++) {
		__u64 holder = image__at(&image, IMAGE_TSTATE_2);

		start(minor);
		push_ordinary();
		holder = image__at(&image, IMAGE_TSTATE_2);
		image__make_thread(&image, holder, image__at(&image, IMAGE_INTERP), 4242);
		take_tick();
		expect_whole("of another thread");
		cr_expect_eq(sent.sample.flags, 0);
		/* A thread of ours in a sub-interpreter comes before what the slot says. */
		image__make_thread(&image, holder, image__at(&image, IMAGE_INTERP_2),
				   image__at(&image, IMAGE_THREAD_ID));
		take_tick();
		cr_expect_eq(sent.sample.tstate, holder);
		cr_expect_eq(sent.sample.flags, PBP_SAMPLE_ATTACHED);
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_FRAMES);
		image__put(image.target.layout.gil_tstate, 0, 8);
		take_tick();
		expect_whole("nobody's");
		cr_expect_eq(sent.sample.flags, 0);
		image__free(&image);
	}
}

/* A code pointer that cannot be read has no identity; the walk goes on. */
Test(walk, garbage_code)
{
	start(14);
	push_ordinary();
	image.stack[4].frame.code = 0xdead0000;
	image.stack[4].frame.ident = 0;
	image__write_frame(&image, &image.stack[4], image.stack[3].address);
	take_tick();
	expect_whole("code not readable");
	image__free(&image);
}

/* Whatever the bytes are, the walk ends and stays in its memory. */
Test(walk, random_bytes)
{
	unsigned int seed = 7;

	host_set_knob(&max_frames, 64);
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		for (int round = 0; round < 2000; round++) {
			struct pbp_target garbled = image.target.layout;
			__u32 tgid = host.task.tgid;

			image__reset_stack(&image);
			image__push_random(&image, 30);
			for (int i = rand_r(&seed) % 40; i--;) {
				const struct image_frame *frame = &image.stack[rand_r(&seed) % image.depth];
				/* Mostly pointers to somewhere in the image, aligned or not. */
				__u64 value = image__at(&image, rand_r(&seed) % (IMAGE_BYTES - 4096)) >>
					      rand_r(&seed) % 2 * 40;

				image__put(frame->address + rand_r(&seed) % 9 * 8, value, 8);
			}
			/* User space has checked the layout, but it lies in a map. */
			for (int i = rand_r(&seed) % 3; i--;)
				((__u8 *)&garbled)[48 + rand_r(&seed) % (sizeof(garbled) - 48)] =
					rand_r(&seed);
			bpf_map_update_elem(&targets, &tgid, &garbled, BPF_ANY);
			tick_again(round % 2);
			cr_assert_leq(host.reads, 2u * PBP_MAX_THREADS + 1000);
		}
		image__free(&image);
	}
}

/* ---- identities ---- */

/* A code object is freed and another one made at its address, between two samples. */
Test(walk, recycled_code)
{
	for (int version = IMAGE_FIRST_TABLE; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		push_ordinary();
		for (uint32_t number = 5000; number < 5100; number++) {
			tick_again(true);
			recycle(3, number);
			tick_again(true);
			expect_whole("recycled");
		}
		image__free(&image);
	}
}

/* The cache of identities is shared by all that runs on a CPU. */
Test(walk, same_address_elsewhere)
{
	start(14);
	push_ordinary();
	take_tick();

	/*
	 * Another process has other code at the same address; its interpreter has freed as much as the first
	 * one's.
	 */
	host.task.tgid = 99;
	set_target();
	image__set_version(&image, 3, 123);
	image.stack[4].frame.ident = image.stack[5].frame.ident = 123;
	take_tick();
	expect_whole("another process");

	/* The same process after an exec. */
	image.target.layout.epoch++;
	set_target();
	image__set_version(&image, 3, 124);
	image.stack[4].frame.ident = image.stack[5].frame.ident = 124;
	take_tick();
	expect_whole("another program");

	/* Another interpreter. */
	image__put(image__at(&image, IMAGE_TSTATE) + image.target.offsets.thread_interp,
		   image__at(&image, IMAGE_INTERP_2), 8);
	image__set_version(&image, 3, 125);
	image.stack[4].frame.ident = image.stack[5].frame.ident = 125;
	take_tick();
	expect_whole("another interpreter");
	image__free(&image);
}

/* What could not be read once is tried again. */
Test(walk, identity_not_resident)
{
	start(15);
	push_ordinary();
	host.fault_start = image__code(&image, 3);
	host.fault_end = host.fault_start + IMAGE_CODE_BYTES;
	take_tick();
	cr_expect(sent.stack && !sent.frames[0].ident && sent.frames[3].ident);
	host.fault_start = host.fault_end = 0;
	take_tick();
	expect_whole("resident");
	image__free(&image);
}

/* ---- the same from user space ---- */

static void compare_whole(struct tail_reader *reader)
{
	size_t whole = image__expect(&image, expected, addresses);

	tail_reader__prime(reader, &image.target, image__at(&image, IMAGE_TSTATE), 0);
	cr_assert_eq(reader->frames.len, whole);
	for (size_t i = 0; i < whole; i++) {
		cr_assert_eq(reader->addresses.items[i], addresses[i]);
		cr_assert_eq(reader->frames.items[i].code, expected[i].code);
		cr_assert_eq(reader->frames.items[i].instr, expected[i].instr);
	}
}

/*
 * The kernel side's part and the tail that user space hangs from it are the whole stack. Returns whether that
 * was proved; a tail with many turns is read, but not taken for proved.
 */
static bool compare_cut(struct tail_reader *reader, size_t whole)
{
	struct pbp_witness_key key = {.tstate = image__at(&image, IMAGE_TSTATE), .tgid = host.task.tgid};
	enum tail_result result;
	struct pbp_frame link;
	size_t count;

	bpf_map_update_elem(&witness_lists, &key, &reader->witnesses, BPF_ANY);
	take_tick();
	cr_assert_eq(sent.sample.status, PBP_STATUS_DEEP);
	count = sent.stack->count;
	expect_frames(count, "cut");
	link = sent.frames[count - 1];
	if (count == 1)
		link.instr = sent.sample.leaf_instr;
	cr_assert_eq(tail_reader__snapshot(reader, &image.target, key.tstate), 0);
	result = tail_reader__follow(reader, &image.target, &sent.sample, &link);
	cr_assert(result == TAIL_COMPLETE || result == TAIL_UNVERIFIED);
	cr_assert_eq(count + reader->frames.len, whole);
	for (size_t i = 0; i < reader->frames.len; i++) {
		const struct pbp_frame *frame = &reader->frames.items[i];

		cr_assert(frame->code == expected[count + i].code &&
				  frame->instr == expected[count + i].instr &&
				  frame->ident == expected[count + i].ident,
			  "frame %zu of %zu, cut after %zu", count + i, whole, count);
	}
	return result == TAIL_COMPLETE;
}

Test(walk, agrees_with_user_space)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		int minor = image_minor(version);
		struct tail_reader reader = {0};
		uint32_t cut = 0, proved = 0;

		start(version);
		for (int round = 0; round < 1000; round++) {
			size_t whole;

			/* Sometimes all of it is new, sometimes only the upper part. */
			image.seed = round * 3 + minor;
			if (round % 3 == 0)
				image__reset_stack(&image);
			for (uint32_t i = rand_r(&image.seed) % 40; i-- && image.depth;)
				image__pop(&image);
			image__push_random(&image, rand_r(&image.seed) % (700 - image.depth));
			whole = image__expect(&image, expected, addresses);

			host_set_knob(&max_frames, PBP_MAX_FRAMES);
			take_tick();
			if (whole)
				expect_whole("random");
			else
				cr_assert_eq(sent.sample.status, PBP_STATUS_NO_FRAMES);
			compare_whole(&reader);
			if (whole < 2)
				continue;
			host_set_knob(&max_frames, 1 + rand_r(&image.seed) % (whole - 1));
			proved += compare_cut(&reader, whole);
			cut++;
		}
		cr_expect(cut > 900 && proved > cut / 3, "%u of %u tails proved", proved, cut);
		tail_reader__free(&reader);
		image__free(&image);
	}
}
