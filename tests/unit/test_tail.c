/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tails of deep stacks on memory images (image.h): read whole over many chunks and in few calls, and taken
 * for a sample's only while everything proves that they are.
 */
#include "image.h"
#include "py/tail.h"

#include <errno.h>

static struct image image;
static struct tail_reader reader;
static struct pbp_frame frames[IMAGE_MAX_DEPTH];
static uint64_t addresses[IMAGE_MAX_DEPTH];
static size_t whole; /* frames in them */

static void start_version(int version)
{
	image__init(&image, version);
	reader = (struct tail_reader){0};
}

static void start(void)
{
	start_version(14);
}

static void stop(void)
{
	tail_reader__free(&reader);
	image__free(&image);
}

/* Some functions at the base, then recursion. */
static void push(size_t count)
{
	for (size_t i = 0; i < count; i++)
		image__push(&image, IMAGE_PLAIN, image.depth < 40 ? image.depth / 10 : 5 + image.depth / 1000,
			    3, 4);
}

static uint64_t tstate(void)
{
	return image__at(&image, IMAGE_TSTATE);
}

static uint64_t calls(void)
{
	return image.target.remote.stats.calls;
}

/* What the kernel side tells of frames at an instant. */
static uint32_t look_at(uint64_t address)
{
	const struct py_offsets *offsets = &image.target.offsets;
	uint64_t instr = image__get(address + offsets->frame_instr);

	return pbp_frame_hash(image__get(address + offsets->frame_executable) & ~3ull,
			      offsets->lasti_unit ? (uint32_t)instr : instr,
			      image__get(address + offsets->frame_previous));
}

/* A sample of now, of which the kernel side walked `kept` frames; *link is the last of them. */
static struct pbp_sample cut_after(size_t kept, struct pbp_frame *link)
{
	struct pbp_sample sample = {.status = PBP_STATUS_DEEP, .tstate = tstate()};

	whole = image__expect(&image, frames, addresses);
	cr_assert_lt(kept, whole);
	*link = frames[kept - 1];
	sample.link_frame = addresses[kept - 1];
	sample.tail_frame = image__get(sample.link_frame + image.target.offsets.frame_previous);
	sample.witness_version = reader.witnesses.version;
	sample.witness_count = reader.witnesses.count;
	for (uint32_t i = 0; i < reader.witnesses.count; i++)
		sample.witnesses[i] = look_at(reader.witnesses.frames[i]);
	return sample;
}

static enum tail_result follow(const struct pbp_sample *sample, const struct pbp_frame *link)
{
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
	return tail_reader__follow(&reader, &image.target, sample, link);
}

/* Is the tail that was read the rest of the image's stack? */
static void expect_tail(size_t kept)
{
	whole = image__expect(&image, frames, addresses);
	cr_assert_eq(reader.frames.len, whole - kept);
	for (size_t i = 0; i < reader.frames.len; i++) {
		const struct pbp_frame *frame = &reader.frames.items[i];

		cr_assert(frame->code == frames[kept + i].code && frame->instr == frames[kept + i].instr &&
				  frame->ident == frames[kept + i].ident &&
				  reader.addresses.items[i] == addresses[kept + i],
			  "frame %zu", kept + i);
	}
}

/* The witnesses are known to both sides from here on. */
static void learn(void)
{
	cr_assert(tail_reader__prime(&reader, &image.target, tstate(), 0));
}

Test(tail, many_chunks, .fini = stop)
{
	for (int version = IMAGE_FIRST_TABLE; version <= IMAGE_LAST_VERSION; version++) {
		struct pbp_frame link;
		struct pbp_sample sample;

		if (version > IMAGE_FIRST_TABLE)
			stop();
		start_version(version);
		push(4000);
		cr_assert_geq(image.chunk, 20);
		learn();
		sample = cut_after(64, &link);
		cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE);
		expect_tail(64);
	}
}

/*
 * One call for a data stack that lies where it did, one more for each chunk that is new; one to prove the
 * link.
 */
