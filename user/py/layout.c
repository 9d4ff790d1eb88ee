/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel side reads a prefix of a thread state and of a frame, as short as covers the fields: a frame on
 * the data stack may be the last thing before the end of a mapping, so nothing behind its header is touched.
 */
#include "py/layout.h"

#include "base/util.h"

#include <errno.h>

#define TSTATE_ATTACHED 1 /* _Py_THREAD_ATTACHED, Include/cpython/pystate.h (3.13+) */
#define TAG_BITS	3 /* Py_TAG_BITS and the deferred bit of _PyStackRef (3.14+) */

/* Grow `end` to cover a field, if there is one. */
static void cover(uint64_t *end, uint32_t offset, uint32_t width)
{
	if (offset != PY_ABSENT)
		*end = max_u64(*end, (uint64_t)offset + width);
}

static uint64_t round_up_8(uint64_t value)
{
	return (value + 7) & ~7ull;
}

static uint16_t short_offset(uint32_t offset)
{
	return offset == PY_ABSENT ? PBP_NONE : offset;
}

static uint64_t thread_bytes(const struct py_offsets *offsets)
{
	uint64_t end = 0;

	cover(&end, offsets->thread_next, 8);
	cover(&end, offsets->thread_interp, 8);
	cover(&end, offsets->thread_thread_id, 8);
	cover(&end, offsets->thread_current_frame, 8);
	cover(&end, offsets->thread_state, 4);
	cover(&end, offsets->thread_current_exception, 8);
	return round_up_8(end);
}

static uint64_t frame_bytes(const struct py_offsets *offsets)
{
	uint64_t end = 0;

	cover(&end, offsets->frame_previous, 8);
	cover(&end, offsets->frame_executable, 8);
	cover(&end, offsets->frame_instr, 8);
	cover(&end, offsets->frame_owner, 1);
	cover(&end, offsets->frame_stacktop, 4);
	return round_up_8(end);
}

static uint64_t code_bytes(const struct py_offsets *offsets)
{
	uint64_t end = 0;

	cover(&end, offsets->object_type, 8);
	cover(&end, offsets->var_object_size, 8);
	cover(&end, offsets->code_firstlineno, 4);
	cover(&end, offsets->code_version, 4);
	cover(&end, offsets->code_filename, 8);
	cover(&end, offsets->code_name, 8);
	cover(&end, offsets->code_qualname, 8);
	cover(&end, offsets->code_linetable, 8);
	return round_up_8(end);
}

int py_layout__fill(struct pbp_target *out, const struct py_offsets *offsets, uint16_t base_frame)
{
	uint64_t ts_bytes = thread_bytes(offsets), fr_bytes = frame_bytes(offsets),
		 co_bytes = code_bytes(offsets);

	/* The BPF program masks lengths by the size of its buffers, so a full buffer would read as 0. */
	if (ts_bytes >= PBP_TSTATE_BYTES || fr_bytes >= PBP_FRAME_BYTES || co_bytes >= PBP_CODE_BYTES ||
	    fr_bytes > offsets->frame_localsplus || offsets->interp_next >= PBP_NONE ||
	    offsets->interp_threads_head >= PBP_NONE || offsets->code_version >= PBP_NONE)
		return -EOVERFLOW;

	out->ts_bytes = ts_bytes;
	out->ts_next = offsets->thread_next;
	out->ts_interp = offsets->thread_interp;
	out->ts_thread_id = offsets->thread_thread_id;
	out->ts_frame = offsets->thread_current_frame;
	out->ts_attached = short_offset(offsets->thread_state);
	out->ts_exception = short_offset(offsets->thread_current_exception);
	out->ts_base_frame = base_frame;
	out->ts_attached_mask = UINT32_MAX;
	out->ts_attached_want = TSTATE_ATTACHED;
	out->cframe_frame = short_offset(offsets->cframe_current_frame);
	out->co_bytes = co_bytes;
	out->co_name = offsets->code_qualname == PY_ABSENT ? offsets->code_name : offsets->code_qualname;
	out->co_filename = offsets->code_filename;
	out->co_linetable = offsets->code_linetable;
	out->fr_bytes = fr_bytes;
	out->fr_previous = offsets->frame_previous;
	out->fr_code = offsets->frame_executable;
	out->fr_instr = offsets->frame_instr;
	out->fr_owner = short_offset(offsets->frame_owner);
	out->fr_tag_mask = offsets->tagged_frames ? TAG_BITS : 0;
	out->fr_first_other_owner = offsets->first_other_owner;
	out->fr_instr_is_index = 0;
	out->co_ident = offsets->code_version;
	out->co_ident_bytes = 4;
	out->in_next = offsets->interp_next;
	out->in_threads_head = offsets->interp_threads_head;
	out->in_gc_collecting =
		offsets->interp_gc_collecting == PY_ABSENT ? 0 : offsets->interp_gc_collecting;
	out->in_generation = offsets->interp_generation == PY_ABSENT ? 0 : offsets->interp_generation;
	return 0;
}
