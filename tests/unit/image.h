/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a Python thread, 3.8 to 3.15 and free-threaded from 3.13 on, made in the test's own: thread state, interpreter, code
 * objects, a data stack of chunks with nothing mapped around them, generators on a heap, entry markers on a C
 * stack. The test is the target, so the reader of user space (process_vm_readv on itself) and the kernel side
 * on the host see the same. Calls are pushed and popped as the interpreter does it; what the frames should
 * read as is kept beside. Before 3.12 there are no entry markers: to push one says that the next frame is
 * called from C. To 3.10 all frames are on the heap.
 */
#pragma once

#include "base/util.h"
#include "py/ident.h"
#include "py/layout.h"
#include "py/target.h"
#include "versions.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	IMAGE_CODES = 48,
	IMAGE_CODE_BYTES = 256,
	IMAGE_CODE_UNITS = 512, /* that they claim to have */
	IMAGE_CHUNKS = 48,
	IMAGE_CHUNK = 16384,
	IMAGE_CHUNK_STRIDE = IMAGE_CHUNK + 4096, /* a page without access behind each */
	IMAGE_TLS = 4096,
	IMAGE_RUNTIME = 2 * 4096,
	IMAGE_INTERP = 4 * 4096,
	IMAGE_INTERP_2 = 8 * 4096,
	IMAGE_TSTATE = 12 * 4096,
	IMAGE_TSTATE_2 = 13 * 4096,
	IMAGE_CODE = 14 * 4096,
	IMAGE_STRINGS = 17 * 4096, /* two for each code object */
	IMAGE_STRING_BYTES = 96,
	IMAGE_C_STACK = 20 * 4096, /* two cframes, and from its end down entry markers */
	IMAGE_HEAP = 40 * 4096,
	IMAGE_STACK = 241 * 4096,
	IMAGE_COPIES = IMAGE_STACK + IMAGE_CHUNKS * IMAGE_CHUNK_STRIDE, /* of bytecode, one of each code object */
	IMAGE_COPY_ARRAYS = IMAGE_COPIES + IMAGE_CODES * IMAGE_CODE_UNITS * 2, /* where they are listed */
	IMAGE_ARRAY_BYTES = 32,
	IMAGE_BYTES = IMAGE_COPY_ARRAYS + 4096,
	IMAGE_THREAD_ID = IMAGE_TLS + 1024, /* fsbase and thread_id point here */
	IMAGE_CODE_TYPE = IMAGE_TLS + 2048, /* PyCode_Type, and its name behind it */
	IMAGE_CODE_TYPE_NAME = IMAGE_CODE_TYPE + 1024,
	IMAGE_SLOT = 256,		    /* bytes behind fsbase: where the thread's state is */
	IMAGE_MAX_DEPTH = 4096,
};

enum image_owner { IMAGE_PLAIN, IMAGE_GENERATOR, IMAGE_FRAME_OBJECT, IMAGE_MARKER };

struct image_frame {
	uint64_t address;
	uint64_t previous_top; /* of the data stack; 0: the frame is not on it */
	uint32_t previous_chunk;
	enum image_owner owner;
	bool from_c;
	struct pbp_frame frame; /* as it should be read; with its own instr also as leaf */
};

struct image {
	struct py_target target; /* layout and offsets too */
	uint8_t *memory;
	struct image_frame stack[IMAGE_MAX_DEPTH]; /* outermost first */
	size_t depth;
	uint64_t top;			     /* of the data stack */
	uint32_t chunk;			     /* the newest one */
	bool from_c;			     /* the next frame is, where there are no markers */
	uint32_t chunk_places[IMAGE_CHUNKS]; /* they do not lie in order */
	unsigned int seed;
};

static inline uint64_t image__at(const struct image *image, uint64_t offset)
{
	return (uintptr_t)image->memory + offset;
}

static inline void image__put(uint64_t address, uint64_t value, size_t len)
{
	memcpy((void *)(uintptr_t)address, &value, len);
}

static inline uint64_t image__get(uint64_t address)
{
	return load_u64((void *)(uintptr_t)address);
}

static inline uint64_t image__code(const struct image *image, uint32_t index)
{
	return image__at(image, IMAGE_CODE + index * IMAGE_CODE_BYTES);
}

static inline uint64_t image__chunk(const struct image *image, uint32_t chunk)
{
	return image__at(image, IMAGE_STACK + (uint64_t)image->chunk_places[chunk] * IMAGE_CHUNK_STRIDE);
}

