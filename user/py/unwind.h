/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of threads as they were at one instant, read from outside while the threads run.
 *
 * One process_vm_readv reads, for each thread, the memory that its frames lie in (ranges of the data stack,
 * frames of generators and entry markers), then its thread state, then the same memory once more. The chain
 * that hangs from the thread state's current frame was the thread's stack at the instant in the middle if
 * every frame of it has the same code and the same caller in both copies. Where they lie is predicted from
 * the last reading; what the prediction lacks is looked up and the reading repeated. A stack that changed
 * during every one of a bounded number of readings is torn, and told so.
 *
 * Frames show whether they have returned (py/frame_view.h). So the last copy is left out as long as
 * the stack is as it was or differs by calls that are known to be made; of stacks that change all the time,
 * what one copy shows is enough under the same condition.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "os/pages.h"
#include "py/ident.h"
#include "py/target.h"

#include <stdbool.h>
#include <stdint.h>

#define UNWIND_FRAMES_MAX   131072 /* of one stack; what is deeper is cut at the base and told so */
#define UNWIND_THREAD_BYTES 512	   /* most of a thread state that is read */
#define UNWIND_INTERP_BYTES 4096   /* ... and of an interpreter */

enum unwind_result {
	UNWIND_OK,
	UNWIND_NO_FRAMES,  /* the thread runs no Python code */
	UNWIND_TORN,	   /* it changed during every one of several readings */
	UNWIND_GONE,	   /* the thread state is not this thread's any more */
	UNWIND_UNREADABLE, /* a frame or the thread state lies in no readable memory */
};

/* Memory of the target that frames lie in: a chunk of the data stack, or one frame that lies elsewhere. */
struct unwind_region {
	py_addr address;
	size_t size;   /* of the whole chunk; of the frame */
	size_t len;    /* what is read of it */
	size_t used;   /* what frames took of it since the prediction was last trimmed */
	size_t offset; /* of the second copy in thread_stack.copies; the first lies copy_bytes behind it */
	size_t got;    /* bytes of it that the copies have */
	size_t block;  /* that it is read with */
	bool skip;     /* below the marker: not read */
};

/* What one segment reads: a chunk, or single frames that lie close together. */
struct unwind_block {
	py_addr address;
	size_t len, offset;
};

/*
 * Identity of a code object, read in the same call as the frames. Where its names belong to it (py/ident.h),
 * what was found by a first reading is compared with what is there at the next one.
 */
struct unwind_ident {
	py_addr code;
	__u64 words[PBP_IDENT_BYTES / 8];
	struct pbp_string names[PY_IDENT_NAMES];
	struct {
		__u64 words[PBP_IDENT_BYTES / 8];
		struct pbp_string names[PY_IDENT_NAMES];
		uint32_t ident;
		bool known;
	} expected;
	size_t first_segment; /* where in the batch it is */
	size_t got;
	bool used;
};

struct thread_stack {
	struct py_thread thread; /* whose; set by thread_stack__init */
	bool still;		 /* the thread is stopped: what is there is its stack; set by the caller */
	/* The last reading: */
	enum unwind_result result;
	VEC(struct pbp_frame) frames; /* leaf first; with the leaf's own instr */
	VEC(py_addr) addresses;	      /* ... and where each lies */
	bool same;		      /* frames are those of the reading before, but for the leaf's instr */
	bool truncated;
	uint32_t moved; /* callers whose line could not be told (PBP_FRAME_MOVED) */
	uint32_t flags; /* PBP_SAMPLE_ATTACHED, _GC, _RAISING, _HANDLING (if wanted), _JIT, _SUSPENDED */
	size_t collection; /* the frame that the collection that runs began in; SIZE_MAX: none, or not known
			    */
	uint64_t generation;
	py_addr current_frame;
	uint8_t state[UNWIND_THREAD_BYTES]; /* the thread state's own bytes, unwinder->thread_bytes of them */
	/* The prediction for the next one: */
	VEC(struct pbp_frame) last_frames; /* the last stack that was read, and where its frames were */
	VEC(py_addr) last_addresses;
	VEC(struct unwind_region) regions; /* chunks, newest first, then single frames */
	size_t chunks;			   /* of them */
	struct hmap singles;		   /* address -> index in regions */
	VEC(uint32_t) by_address;	   /* indexes of single frames in regions, sorted ... */
	bool sorted;			   /* ... and up to date, if there are as many */
	VEC(struct unwind_block) blocks;
	VEC(struct unwind_ident) idents;
	py_addr cframe, cframe_below; /* 3.11, 3.12: where current_frame is, and the one of the loop below */
	/* The frame marker that this program has set: */
	struct {
		py_addr frame; /* 0: none */
		uint64_t seq;  /* the interpreter's count then */
		size_t index;  /* of the frame in last_frames */
		bool ours;     /* it was set by this program once */
	} marker;
	VEC(uint8_t) copies, last_copies;
	VEC(struct unwind_block) last_blocks;
	size_t copy_bytes;
	uint32_t readings;
	/* One reading in progress; for unwind.c. */
	struct {
		size_t state_segment;
		size_t first_copies[2]; /* segments of the two copies */
		uint64_t hop[2];	/* of the cframe: current_frame, and the cframe below ... */
		uint64_t below;		/* ... and its current_frame, which the chain has to pass */
		VEC(struct pbp_frame)
		frames; /* of the first walk that held, while lines are still looked for */
		VEC(py_addr) addresses;
		size_t ident_hint;
		uint32_t tries; /* to tell the lines of what is held */
		uint64_t last_generation;
		bool light;  /* one copy only */
		bool entered; /* the leaf is being entered or left: only known calls tell that it is there */
		bool marked; /* ... and only of what lies above the marker */
		size_t same; /* frames from the base on that are as they were in the last stack */
		bool done, held, learned, was_new;
		enum unwind_result failure;
	} work;
};

