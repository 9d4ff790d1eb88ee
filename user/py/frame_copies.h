/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of frames that are objects of their own (to 3.10), of one chain, all read in few calls where they
 * lay last time.
 */
#pragma once

#include "base/vec.h"
#include "os/remote.h"

#include <stddef.h>
#include <stdint.h>

struct frame_copies {
	VEC(py_addr) addresses; /* leaf first; 0: could not be read */
	VEC(uint8_t) bytes;	/* frame_len for each */
	size_t frame_len;
	size_t searches; /* left: what is not next to the last one found has to be searched for */
};

/*
 * Read the first `len` bytes of each frame, those of the leaf first, so that a frame is never older in the
 * copy than one that called it. 0 or -errno, then there are none.
 */
int frame_copies__read(struct frame_copies *copies, struct remote *remote, const py_addr *addresses,
		       size_t count, size_t len);

/* The copy of the frame at `address`, or NULL. *hint: index where the last one was found. */
const uint8_t *frame_copies__find(struct frame_copies *copies, py_addr address, size_t *hint);

void frame_copies__free(struct frame_copies *copies);