static inline bool image__has_markers(const struct image *image)
{
	return image->target.offsets.first_other_owner != 0;
}

static inline bool image__has_frame_objects(const struct image *image)
{
	return image->target.offsets.frame_state != PY_ABSENT;
}

/* 3.11, 3.12: the cframe of the running eval loop, and before it that of the loop which called it. */
static inline void image__publish_cframes(struct image *image, uint64_t frame)
{
	uint32_t at = image->target.offsets.cframe_current_frame;
	uint64_t cframe = image__at(image, IMAGE_C_STACK), previous = cframe + 64, below = 0;
	size_t entry = image->depth;

	while (entry && !image->stack[entry - 1].from_c)
		entry--;
	if (entry > 1)
		below = image->stack[entry - 2].address;
	image__put(cframe + at, frame, 8);
	image__put(cframe + at + 8, entry ? previous : 0, 8);
	image__put(previous + at, below, 8);
}

/* Write what the thread state says of the stack. */
static inline void image__publish(struct image *image)
{
	const struct py_offsets *offsets = &image->target.offsets;
	uint64_t tstate = image__at(image, IMAGE_TSTATE), frame = 0;

	if (image->target.layout.ts_base_frame != PBP_NONE)
		frame = tstate + image->target.layout.ts_base_frame;
	if (image->depth)
		frame = image->stack[image->depth - 1].address;
	if (offsets->cframe_current_frame != PY_ABSENT) {
		image__publish_cframes(image, frame);
		frame = image__at(image, IMAGE_C_STACK);
	}
	image__put(tstate + offsets->thread_current_frame, frame, 8);
	if (image__has_frame_objects(image))
		return;
	image__put(tstate + offsets->thread_datastack_chunk, image__chunk(image, image->chunk), 8);
	image__put(tstate + offsets->thread_datastack_top, image->top, 8);
}

/* Where the frame of the first call goes. CPython leaves one word of the first chunk unused. */
static inline void image__reset_stack(struct image *image)
{
	image->depth = 0;
	image->chunk = 0;
	image->from_c = false;
	image->top = image__chunk(image, 0) + 32;
	image__put(image__chunk(image, 0), 0, 8);
	image__put(image__chunk(image, 0) + 8, IMAGE_CHUNK, 8);
	image__put(image__chunk(image, 0) + 16, 0, 8);
	image__publish(image);
}

/* Before 3.12 code objects have no number, and are told apart by their first lines as well. */
static inline void image__set_version(struct image *image, uint32_t code, uint32_t version)
{
	const struct py_offsets *offsets = &image->target.offsets;
	uint32_t at = offsets->code_version == PY_ABSENT ? offsets->code_firstlineno : offsets->code_version;

	image__put(image__code(image, code) + at, version, 4);
}

/* The identity that a code object should be read with. */
static inline uint32_t image__ident(struct image *image, uint32_t code)
{
	const struct pbp_target *layout = &image->target.layout;
	uint64_t address = image__code(image, code);
	uint32_t ident = load_u32((void *)(uintptr_t)(address + layout->co_ident));

	if (py_ident__has_names(layout))
		cr_assert_eq(py_idents__read(&image->target.remote, layout, &address, 1, &ident, NULL), 0);
	return ident;
}

/* The string that names a code object (0) or its file (1). */
static inline uint64_t image__string(const struct image *image, uint32_t code, uint32_t which)
{
	return image__at(image, IMAGE_STRINGS + (code * 2 + which) * IMAGE_STRING_BYTES);
}

/* ASCII; the hash of some has been computed, that of others has not. */
static inline void image__make_string(struct image *image, uint32_t code, uint32_t which)
{
	const struct py_offsets *offsets = &image->target.offsets;
	uint64_t string = image__string(image, code, which);
	char *text = (char *)(uintptr_t)string + offsets->unicode_ascii_size;
	int len = sprintf(text, which ? "/usr/lib/python3/file_%u.py" : "name_%u", code);

	image__put(string + offsets->unicode_length, len, 8);
	/* One byte each, compact, ASCII, behind two or eight bits that tell whether it is interned. */
	image__put(string + offsets->unicode_state, (1 | 1 << 3 | 1 << 4) << (offsets->wide_interned ? 8 : 2), 4);
	if (offsets->unicode_hash != PY_ABSENT)
		image__put(string + offsets->unicode_hash, code % 3 ? UINT64_MAX : code * 77, 8);
	image__put(image__code(image, code) +
			   (which ? image->target.layout.co_filename : image->target.layout.co_name),
		   string, 8);
}