Test(tail, calls, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;
	uint64_t before;
	uint32_t chunks;

	push(2000);
	learn();
	before = calls();
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
	cr_expect_eq(calls() - before, 1, "as it was");
	sample = cut_after(10, &link);
	before = calls();
	cr_expect_eq(tail_reader__follow(&reader, &image.target, &sample, &link), TAIL_COMPLETE);
	cr_expect_eq(calls() - before, 1);

	chunks = image.chunk;
	push(500);
	before = calls();
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
	cr_expect_leq(calls() - before, 1 + image.chunk + 1, "all are new, for the newest ones come first");
	cr_expect_gt(image.chunk, chunks);
	while (image.chunk > chunks)
		image__pop(&image);
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
	before = calls();
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
	cr_expect_eq(calls() - before, 1);
	learn();
	sample = cut_after(10, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	expect_tail(10);
}

/* Another thread's stack is in the copy. */
Test(tail, reader_of_another_thread, .init = start, .fini = stop)
{
	uint64_t other = image__at(&image, IMAGE_TSTATE_2);

	push(300);
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
	cr_expect_gt(reader.chunks.len, 0);
	cr_assert_eq(tail_reader__snapshot(&reader, &image.target, other), 0);
	cr_expect_eq(reader.chunks.len, 0, "it has none");
	cr_expect_eq(tail_reader__snapshot(&reader, &image.target, 0xdead0000), -EFAULT);
	image.target.offsets.thread_datastack_chunk = PY_ABSENT;
	cr_expect_eq(tail_reader__snapshot(&reader, &image.target, tstate()), -ENOTSUP);
}

Test(tail, generators_and_markers, .init = start, .fini = stop)
{
	push(50);
	for (int i = 0; i < 40; i++) {
		image__push(&image, IMAGE_MARKER, 0, 0, 0);
		image__push(&image, i % 2 ? IMAGE_PLAIN : IMAGE_GENERATOR, i / 8, i / 8, 0);
		image__push(&image, IMAGE_GENERATOR, i / 8, i / 8, 0);
	}
	learn();
	whole = image__expect(&image, frames, addresses);
	/* The link is a generator's frame or is not, and a marker follows or does not. */
	for (size_t kept = 1; kept < whole; kept++) {
		struct pbp_frame link;
		struct pbp_sample sample = cut_after(kept, &link);

		cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE, "%zu", kept);
		expect_tail(kept);
		/* The kernel side stopped behind the marker. */
		if (frames[kept - 1].flags & PBP_FRAME_C_BELOW) {
			sample.tail_frame = addresses[kept];
			cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE, "%zu, behind the marker", kept);
			expect_tail(kept);
		}
		/* Not the next frame: a Python frame, or another marker's caller, would be left out. */
		if (kept + 1 < whole) {
			sample.tail_frame = addresses[kept + 1];
			cr_assert_eq(follow(&sample, &link), TAIL_UNVERIFIED, "%zu, one left out", kept);
		}
	}
}

/* What was copied once is not used for what cannot be read any more. */
Test(tail, chunk_not_readable, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;

	push(1000);
	cr_assert_geq(image.chunk, 4);
	learn();
	sample = cut_after(10, &link);
	mprotect((void *)(uintptr_t)image__chunk(&image, 1), IMAGE_CHUNK, PROT_NONE);
	cr_expect_eq(tail_reader__snapshot(&reader, &image.target, tstate()), -EFAULT);
	cr_expect_eq(tail_reader__follow(&reader, &image.target, &sample, &link), TAIL_UNVERIFIED);
	mprotect((void *)(uintptr_t)image__chunk(&image, 1), IMAGE_CHUNK, PROT_READ | PROT_WRITE);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	expect_tail(10);
}

/* A frame larger than a chunk gets a chunk of its own. */
Test(tail, huge_chunk, .init = start, .fini = stop)
{
	enum { SIZE = 1 << 17 };
	struct pbp_frame link;
	struct pbp_sample sample;
	uint8_t *chunk = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uintptr_t)chunk;

	push(100);
	image__put(image__chunk(&image, 0) + 16, (image.top - image__chunk(&image, 0) - 24) / 8, 8);
	image__push(&image, IMAGE_PLAIN, 3, 3, 0);
	image.stack[100].address = at + SIZE - 200;
	image__put(at, image__chunk(&image, 0), 8);
	image__put(at + 8, SIZE, 8);
	image__write_frame(&image, &image.stack[100], image.stack[99].address);
	image.top = at + SIZE;
	image__publish(&image);
	image__put(tstate() + image.target.offsets.thread_datastack_chunk, at, 8);
	learn();
	sample = cut_after(1, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	expect_tail(1);
	munmap(chunk, SIZE);
}

