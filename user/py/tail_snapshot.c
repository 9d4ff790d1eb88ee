/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a tail is followed in: a copy of the thread's data stack, or of the frames that it had.
 *
 * Layout of a data stack chunk: CPython's _PyStackChunk in Include/internal/pycore_pystate.h /
 * cpython/pystate.h, 3.11 to 3.15: {previous, size, top, data[]}, the newest one first in the thread state.
 */
#include "py/tail_parts.h"

#include "base/util.h"

#include <errno.h>

#define CHUNK_PREVIOUS	   0
#define CHUNK_SIZE	   8
#define CHUNK_TOP	   16 /* words of data[] in use; kept up to date in all but the newest */
#define CHUNK_DATA	   24
#define CHUNK_BYTES	   16384u /* of nearly every chunk; only a huge frame gets a larger one */
#define CHUNK_BYTES_MAX	   (16u << 20)
#define SNAPSHOT_BYTES_MAX (32u << 20) /* of one thread: PY_TAIL_MAX frames with some locals each */
#define GENERATORS_MAX	   16384       /* frames outside the data stack that one tail may need, a call each */
#define CHUNKS_MAX	   (SNAPSHOT_BYTES_MAX / CHUNK_BYTES)
#define SEGMENTS_MAX	   512

static int grow_bytes(struct tail_reader *reader, size_t len)
{
	if (reader->bytes.len + len > SNAPSHOT_BYTES_MAX)
		return -E2BIG;
	return vec__reserve(&reader->bytes, len);
}

/*
 * The chunks of the last snapshot, all in one call with the thread state's two fields. Returns how many still
 * hold.
 */
static int read_predicted(struct tail_reader *reader, struct py_target *target, py_addr newest_and_top[2])
{
	const struct py_offsets *offsets = &target->offsets;
	struct remote_segment segments[SEGMENTS_MAX];
	size_t count = min_u64(reader->chunks.len, SEGMENTS_MAX - 2), valid = 0;
	int err;

	segments[0] = (struct remote_segment){reader->tstate + offsets->thread_datastack_chunk,
					      &newest_and_top[0], 8, 0};
	segments[1] = (struct remote_segment){reader->tstate + offsets->thread_datastack_top,
					      &newest_and_top[1], 8, 0};
	for (size_t i = 0; i < count; i++) {
		struct tail_chunk *chunk = &reader->chunks.items[i];

		segments[2 + i] = (struct remote_segment){chunk->address, reader->bytes.items + chunk->offset,
							  chunk->len, 0};
	}
	err = remote__read_batch(&target->remote, segments, 2 + count);
	if (err)
		return err;
	if (segments[0].got < 8 || segments[1].got < 8)
		return -EFAULT;
	for (py_addr expected = newest_and_top[0]; valid < count; valid++) {
		const struct tail_chunk *chunk = &reader->chunks.items[valid];
		const uint8_t *copy = reader->bytes.items + chunk->offset;

		if (chunk->address != expected || segments[2 + valid].got < chunk->len ||
		    load_u64(copy + CHUNK_SIZE) != chunk->len)
			break;
		expected = load_u64(copy + CHUNK_PREVIOUS);
	}
	return valid;
}

/* Append the chunk at `address` to the snapshot; *previous is the next one. */
static int read_chunk(struct tail_reader *reader, struct py_target *target, py_addr address,
		      py_addr *previous)
{
	struct tail_chunk chunk = {.address = address, .offset = reader->bytes.len};
	struct remote_segment segment = {.addr = address, .len = CHUNK_BYTES};
	uint64_t size;
	int err = reader->chunks.len < CHUNKS_MAX ? grow_bytes(reader, CHUNK_BYTES) : -E2BIG;

	if (err)
		return err;
	segment.dest = reader->bytes.items + chunk.offset;
	err = remote__read_batch(&target->remote, &segment, 1);
	if (err)
		return err;
	if (segment.got < CHUNK_DATA)
		return -EFAULT;
	size = load_u64((uint8_t *)segment.dest + CHUNK_SIZE);
	if (size < CHUNK_DATA || size > CHUNK_BYTES_MAX)
		return -EBADMSG;
	if (size > segment.got) {
		err = grow_bytes(reader, size);
		if (!err)
			err = remote__read(&target->remote, address, reader->bytes.items + chunk.offset,
					   size);
		if (err)
			return err;
	}
	chunk.len = size;
	*previous = load_u64(reader->bytes.items + chunk.offset + CHUNK_PREVIOUS);
	reader->bytes.len += size;
	return vec__push(&reader->chunks, chunk);
}

/* Keep the first `valid` chunks, which need not lie first in `bytes`: later ones are only ever appended. */
static void keep_chunks(struct tail_reader *reader, size_t valid)
{
	reader->chunks.len = valid;
	reader->bytes.len = 0;
	for (size_t i = 0; i < valid; i++) {
		const struct tail_chunk *chunk = &reader->chunks.items[i];

		reader->bytes.len = max_u64(reader->bytes.len, chunk->offset + chunk->len);
	}
}