static inline void image__make_thread(struct image *image, uint64_t tstate, uint64_t interp,
				      uint64_t thread_id)
{
	const struct py_offsets *offsets = &image->target.offsets;

	image__put(tstate + offsets->thread_interp, interp, 8);
	image__put(tstate + offsets->thread_thread_id, thread_id, 8);
	if (offsets->thread_state != PY_ABSENT)
		image__put(tstate + offsets->thread_state, 1, 4);
	else if (offsets->thread_status != PY_ABSENT)
		image__put(tstate + offsets->thread_status, 1 << 4, 4);
	else
		image__put(image->target.layout.gil_tstate, tstate, 8);
}

/*
 * Where threads run copies of the bytecode: the array that lists them has the code object's own at 0, no copy at 1,
 * and at 2 one of this thread.
 */
static inline uint64_t image__copy(const struct image *image, uint32_t code)
{
	return image__at(image, IMAGE_COPIES + code * IMAGE_CODE_UNITS * 2);
}

static inline void image__make_copies(struct image *image, uint32_t code)
{
	const struct py_offsets *offsets = &image->target.offsets;
	uint64_t array = image__at(image, IMAGE_COPY_ARRAYS + code * IMAGE_ARRAY_BYTES);

	if (offsets->code_co_tlbc == PY_ABSENT)
		return;
	image__put(image__code(image, code) + offsets->code_co_tlbc, array, 8);
	image__put(array, 3, 8);
	image__put(array + 8, image__code(image, code) + offsets->code_adaptive, 8);
	image__put(array + 24, image__copy(image, code), 8);
}

/* Where the bytecode is that this thread runs. Some functions it runs in the code object itself. */
static inline uint64_t image__bytecode(const struct image *image, uint32_t code)
{
	const struct py_offsets *offsets = &image->target.offsets;

	return offsets->code_co_tlbc != PY_ABSENT && code % 4 ? image__copy(image, code)
							       : image__code(image, code) + offsets->code_adaptive;
}