/* ---- what must not be taken ---- */

/* The bytes of a call that has returned stay where they were, and look as they did. */
Test(tail, returned_frames, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;

	push(120);
	learn();
	sample = cut_after(5, &link);
	for (int i = 0; i < 4; i++)
		image__pop(&image);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE, "the link is the innermost call now");
	image__pop(&image);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED, "the link has returned");
}

/*
 * The same where the thread has since gone on in another chunk, which leaves the end of the older one unused.
 */
Test(tail, returned_frames_in_an_older_chunk, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;

	push(120);
	cr_assert_eq(image.chunk, 0);
	learn();
	sample = cut_after(5, &link);
	for (int i = 0; i < 20; i++)
		image__pop(&image);
	image__push(&image, IMAGE_PLAIN, 1, 1, 1500);
	cr_assert_eq(image.chunk, 1);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
	sample = cut_after(1, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE, "what is live there is used");
	expect_tail(1);
}

/* The frame that the tail hangs from has gone on, or is another call's, before the copy or after it. */
Test(tail, link_has_changed, .init = start, .fini = stop)
{
	const struct py_offsets *offsets = &image.target.offsets;
	const uint32_t fields[] = {offsets->frame_instr, offsets->frame_executable, offsets->frame_previous};
	struct pbp_frame link;
	struct pbp_sample sample;

	push(300);
	learn();
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		uint64_t at, value;

		sample = cut_after(100, &link);
		at = sample.link_frame + fields[i];
		value = image__get(at);
		image__put(at, value + 16, 8);
		cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED, "field %zu", i);
		image__put(at, value, 8);

		cr_assert_eq(tail_reader__snapshot(&reader, &image.target, tstate()), 0);
		image__put(at, value + 16, 8);
		cr_expect_eq(tail_reader__follow(&reader, &image.target, &sample, &link), TAIL_UNVERIFIED,
			     "field %zu, after the copy", i);
		image__put(at, value, 8);
		cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	}
	sample = cut_after(100, &link);
	sample.link_frame = 0;
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
	sample.link_frame = 0xdead0000;
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
}

