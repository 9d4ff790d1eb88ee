/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel side reads a prefix of a thread state and of a frame, as short as covers the fields: a frame on
 * the data stack may be the last thing before the end of a mapping, so nothing behind its header is touched.
 */
#include "py/layout.h"

#include "base/util.h"

#include <errno.h>

#define STATUS_ACTIVE	(1u << 4) /* of PyThreadState._status, Include/cpython/pystate.h (3.12) */
#define TSTATE_ATTACHED 1	  /* _Py_THREAD_ATTACHED, Include/cpython/pystate.h (3.13+) */
#define TSTATE_SUSPENDED 2	  /* _Py_THREAD_SUSPENDED, Include/internal/pycore_pystate.h (3.13+) */
#define TAG_BITS	3	  /* Py_TAG_BITS and the deferred bit of _PyStackRef (3.14+) */

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

/* What says whether a thread is attached: its state from 3.13 on, a bit of its status in 3.12. */
static uint32_t attached_offset(const struct py_offsets *offsets)
{
	return offsets->thread_state != PY_ABSENT ? offsets->thread_state : offsets->thread_status;
}

static uint64_t thread_bytes(const struct py_offsets *offsets)
{
	uint64_t end = 0;

	cover(&end, offsets->thread_next, 8);
	cover(&end, offsets->thread_interp, 8);
	cover(&end, offsets->thread_thread_id, 8);
	cover(&end, offsets->thread_current_frame, 8);
	cover(&end, attached_offset(offsets), 4);
	cover(&end, offsets->thread_current_exception, 8);
	cover(&end, offsets->thread_executor, 8);
	if (py_offsets__has(offsets->thread_exc_info))
		cover(&end, offsets->thread_exc_info, 8);
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
	cover(&end, offsets->frame_entry, 1);
	cover(&end, offsets->frame_state, 1);
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

/*
 * Identity of code objects: from 3.12 on they are numbered. Before, everything from the first line to the
 * line table, which are pointers to what the object is made of, none of which changes while it lives.
 */
static void fill_identity(struct pbp_target *out, const struct py_offsets *offsets)
{
	out->st_length = out->st_ascii = out->st_compact = PBP_NONE;
	if (offsets->code_version != PY_ABSENT) {
		out->co_ident = offsets->code_version;
		out->co_ident_bytes = 4;
		return;
	}
	out->co_ident = offsets->code_firstlineno;
	out->co_ident_bytes = offsets->code_linetable + 8 - offsets->code_firstlineno;
	out->st_length = offsets->unicode_length;
	out->st_ascii = offsets->unicode_ascii_size;
	out->st_compact = offsets->unicode_compact_size;
}

/*
 * A collection has all other threads wait but for the finalizers and callbacks that it runs, also where there
 * is no GIL. Then which one it is that collects is not to be seen, but from 3.15 on, which tells the frame.
 */
static void fill_collector(struct pbp_target *out, const struct py_offsets *offsets)
{
	out->in_gc_frame = py_offsets__has(offsets->interp_gc_frame) ? offsets->interp_gc_frame : 0;
	out->in_requester = offsets->interp_requester == PY_ABSENT ? 0 : offsets->interp_requester;
	out->collector = out->in_gc_frame	  ? PBP_COLLECTOR_FRAME
			 : out->in_requester	  ? PBP_COLLECTOR_REQUESTER
			 : offsets->free_threaded ? PBP_COLLECTOR_UNKNOWN
						  : PBP_COLLECTOR_ATTACHED;
}

static void fill_exceptions(struct pbp_target *out, const struct py_offsets *offsets)
{
	bool known = py_offsets__has(offsets->thread_exc_info) && py_offsets__has(offsets->type_flags);

	out->ts_exc_info = known ? offsets->thread_exc_info : PBP_NONE;
	out->ex_value = offsets->exception_value;
	out->ex_previous = offsets->exception_previous;
	out->ty_flags = offsets->type_flags;
}

void py_layout__locate(struct pbp_target *out, const struct py_offsets *offsets, uint64_t runtime)
{
	out->interpreters_head = runtime + offsets->runtime_interpreters_head;
	out->gil_tstate =
		offsets->runtime_current_tstate == PY_ABSENT ? 0 : runtime + offsets->runtime_current_tstate;
	out->gc_collecting =
		offsets->runtime_gc_collecting == PY_ABSENT ? 0 : runtime + offsets->runtime_gc_collecting;
}

int py_layout__fill(struct pbp_target *out, const struct py_offsets *offsets, uint16_t base_frame)
{
	uint64_t ts_bytes = thread_bytes(offsets), fr_bytes = frame_bytes(offsets),
		 co_bytes = code_bytes(offsets);

	/* The BPF program masks lengths by the size of its buffers, so a full buffer would read as 0. */
	if (ts_bytes >= PBP_TSTATE_BYTES || fr_bytes >= PBP_FRAME_BYTES || co_bytes >= PBP_CODE_BYTES ||
	    fr_bytes > offsets->frame_localsplus || offsets->interp_next >= PBP_NONE ||
	    offsets->interp_threads_head >= PBP_NONE || offsets->interp_id >= PBP_NONE ||
	    (offsets->code_version != PY_ABSENT && offsets->code_version >= PBP_NONE))
		return -EOVERFLOW;
	if (offsets->code_version == PY_ABSENT &&
	    (offsets->code_linetable < offsets->code_firstlineno ||
	     offsets->code_linetable + 8 - offsets->code_firstlineno > PBP_IDENT_WORDS * 8))
		return -EOVERFLOW;

	out->ts_bytes = ts_bytes;
	out->ts_next = offsets->thread_next;
	out->ts_interp = offsets->thread_interp;
	out->ts_thread_id = offsets->thread_thread_id;
	out->ts_frame = offsets->thread_current_frame;
	out->ts_attached = short_offset(attached_offset(offsets));
	out->ts_exception = short_offset(offsets->thread_current_exception);
	out->ts_executor = short_offset(offsets->thread_executor);
	out->ts_base_frame = base_frame;
	out->ts_attached_mask = offsets->thread_state != PY_ABSENT ? UINT32_MAX : STATUS_ACTIVE;
	out->ts_attached_want = offsets->thread_state != PY_ABSENT ? TSTATE_ATTACHED : STATUS_ACTIVE;
	out->ts_suspended =
		offsets->free_threaded && offsets->thread_state != PY_ABSENT ? TSTATE_SUSPENDED : 0;
	out->cframe_frame = short_offset(offsets->cframe_current_frame);
	out->co_bytes = co_bytes;
	out->co_name = offsets->code_qualname == PY_ABSENT ? offsets->code_name : offsets->code_qualname;
	out->co_type = offsets->object_type;
	out->co_filename = offsets->code_filename;
	out->co_linetable = offsets->code_linetable;
	out->fr_bytes = fr_bytes;
	out->fr_previous = offsets->frame_previous;
	out->fr_code = offsets->frame_executable;
	out->fr_instr = offsets->frame_instr;
	out->fr_owner = short_offset(offsets->frame_owner);
	out->fr_tag_mask = offsets->tagged_frames ? TAG_BITS : 0;
	out->fr_first_other_owner = offsets->first_other_owner;
	out->fr_instr_is_index = offsets->lasti_unit != 0;
	out->fr_all_from_c =
		offsets->frame_owner == PY_ABSENT; /* frame objects: each has its own eval loop */
	out->fr_from_c = short_offset(offsets->frame_entry);
	fill_identity(out, offsets);
	out->in_next = offsets->interp_next;
	out->in_threads_head = offsets->interp_threads_head;
	out->in_id = offsets->interp_id;
	out->in_gc_collecting =
		offsets->interp_gc_collecting == PY_ABSENT ? 0 : offsets->interp_gc_collecting;
	out->in_generation = offsets->interp_generation == PY_ABSENT ? 0 : offsets->interp_generation;
	fill_collector(out, offsets);
	fill_exceptions(out, offsets);
	return 0;
}
