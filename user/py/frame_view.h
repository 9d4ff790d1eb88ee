/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a walk wants of a frame, decoded from its bytes by the target's layout: the user side's counterpart of
 * bpf/walk.bpf.h.
 */
#pragma once

#include "base/util.h"
#include "os/remote.h"
#include "py/offsets.h"

#include "pybpfprof.h"

#include <stdbool.h>

#define PY_OWNER_GENERATOR 1 /* the frame is part of a generator object, not of the data stack */

struct frame_view {
	py_addr previous, code;
	uint64_t instr;
	uint8_t owner;
	bool other; /* an entry marker, no Python frame: only previous and owner mean something */
};

/* bytes: layout->fr_bytes of them. */
static inline struct frame_view view_frame(const struct pbp_target *layout, const uint8_t *bytes)
{
	struct frame_view view = {
		.previous = load_u64(bytes + layout->fr_previous),
		.code = load_u64(bytes + layout->fr_code) & ~(uint64_t)layout->fr_tag_mask,
		.instr = layout->fr_instr_is_index ? load_u32(bytes + layout->fr_instr)
						   : load_u64(bytes + layout->fr_instr),
	};

	if (layout->fr_owner != PBP_NONE)
		view.owner = bytes[layout->fr_owner];
	view.other = layout->fr_first_other_owner && view.owner >= layout->fr_first_other_owner;
	return view;
}

/* Can a frame that has returned be told from one that has not (frame_is_live)? */
static inline bool frames_show_life(const struct py_offsets *offsets)
{
	return offsets->tagged_frames || offsets->frame_stacktop != PY_ABSENT ||
	       offsets->frame_state != PY_ABSENT;
}

/*
 * Has this frame not returned yet? Its bytes stay where they are when it has, but for what the interpreter
 * clears: the code object from 3.14 on (_PyEval_FrameClearAndPop in Python/ceval.c), the link of a
 * generator's frame (YIELD_VALUE). In 3.11 to 3.13 stacktop is negative while the frame is executed, and not
 * when it has returned; a caller's is neither, so that it counts as live if what it called is. Frame objects,
 * before 3.11, have a state. Only if frames_show_life().
 */
static inline bool frame_is_live(const struct py_offsets *offsets, const struct frame_view *view,
				 const uint8_t *bytes, bool is_caller)
{
	if (view->other)
		return true;
	if (!view->code || (view->owner == PY_OWNER_GENERATOR && !view->previous))
		return false;
	if (offsets->frame_state != PY_ABSENT)
		return py_frame_is_running(offsets, bytes[offsets->frame_state]);
	return is_caller || offsets->frame_stacktop == PY_ABSENT ||
	       (int32_t)load_u32(bytes + offsets->frame_stacktop) < 0;
}