/* The link looks as it did, but it was called by others: only the witnesses tell. */
Test(tail, witnesses, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;
	uint32_t version;

	push(300);
	sample = cut_after(100, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED, "the kernel side has looked at none");
	version = reader.witnesses.version;
	cr_assert_eq(version, 1, "it is to look at these");
	/*
	 * Two for each of the five functions at the base, and those 32, 48, ... 192 frames above it, one of
	 * which is a turn.
	 */
	cr_expect_eq(reader.witnesses.count, 5 * 2 + 6 - 1);
	cr_expect_eq(reader.witnesses.frames[0], image.stack[0].address, "the base is one");

	sample = cut_after(100, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	cr_expect_eq(reader.witnesses.version, version, "nothing new to look at");
	for (uint32_t i = 0; i < reader.witnesses.count; i++) {
		struct pbp_sample other = sample;

		other.witnesses[i] ^= 2;
		cr_expect_eq(follow(&other, &link), TAIL_UNVERIFIED, "witness %u", i);
		other.witnesses[i] = 0;
		cr_expect_eq(follow(&other, &link), TAIL_UNVERIFIED, "witness %u, not readable", i);
	}

	/* A turn in the base gives other witnesses; a sample taken with the list before still counts. */
	image.stack[5].frame.instr += 2;
	image__write_frame(&image, &image.stack[5], image.stack[4].address);
	image__write_frame(&image, &image.stack[6], image.stack[5].address);
	sample = cut_after(100, &link);
	follow(&sample, &link);
	sample = cut_after(100, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	sample.witness_version += 7;
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED, "a list that nobody knows");
	sample.witness_version = 0;
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
}

/* Samples on their way while the list was exchanged; a part of the tail needs no list of its own. */
Test(tail, the_list_before, .init = start, .fini = stop)
{
	struct pbp_frame link, other_link;
	struct pbp_sample before, after;

	push(300);
	learn();
	before = cut_after(250, &link);
	cr_assert_eq(follow(&before, &link), TAIL_COMPLETE);
	before = cut_after(100, &link);
	cr_assert_eq(follow(&before, &link), TAIL_COMPLETE);
	cr_assert_eq(reader.witnesses.version, before.witness_version);

	/* A turn that the list does not have. */
	image__push(&image, IMAGE_PLAIN, 9, 9, 0);
	image__push(&image, IMAGE_PLAIN, 10, 10, 0);
	after = cut_after(1, &other_link);
	cr_expect_eq(follow(&after, &other_link), TAIL_UNVERIFIED);
	cr_assert_eq(reader.witnesses.version, before.witness_version + 1);
	after = cut_after(1, &other_link);
	cr_expect_eq(follow(&after, &other_link), TAIL_COMPLETE);
	cr_expect_eq(follow(&before, &link), TAIL_COMPLETE, "with the one before");
}

/*
 * Functions that call each other in a circle are one turn each; frames that are all different are too many.
 */
Test(tail, turns, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;

	for (int i = 0; i < 600; i++)
		image__push(&image, IMAGE_PLAIN, i % 3, i % 3, 0);
	learn();
	sample = cut_after(100, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	for (int i = 0; i < 60; i++)
		image__push(&image, IMAGE_PLAIN, i % 7, i, 0);
	cr_expect(!tail_reader__prime(&reader, &image.target, tstate(), 0));
	sample = cut_after(2, &link);
	follow(&sample, &link);
	sample = cut_after(2, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
}

/* Each generator's frame takes a call: a chain of very many ends. */
Test(tail, many_generators, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;
	uint64_t before;

	image__push(&image, IMAGE_GENERATOR, 1, 1, 0);
	image__push(&image, IMAGE_GENERATOR, 1, 1, 0);
	image__put(image.stack[0].address + image.target.offsets.frame_previous, image.stack[1].address, 8);
	sample = cut_after(1, &link);
	before = calls();
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
	cr_expect_lt(calls() - before, 20000);
}

/* A frame of the tail is not readable, or is a popped one. */
Test(tail, broken_chain, .init = start, .fini = stop)
{
	static const uint64_t garbage[] = {1, 0xdead0000, UINT64_MAX, 0xffff888000000000};
	struct pbp_frame link;
	struct pbp_sample sample;
	uint64_t at;

	push(300);
	learn();
	at = image.stack[50].address + image.target.offsets.frame_previous;
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		image__put(at, garbage[i], 8);
		sample = cut_after(10, &link);
		cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED, "%zu", i);
	}
	/* On the heap, but no generator's. */
	image__put(at, image__at(&image, IMAGE_HEAP), 8);
	sample = cut_after(10, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
}

/* A cycle ends at the limit and is called truncated. */
Test(tail, truncated, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;

	push(300);
	image__put(image.stack[50].address + image.target.offsets.frame_previous, image.stack[200].address,
		   8);
	sample = cut_after(10, &link);
	follow(&sample, &link);
	cr_assert_eq(reader.frames.len, PY_TAIL_MAX);
	sample = cut_after(10, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_TRUNCATED);
	cr_expect_eq(reader.frames.len, PY_TAIL_MAX);

	image__write_frame(&image, &image.stack[50], image.stack[49].address);

	/* So does one of markers, which lie outside the data stack and cost a call each, but sooner. */
	image__push(&image, IMAGE_MARKER, 0, 0, 0);
	image__put(image.stack[0].address + image.target.offsets.frame_previous, image.stack[300].address, 8);
	image__put(image.stack[300].address + image.target.offsets.frame_previous, image.stack[300].address,
		   8);
	sample = cut_after(10, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
	cr_expect_eq(reader.frames.len, 290);
}

/* Chunks that are none: an error, after a bounded number of calls. */
Test(tail, hostile_chunks, .init = start, .fini = stop)
{
	uint64_t chunk = image__chunk(&image, 0), before;
	const struct {
		uint64_t previous, size;
		int err;
	} cases[] = {
		{chunk, IMAGE_CHUNK, -E2BIG}, /* a circle */
		{chunk, 24, -E2BIG},	      /* ... of small ones */
		{0, 23, -EBADMSG},
		{0, 0, -EBADMSG},
		{0, UINT64_MAX, -EBADMSG},
		{0, (16 << 20) + 1, -EBADMSG},
		{0, IMAGE_CHUNK + 1, -EFAULT}, /* more than is mapped */
		{0xdead0000, IMAGE_CHUNK, -EFAULT},
	};

	push(3);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pbp_frame link;
		struct pbp_sample sample;

		image__put(chunk, cases[i].previous, 8);
		image__put(chunk + 8, cases[i].size, 8);
		before = calls();
		cr_expect_eq(tail_reader__snapshot(&reader, &image.target, tstate()), cases[i].err,
			     "case %zu", i);
		cr_expect_lt(calls() - before, 20000, "case %zu: %lu", i, calls() - before);
		sample = cut_after(1, &link);
		tail_reader__follow(&reader, &image.target, &sample, &link);
	}
	image__put(chunk, 0, 8);
	image__put(chunk + 8, IMAGE_CHUNK, 8);
	learn();
}

/* Code objects of the tail are told by what they are now, which is what they were while the link holds. */
Test(tail, identities, .init = start, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;
	uint64_t hash;

	push(300);
	learn();
	sample = cut_after(10, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	hash = reader.hash;
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	cr_expect_eq(reader.hash, hash);
	image__set_version(&image, 2, 77);
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	cr_expect_neq(reader.hash, hash, "another function");
	for (size_t i = 0; i < reader.frames.len; i++)
		cr_expect(reader.frames.items[i].code != image__code(&image, 2) ||
			  reader.frames.items[i].ident == 77);
	/* One that cannot be read. */
	image.stack[40].frame.code = 0xdead0000;
	image__write_frame(&image, &image.stack[40], image.stack[39].address);
	sample = cut_after(10, &link);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
}

Test(tail, prime, .init = start, .fini = stop)
{
	cr_expect(!tail_reader__prime(&reader, &image.target, tstate(), 0), "no frames");
	push(100);
	cr_expect(!tail_reader__prime(&reader, &image.target, tstate(), 100),
		  "the kernel side will walk it whole");
	cr_expect_eq(reader.witnesses.version, 0);
	cr_expect(tail_reader__prime(&reader, &image.target, tstate(), 99));
	cr_expect_eq(reader.witnesses.version, 1);
	cr_expect(!tail_reader__prime(&reader, &image.target, 0xdead0000, 0));
}

/* ---- frames that are objects by themselves, to 3.10 ---- */

static void start_old(void)
{
	start_version(10);
}

static void set_state(size_t kept, uint8_t state)
{
	image__put(addresses[kept] + image.target.offsets.frame_state, state, 1);
}

Test(tail, frame_objects, .fini = stop)
{
	for (int minor = 8; minor <= 10; minor++) {
		struct pbp_frame link;
		struct pbp_sample sample;

		if (minor > 8)
			stop();
		start_version(minor);
		push(1400);
		learn();
		sample = cut_after(64, &link);
		cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE);
		expect_tail(64);
	}
}

/* Frames where they were last time take one call for an IOV_MAX of them, new ones one each. */
Test(tail, calls_for_frame_objects, .init = start_old, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;
	uint64_t before;

	push(900);
	before = calls();
	learn();
	cr_expect_geq(calls() - before, 900);
	before = calls();
	sample = cut_after(10, &link);
	cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE);
	cr_expect_leq(calls() - before, 1 + 3, "all are where they were");
	for (int i = 0; i < 20; i++)
		image__pop(&image);
	push(40);
	sample = cut_after(10, &link);
	before = calls();
	cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE);
	expect_tail(10);
	cr_expect_leq(calls() - before, 2 + 1 + 30 + 3);
	/* A link that is new, too: it is read before all others are read again. */
	push(5);
	sample = cut_after(2, &link);
	cr_assert_eq(follow(&sample, &link), TAIL_COMPLETE);
	expect_tail(2);
}

/* A frame that has returned and is kept by someone still points to its caller. */
Test(tail, frame_object_that_has_returned, .init = start_old, .fini = stop)
{
	struct pbp_frame link;
	struct pbp_sample sample;

	push(300);
	learn();
	sample = cut_after(10, &link);
	set_state(9, 1); /* FRAME_RETURNED */
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
	set_state(9, 2); /* FRAME_UNWINDING */
	cr_expect_eq(follow(&sample, &link), TAIL_COMPLETE);
	expect_tail(10);
	set_state(150, 3); /* FRAME_RAISED */
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED);
	set_state(150, 0);
	image__put(addresses[150] + image.target.offsets.frame_previous, 0x1000, 8);
	cr_expect_eq(follow(&sample, &link), TAIL_UNVERIFIED, "it leads nowhere");
}