static inline void image__init(struct image *image, int version)
{
	struct py_target *target = &image->target;
	const struct py_offsets *offsets = &target->offsets;
	uint64_t tstate, base_frame;

	*image = (struct image){.seed = 1};
	/* Where it was in every run, if that is free: which entries of a cache meet in one slot depends on it. */
	image->memory = mmap((void *)0x200000000000, IMAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(image->memory, MAP_FAILED);
	mprotect(image->memory + IMAGE_STACK - 4096, 4096, PROT_NONE);
	for (uint32_t i = 0; i < IMAGE_CHUNKS; i++) {
		image->chunk_places[i] = (i * 29 + 7) % IMAGE_CHUNKS;
		mprotect(image->memory + IMAGE_STACK + i * IMAGE_CHUNK_STRIDE + IMAGE_CHUNK, 4096, PROT_NONE);
	}
	*target = (struct py_target){.pid = getpid(), .runtime = image__at(image, IMAGE_RUNTIME)};
	remote__init(&target->remote, target->pid);
	image_offsets(&target->offsets, version);
	cr_assert_eq(py_layout__fill(&target->layout, offsets,
				     offsets->thread_base_frame == PY_ABSENT ? PBP_NONE : 888),
		     0);
	py_layout__locate(&target->layout, offsets, target->runtime);
	target->layout.code_type = image__at(image, IMAGE_RUNTIME + 4096); /* never looked into */
	target->layout.slot_kind = PBP_SLOT_FSBASE;
	target->layout.slot_offset = IMAGE_SLOT;

	tstate = image__at(image, IMAGE_TSTATE);
	image__make_thread(image, tstate, image__at(image, IMAGE_INTERP), image__at(image, IMAGE_THREAD_ID));
	image__put(image__at(image, IMAGE_THREAD_ID + IMAGE_SLOT), tstate, 8);
	image__put(target->layout.interpreters_head, image__at(image, IMAGE_INTERP), 8);
	image__put(image__at(image, IMAGE_INTERP) + offsets->interp_threads_head, tstate, 8);
	if (target->layout.ts_base_frame != PBP_NONE) {
		base_frame = tstate + target->layout.ts_base_frame;
		image__put(tstate + offsets->thread_base_frame, base_frame, 8);
		image__put(base_frame + offsets->frame_owner, IMAGE_MARKER, 1);
	}
	for (uint32_t i = 0; i < IMAGE_CODES; i++) {
		image__put(image__code(image, i) + offsets->object_type, target->layout.code_type, 8);
		if (offsets->var_object_size != PY_ABSENT)
			image__put(image__code(image, i) + offsets->var_object_size, IMAGE_CODE_UNITS, 8);
		image__set_version(image, i, 1000 + i);
		image__make_string(image, i, 0);
		image__make_string(image, i, 1);
		image__make_copies(image, i);
		/* One line table for all, of no bytes. */
		image__put(image__code(image, i) + target->layout.co_linetable,
			   image__string(image, IMAGE_CODES, 0), 8);
	}
	target->code_type = target->layout.code_type;
	image__reset_stack(image);
}

static inline void image__free(struct image *image)
{
	munmap(image->memory, IMAGE_BYTES);
}

/* Room for a frame with that many locals on the data stack, in a new chunk if need be. */
static inline uint64_t image__allocate(struct image *image, size_t bytes)
{
	uint64_t chunk = image__chunk(image, image->chunk), address = image->top;

	cr_assert_leq(bytes, IMAGE_CHUNK - 24);
	if (address + bytes > chunk + IMAGE_CHUNK) {
		image__put(chunk + 16, (image->top - chunk - 24) / 8, 8);
		cr_assert_lt(image->chunk + 1, IMAGE_CHUNKS);
		image->chunk++;
		image__put(image__chunk(image, image->chunk), chunk, 8);
		chunk = image__chunk(image, image->chunk);
		image__put(chunk + 8, IMAGE_CHUNK, 8);
		image__put(chunk + 16, 0, 8);
		address = chunk + 24;
	}
	image->top = address + bytes;
	return address;
}

static inline void image__write_frame(struct image *image, const struct image_frame *frame, uint64_t previous)
{
	const struct py_offsets *offsets = &image->target.offsets;
	uint64_t code = frame->frame.code;

	/* What the version does not define is not zero in real memory either. */
	memset((void *)(uintptr_t)frame->address, 0xa5,
	       min_u64(offsets->frame_localsplus, image->target.layout.fr_bytes + 8));
	if (offsets->tagged_frames)
		code |= frame->address >> 4 & 3;
	image__put(frame->address + offsets->frame_executable, code, 8);
	image__put(frame->address + offsets->frame_previous, previous, 8);
	image__put(frame->address + offsets->frame_instr, frame->frame.instr, offsets->lasti_unit ? 4 : 8);
	if (offsets->frame_owner != PY_ABSENT)
		image__put(frame->address + offsets->frame_owner, frame->owner, 1);
	if (offsets->frame_entry != PY_ABSENT)
		image__put(frame->address + offsets->frame_entry, frame->from_c, 1);
	if (offsets->frame_state != PY_ABSENT)
		image__put(frame->address + offsets->frame_state, offsets->running_states & 1 ? 0 : 1, 1);
}

/* Where a frame that is not on the data stack goes. No two of fewer than 1500 meet. */
static inline uint64_t image__place(struct image *image, enum image_owner owner)
{
	if (owner == IMAGE_MARKER)
		return image__at(image, IMAGE_HEAP) - (image->depth + 1) % 800 * 96;
	return image__at(image,
			 IMAGE_HEAP + (uint64_t)image->depth * 37 % 1500 * 512 +
				 rand_r(&image->seed) % (image__has_frame_objects(image) ? 46 : 52) * 8);
}

/* Is the next frame called from C, as far as the interpreter notes that in it? */
static inline bool image__is_entry(struct image *image, enum image_owner owner)
{
	bool from_c = image->from_c || !image->depth;

	image->from_c = false;
	if (image__has_markers(image))
		return owner == IMAGE_MARKER;
	return from_c || image__has_frame_objects(image);
}

/*
 * 3.11 to 3.13: the evaluation stack's depth is in the frame, but for one that runs (-1). Frames that have called C
 * code keep on running.
 */
static inline void image__set_running(struct image *image, const struct image_frame *frame, bool running)
{
	if (image->target.offsets.frame_stacktop != PY_ABSENT && frame->owner != IMAGE_MARKER)
		image__put(frame->address + image->target.offsets.frame_stacktop, running ? UINT32_MAX : 5, 4);
}

/* Call code number `code` with so many locals. Returns the frame's address. */
static inline uint64_t image__push(struct image *image, enum image_owner owner, uint32_t code, uint32_t unit,
				   uint32_t locals)
{
	const struct py_offsets *offsets = &image->target.offsets;
	struct image_frame *frame;
	uint64_t previous;

	if (owner == IMAGE_MARKER && !image__has_markers(image)) {
		image->from_c = true;
		return 0;
	}
	/* In 3.12 a chain that does not end in an entry is none. */
	if (!image->depth && owner != IMAGE_MARKER && image__has_markers(image) &&
	    offsets->cframe_current_frame != PY_ABSENT)
		image__push(image, IMAGE_MARKER, 0, 0, 0);
	frame = &image->stack[image->depth];
	previous = image->depth ? image->stack[image->depth - 1].address : 0;
	cr_assert_lt(image->depth, IMAGE_MAX_DEPTH);
	if (!image->depth && image->target.layout.ts_base_frame != PBP_NONE)
		previous = image__at(image, IMAGE_TSTATE) + image->target.layout.ts_base_frame;
	*frame = (struct image_frame){.owner = owner, .from_c = image__is_entry(image, owner)};
	frame->frame.code = image__code(image, code);
	frame->frame.instr =
		offsets->lasti_unit ? unit : image__bytecode(image, code) + 2 * unit;
	frame->frame.ident = image__ident(image, code);
	if (owner == IMAGE_GENERATOR || owner == IMAGE_MARKER || image__has_frame_objects(image)) {
		frame->address = image__place(image, owner);
	} else {
		frame->previous_top = image->top;
		frame->previous_chunk = image->chunk;
		frame->address = image__allocate(image, offsets->frame_localsplus + locals * 8);
	}
	if (owner == IMAGE_MARKER)
		frame->frame.code = 0;
	else if (image__has_markers(image) ? image->depth && image->stack[image->depth - 1].from_c
					   : frame->from_c)
		frame->frame.flags = PBP_FRAME_C_BELOW;
	image__write_frame(image, frame, previous);
	image__set_running(image, frame, false);
	if (image->depth && !frame->from_c)
		image__set_running(image, frame - 1, false);
	image->depth++;
	image__publish(image);
	image__set_running(image, frame, true);
	return frame->address;
}

/* Return from the innermost call; the frame's bytes stay, but for what the interpreter clears. */
static inline void image__pop(struct image *image)
{
	const struct image_frame *frame = &image->stack[--image->depth];
	const struct py_offsets *offsets = &image->target.offsets;

	image__set_running(image, frame, false);
	if (frame->previous_top) {
		image->top = frame->previous_top;
		image->chunk = frame->previous_chunk;
	}
	image__publish(image);
	if (frame->owner == IMAGE_MARKER)
		return;
	if (offsets->frame_state != PY_ABSENT)
		image__put(frame->address + offsets->frame_state, offsets->running_states & 1 ? 1 : 0, 1);
	else if (frame->owner == IMAGE_GENERATOR)
		image__put(frame->address + offsets->frame_previous, 0, 8);
	else if (offsets->tagged_frames)
		image__put(frame->address + offsets->frame_executable, 1, 8);
	if (image->depth)
		image__set_running(image, frame - 1, true);
}

/* The Python frames, leaf first, as they should be read. Their number. */
static inline size_t image__expect(const struct image *image, struct pbp_frame *out, uint64_t *addresses)
{
	size_t count = 0;

	for (size_t i = image->depth; i-- > 0;) {
		if (image->stack[i].owner == IMAGE_MARKER)
			continue;
		addresses[count] = image->stack[i].address;
		out[count++] = image->stack[i].frame;
	}
	return count;
}

/* A stack as a program might have it: functions that recur for a while. */
static inline void image__push_random(struct image *image, uint32_t depth)
{
	uint32_t code = 0, unit = 0;

	for (uint32_t i = 0; i < depth && image->chunk + 2 < IMAGE_CHUNKS; i++) {
		uint32_t kind = rand_r(&image->seed) % 16;
		uint32_t locals =
			rand_r(&image->seed) % 50 ? rand_r(&image->seed) % 16 : rand_r(&image->seed) % 1800;
		enum image_owner owner = kind == 0   ? IMAGE_MARKER
					 : kind < 3  ? IMAGE_GENERATOR
					 : kind == 3 ? IMAGE_FRAME_OBJECT
						     : IMAGE_PLAIN;

		if (!image->depth) /* a generator is always run by something */
			owner = IMAGE_PLAIN;
		if (rand_r(&image->seed) % 16 == 0) {
			code = rand_r(&image->seed) % IMAGE_CODES;
			unit = rand_r(&image->seed) % 500;
		}
		image__push(image, owner, code, unit, locals);
	}
}
