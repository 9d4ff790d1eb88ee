/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a walk wants of a frame, decoded from its bytes by the target's layout: the user side's counterpart of
 * bpf/walk.bpf.h.
 */
#pragma once

#include "base/util.h"
#include "os/remote.h"

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

/* The identity of a code object from the layout->co_ident_bytes read at layout->co_ident. */
static inline uint32_t view_ident(const struct pbp_target *layout, const __u64 words[PBP_IDENT_BYTES / 8])
{
	return layout->co_ident_bytes == 4 ? (uint32_t)words[0] : pbp_ident_fold(words, PBP_IDENT_BYTES / 8);
}