/* Something that claims to be a data stack and is none may be large: it must not stay. */
static void forget_snapshot(struct tail_reader *reader)
{
	vec__free(&reader->chunks);
	vec__free(&reader->bytes);
}

bool tail_has_frame_objects(const struct py_target *target)
{
	return target->offsets.frame_state != PY_ABSENT;
}

int tail_copy_frames(struct tail_reader *reader, struct py_target *target)
{
	return frame_copies__read(&reader->copies, &target->remote, reader->longest.items,
				  reader->longest.len, target->layout.fr_bytes);
}

static int copy_chunks(struct tail_reader *reader, struct py_target *target)
{
	py_addr newest_and_top[2] = {0}, next;
	int valid, err = 0;

	valid = read_predicted(reader, target, newest_and_top);
	if (valid < 0) {
		forget_snapshot(reader);
		return valid;
	}
	keep_chunks(reader, valid);
	reader->top = newest_and_top[1];
	next = newest_and_top[0];
	if (valid)
		next = load_u64(reader->bytes.items + reader->chunks.items[valid - 1].offset +
				CHUNK_PREVIOUS);
	while (next && !err)
		err = read_chunk(reader, target, next, &next);
	if (err)
		forget_snapshot(reader);
	return err;
}

int tail_reader__snapshot(struct tail_reader *reader, struct py_target *target, py_addr tstate)
{
	if (reader->tstate != tstate) {
		keep_chunks(reader, 0);
		reader->longest.len = 0;
		reader->tstate = tstate;
	}
	reader->longest_is_old = true;
	if (tail_has_frame_objects(target))
		return tail_copy_frames(reader, target);
	if (target->offsets.thread_datastack_chunk == PY_ABSENT ||
	    target->offsets.thread_datastack_top == PY_ABSENT)
		return -ENOTSUP;
	return copy_chunks(reader, target);
}

/*
 * End of what is in use of a chunk. Frames that were popped may lie behind it, also in chunks that others
 * have been put on.
 */
static py_addr live_end(const struct tail_reader *reader, size_t index)
{
	const struct tail_chunk *chunk = &reader->chunks.items[index];
	py_addr end = chunk->address + chunk->len;
	uint64_t words = load_u64(reader->bytes.items + chunk->offset + CHUNK_TOP);

	if (!index)
		return reader->top >= chunk->address && reader->top < end ? reader->top : end;
	return words < (chunk->len - CHUNK_DATA) / 8 ? chunk->address + CHUNK_DATA + words * 8 : end;
}

/*
 * The copy of `len` bytes at `address`, NULL when they are not in a live part of the data stack. *hint: the
 * chunk to try first.
 */
static const uint8_t *in_snapshot(const struct tail_reader *reader, py_addr address, size_t len, size_t *hint)
{
	for (size_t tried = 0; tried < reader->chunks.len; tried++) {
		size_t i = (*hint + tried) % reader->chunks.len;
		const struct tail_chunk *chunk = &reader->chunks.items[i];
		py_addr end = live_end(reader, i);

		if (address < chunk->address + CHUNK_DATA || address >= end || end - address < len)
			continue;
		*hint = i;
		return reader->bytes.items + chunk->offset + (address - chunk->address);
	}
	return NULL;
}

/*
 * A frame that is an object by itself. One that has returned may live on, in a traceback for example, and
 * still point to its caller.
 */
static int load_object(struct tail_reader *reader, struct py_target *target, py_addr address, size_t *hint,
		       struct frame_view *view)
{
	const struct py_offsets *offsets = &target->offsets;
	const uint8_t *copy = frame_copies__find(&reader->copies, address, hint);
	uint8_t bytes[PBP_FRAME_BYTES];

	if (!copy &&
	    remote__read(&target->remote, address, bytes, min_u64(target->layout.fr_bytes, sizeof(bytes))))
		return -EFAULT;
	copy = copy ?: bytes;
	*view = view_frame(&target->layout, copy);
	return py_frame_is_running(offsets, copy[offsets->frame_state]) ? 0 : -EFAULT;
}

int tail_load_frame(struct tail_reader *reader, struct py_target *target, py_addr address, size_t *hint,
		      struct frame_view *view)
{
	const struct pbp_target *layout = &target->layout;
	const uint8_t *copy;
	uint8_t bytes[PBP_FRAME_BYTES];

	if (tail_has_frame_objects(target))
		return load_object(reader, target, address, hint, view);
	copy = in_snapshot(reader, address, layout->fr_bytes, hint);
	if (!copy) {
		if (reader->outside++ >= GENERATORS_MAX ||
		    remote__read(&target->remote, address, bytes, min_u64(layout->fr_bytes, sizeof(bytes))))
			return -EFAULT;
		*view = view_frame(layout, bytes);
		return view->other || view->owner == PY_OWNER_GENERATOR ? 0 : -EFAULT;
	}
	*view = view_frame(layout, copy);
	return 0;
}
