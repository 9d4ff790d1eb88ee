/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Newest interpreter first, and in each the newest thread first. A thread state may be freed while its list
 * is being followed: then its interp field does not point back any more or the read fails, and the rest of
 * that list is left for next time.
 */
#include "py/threads.h"

#include "base/util.h"

#include <errno.h>

#define MAX_INTERPRETERS 4096
#define PREFIX_BYTES                                                                                         \
	1024 /* most of a thread state that is read; ids lie below 200 in every version so far               \
	      */

struct interpreter {
	py_addr addr, next, threads_head;
	int64_t id;
};

static int read_interpreter(struct remote *remote, const struct py_offsets *offsets, py_addr addr,
			    struct interpreter *out)
{
	struct remote_segment segments[] = {
		{.addr = addr + offsets->interp_id, .dest = &out->id, .len = 8},
		{.addr = addr + offsets->interp_next, .dest = &out->next, .len = 8},
		{.addr = addr + offsets->interp_threads_head, .dest = &out->threads_head, .len = 8},
	};
	int err = remote__read_batch(remote, segments, ARRAY_SIZE(segments));

	out->addr = addr;
	for (size_t i = 0; !err && i < ARRAY_SIZE(segments); i++)
		err = segments[i].got < segments[i].len ? -EFAULT : 0;
	return err;
}

/* Bytes that hold all the fields wanted here. */
static size_t prefix_bytes(const struct py_offsets *offsets)
{
	uint64_t end = max_u64(offsets->thread_next, offsets->thread_interp);

	end = max_u64(end, offsets->thread_thread_id);
	if (offsets->thread_native_thread_id != PY_ABSENT)
		end = max_u64(end, offsets->thread_native_thread_id);
	return end + 8;
}

static int read_threads(struct remote *remote, const struct py_offsets *offsets,
			const struct interpreter *interp, struct py_thread *out, size_t max)
{
	size_t count = 0, bytes = prefix_bytes(offsets);
	py_addr at = interp->threads_head;
	uint8_t prefix[PREFIX_BYTES];
	struct cycle cycle = {};
	int err = 0;

	if (bytes > sizeof(prefix))
		return -EOVERFLOW;
	while (at && count < max && !has_cycled(&cycle, at)) {
		err = remote__read(remote, at, prefix, bytes);
		if (err || load_u64(prefix + offsets->thread_interp) != interp->addr)
			break;
		out[count++] = (struct py_thread){
			.tstate = at,
			.interp = interp->addr,
			.interp_id = interp->id,
			.thread_id = load_u64(prefix + offsets->thread_thread_id),
			.native_thread_id = offsets->thread_native_thread_id == PY_ABSENT
						    ? 0
						    : load_u64(prefix + offsets->thread_native_thread_id),
		};
		at = load_u64(prefix + offsets->thread_next);
	}
	return err && err != -EFAULT ? err : (int)count;
}

int py_threads__list(struct remote *remote, const struct py_offsets *offsets, py_addr runtime,
		     struct py_thread *out, size_t max)
{
	struct interpreter interp = {};
	struct cycle cycle = {};
	py_addr at = 0;
	size_t count = 0;
	int err = remote__read(remote, runtime + offsets->runtime_interpreters_head, &at, 8);

	for (int i = 0; !err && at && i < MAX_INTERPRETERS && count < max && !has_cycled(&cycle, at); i++) {
		int got;

		err = read_interpreter(remote, offsets, at, &interp);
		if (err)
			break;
		got = read_threads(remote, offsets, &interp, out + count, max - count);
		if (got < 0)
			return got;
		count += got;
		at = interp.next;
	}
	return err && err != -EFAULT ? err : (int)count;
}

/* In 3.11 and 3.12 the thread state points to a _PyCFrame, which lies on the C stack of the eval loop. */
int py_threads__first_frame(struct remote *remote, const struct py_offsets *offsets, py_addr tstate,
			    py_addr *frame)
{
	int err = remote__read(remote, tstate + offsets->thread_current_frame, frame, sizeof(*frame));

	if (err || !*frame || offsets->cframe_current_frame == PY_ABSENT)
		return err;
	return remote__read(remote, *frame + offsets->cframe_current_frame, frame, sizeof(*frame));
}

/* struct pthread of glibc on x86-64, nptl/descr.h: tid, behind the header of 704 bytes */
#define PTHREAD_TID 0x2d0

uint64_t py_threads__native_id(struct remote *remote, uint64_t thread_id)
{
	uint32_t tid = 0;

	return remote__read(remote, thread_id + PTHREAD_TID, &tid, sizeof(tid)) ? 0 : tid;
}
