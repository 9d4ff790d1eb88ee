/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tail.c (START HERE) and tail_snapshot.c.
 */
#pragma once

#include "py/tail.h"

#include "py/frame_view.h"

/* --- tail_snapshot.c --- */

/* To 3.10 frames are objects by themselves. */
bool tail_has_frame_objects(const struct py_target *target);
/* Copy those of the longest chain once more. 0 or -errno. */
int tail_copy_frames(struct tail_reader *reader, struct py_target *target);
/*
 * A frame from the snapshot, or, when it lives in a generator object or on the C stack, from the target. Any
 * other frame that is not in a live part of the data stack has been popped: its bytes may still look right,
 * so they must not be read. *hint: where to look first. 0 or -EFAULT.
 */
int tail_load_frame(struct tail_reader *reader, struct py_target *target, py_addr address, size_t *hint,
		    struct frame_view *view);
