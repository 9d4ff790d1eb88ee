/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rest of a stack that the kernel side did not walk to its end. Frames lie in the chunks of the thread's data stack, so
 * those are read whole, one batch for all that are where they were last time, and the chain is followed in the copy.
 *
 * The target runs on meanwhile. A tail is exact only if the frame it hangs from, the link, is still in the middle of the
 * same call: while it is, the frames below it cannot change. So the link is compared with what the kernel saw before the
 * tail is read and again afterwards.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "py/target.h"

#include <stdint.h>

#define PY_TAIL_MAX 131072 /* frames; what is deeper is cut at the base and told so */

enum tail_result {
	TAIL_COMPLETE,
	TAIL_TRUNCATED,	 /* longer than PY_TAIL_MAX */
	TAIL_UNVERIFIED, /* the link had moved on, or memory could not be read */
};

struct tail_chunk {
	py_addr address;
	size_t offset; /* of its copy in tail_reader.bytes */
	size_t len;
};

struct tail_reader {
	py_addr tstate;	 /* whose data stack is in the copy */
	uint64_t batch;	 /* the caller's mark: for which batch of samples the copy was made */
	py_addr top;	 /* end of the used part of the newest chunk */
	VEC(struct tail_chunk) chunks; /* newest first */
	VEC(uint8_t) bytes;
	VEC(struct pbp_frame) frames;  /* the result, the frame after the link first */
	uint64_t hash;		       /* over frames */
	struct hmap idents;	       /* code object -> index into codes */
	VEC(uint64_t) codes;
	VEC(uint32_t) code_idents;
};

/* Copy the data stack of a thread as it is now; done once for all tails of one batch of samples. 0 or -errno. */
int tail_reader__snapshot(struct tail_reader *reader, struct py_target *target, py_addr tstate);

/*
 * Follow the chain from `tail`, the caller of the frame `link`, whose code, instr and ident the kernel saw as *expected, in the
 * snapshot. On TAIL_COMPLETE and TAIL_TRUNCATED reader->frames and ->hash hold the tail, until the next call.
 */
enum tail_result tail_reader__follow(struct tail_reader *reader, struct py_target *target, py_addr link,
				     const struct pbp_frame *expected, py_addr tail);

void tail_reader__free(struct tail_reader *reader);
