/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rest of a stack that the kernel side did not walk to its end. Frames lie in the chunks of the thread's
 * data stack, so those are read whole, one batch for all that are where they were last time, and the chain is
 * followed in the copy. To 3.10 each frame is an object by itself: those that were in the last chain are read
 * in one batch, others one by one.
 *
 * The target runs on meanwhile. A tail belongs to a sample if the frame it hangs from, the link, is still in
 * the middle of the same call: while it is, the frames below it cannot change. So the link is compared with
 * what the kernel saw before the tail is read and again afterwards. That alone would take a later call for
 * the sampled one where a deep recursion is entered again and again from different callers. So the kernel
 * also looks, at the sample instant, at witnesses among the tail's frames as the last reading found them:
 * those at which the tail turns, beginning at the base, and some at fixed distances from the base. Only if
 * every one of them looked as it does now is the tail taken; a tail with more turns than can be looked at is
 * not.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "py/frame_copies.h"
#include "py/target.h"

#include <stdbool.h>
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
	py_addr tstate; /* whose data stack is in the copy */
	uint64_t batch; /* the caller's mark: for which batch of samples the copy was made ... */
	bool readable;	/* ... and that it could be */
	py_addr top;	/* end of the used part of the newest chunk */
	VEC(struct tail_chunk) chunks; /* newest first */
	VEC(uint8_t) bytes;
	struct frame_copies copies;		       /* without a data stack: frames that were ... */
	VEC(py_addr) longest;			       /* ... in the longest chain, with its link */
	bool longest_is_old;			       /* it was not in this snapshot */
	VEC(struct pbp_frame) frames;		       /* the result, the frame after the link first */
	VEC(py_addr) addresses;			       /* ... and where each lies */
	VEC(uint32_t) hashes;			       /* ... and its pbp_frame_hash() */
	struct pbp_witnesses witnesses, old_witnesses; /* what the kernel side looks at, and did before */
	size_t outside;				       /* frames read that are not in the copy */
	uint64_t hash;				       /* over frames */
	struct hmap idents;			       /* code object -> index into codes */
	VEC(uint64_t) codes;
	VEC(uint32_t) code_idents;
};

/*
 * Copy the data stack of a thread, or the frames that it had, as it is now; done once for all tails of one
 * batch of samples. 0 or -errno.
 */
int tail_reader__snapshot(struct tail_reader *reader, struct py_target *target, py_addr tstate);

/*
 * Follow the chain of a DEEP or FRAME_FAULT sample in the snapshot. *expected is the frame it hangs from as
 * the kernel saw it. On TAIL_COMPLETE and TAIL_TRUNCATED reader->frames and ->hash hold the tail, until the
 * next call. If reader->witnesses.version has changed, the kernel side is to be given the new witnesses.
 */
enum tail_result tail_reader__follow(struct tail_reader *reader, struct py_target *target,
				     const struct pbp_sample *sample, const struct pbp_frame *expected);

/*
 * Choose witnesses from the stack that a thread has now, before any sample of it. Only stacks of more than
 * `most_frames` need any. Whether there are some (reader->witnesses).
 */
bool tail_reader__prime(struct tail_reader *reader, struct py_target *target, py_addr tstate,
			size_t most_frames);

void tail_reader__free(struct tail_reader *reader);