/* What is read of an interpreter along with stacks. */
struct unwind_interp {
	py_addr address;
	int64_t id;
	py_addr gil; /* address of the GIL it uses, 0 = none */
	py_addr threads_head;
	uint64_t generation, generation_before;
	py_addr gc_frame, requester; /* as pbp_target.in_gc_frame and in_requester */
	bool collecting, readable;
	uint8_t bytes[UNWIND_INTERP_BYTES];
	size_t segment;
};

struct unwind_gil {
	py_addr address;
	py_addr holder; /* thread state that holds it, 0 = free */
	uint8_t bytes[32];
	size_t segment;
};

struct unwind_stats {
	uint64_t readings; /* stacks read */
	uint64_t hits;	   /* ... that the prediction covered at once */
	uint64_t partial;  /* ... but for some frames */
	uint64_t misses;   /* ... not at all: a new thread, or all its frames elsewhere */
	uint64_t retries;  /* readings repeated because something changed meanwhile */
	uint64_t unproven; /* ... because one copy was not enough */
	uint64_t marked;   /* ... read down to the marker only */
	uint64_t writes;   /* ... of markers */
	uint64_t slow;	   /* ... because the call took too long to be trusted */
	uint64_t torn;
	uint64_t moved; /* frames shown without their line */
	uint64_t stale; /* thread states gone or taken over by another thread */
	uint64_t ident_reads, ident_hits;
	uint64_t page_hits, page_reads; /* filled in by whoever asks */
};

struct unwinder {
	struct py_target *target; /* borrowed */
	VEC(struct unwind_interp) interps;
	VEC(struct unwind_gil) gils;
	VEC(struct remote_segment) segments;
	bool use_marker;	 /* py/marker.h; a caller's choice */
	bool want_exceptions;	 /* find out whether one is being handled; a caller's choice */
	py_addr not_exception;	 /* an object that stands in place of an exception, None; 0: not met yet */
	uint32_t collecting; /* the runtime is collecting garbage, where it is what says so (3.8) */
	bool want_gils;		 /* read who holds the GILs; a caller's choice, for the next reading; and: */
	py_addr head;		 /* the newest interpreter */
	struct hmap idents;	 /* code object -> identity << 32 | stamp of the interpreter's generation */
	struct hmap codes;	 /* code objects that were seen -> their length in code units */
	struct hmap in_copies;	 /* instructions that lie in a thread's copy of the bytecode (py/copies.h) */
	struct hmap calls;	 /* instructions that are known to have called a function: hash of the two */
	struct page_cache pages; /* of what is read one by one while a prediction is made */
	size_t thread_bytes;	 /* of a thread state to read */
	uint32_t interp_first, interp_len; /* of an interpreter to read; 0 = nothing */
	uint32_t slowness;		   /* usual time of a call over what is expected, in 1/256 ... */
	uint32_t paced;			   /* ... in so many calls */
	struct unwind_stats stats;
};

/* 0; -EOVERFLOW: fields of the thread state lie too far apart. */
int unwinder__init(struct unwinder *unwinder, struct py_target *target);
/* Look again which interpreters there are. 0 or -errno. */
int unwinder__find_interpreters(struct unwinder *unwinder);
/* The one at this address; NULL. */
const struct unwind_interp *unwinder__interp(const struct unwinder *unwinder, py_addr address);
void unwinder__free(struct unwinder *unwinder);

void thread_stack__init(struct thread_stack *stack, const struct py_thread *thread);
void thread_stack__free(struct thread_stack *stack);
/* Take its frame marker away, if this program has set one. */
void thread_stack__unmark(struct thread_stack *stack, const struct unwinder *unwinder);

/*
 * Read the stacks of count threads, and the interpreters and GILs that are known; in one call as long as the
 * predictions hold. Each stack's result tells how it came out. 0; -ESRCH when the process is gone, -EPERM,
 * -ENOMEM.
 */
int unwinder__read(struct unwinder *unwinder, struct thread_stack *const *stacks, size_t count);
