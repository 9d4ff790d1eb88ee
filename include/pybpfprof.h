/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the two sides share: the target description that user space writes for the BPF program, the records
 * that the BPF program sends, the statuses that a sample can have, and the counters of what was lost. The
 * only file that both sides compile: fixed-width fields, explicit padding, no pointers. Append only.
 */
#pragma once

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

#define PBP_MAX_FRAMES	 8192 /* frames that one record can carry; deeper stacks go on as a tail */
#define PBP_MIN_FRAMES	 64   /* smallest budget of a walk */
#define PBP_FRAME_NS	 20   /* assumed cost of one frame of a walk, to turn time into a budget of frames */
#define PBP_INTERP_BYTES 512  /* span of an interpreter's fields that is read at once */
#define PBP_TSTATE_BYTES 512  /* most of a thread state that is read at once */
#define PBP_WINDOW_BYTES 4096 /* the data stack is read up to a page at a time */
#define PBP_FRAME_BYTES	 128  /* most of a frame that is read at once */
#define PBP_CFRAME_BYTES 32   /* most of a cframe that is read at once */
#define PBP_IDENT_BYTES	 128  /* most of a code object's identity that is read at once */
#define PBP_IDENT_WORDS	 12   /* ... and is folded: no version has more */
#define PBP_MAX_THREADS	 1024 /* thread states visited by one list walk in the kernel */
#define PBP_OUTER_STATES 3    /* thread states of one thread that are joined to the one that runs */
#define PBP_WITNESSES	 64   /* frames of a tail that the kernel looks at at most; a power of two */
#define PBP_NONE	 0xffff /* in a layout: this version has no such field */

/* How to find the current thread's state without walking lists. */
#define PBP_SLOT_NONE	0 /* unknown: thread map, then list walk */
#define PBP_SLOT_FSBASE 1 /* at fsbase + slot_offset: local-exec TLS, or a pthread key below 32 */
#define PBP_SLOT_DTV	2 /* in the TLS block of module slot_module, at slot_offset: dlopened libpython */
/* a pthread key of 32 and more: pointer at fsbase + slot_offset, then + slot_offset2 */
#define PBP_SLOT_KEY2 3

/*
 * How to walk one process. Offsets are bytes into the struct named by the prefix: ts PyThreadState, fr
 * interpreter frame, co PyCodeObject, in PyInterpreterState. PBP_NONE = absent. User space has checked that
 * every field it fills lies within the bytes that are read (ts_bytes, fr_bytes); the BPF program masks all
 * the same.
 */
struct pbp_target {
	__u64 interpreters_head; /* address of the runtime's list head; 0 = not found yet */
	__u64 slot_offset;	 /* signed; see PBP_SLOT_* */
	__u64 slot_offset2;	 /* PBP_SLOT_KEY2 */
	__u64 slot_module;	 /* PBP_SLOT_DTV: TLS module id */
	__u32 slot_kind;	 /* PBP_SLOT_* */
	__u32 epoch;		 /* goes into every stack id: a new attach (exec) starts new ids */
	__u16 ts_bytes; /* bytes of a thread state to read, from its start; less than PBP_TSTATE_BYTES */
	__u16 ts_next;
	__u16 ts_interp;
	__u16 ts_thread_id;
	__u16 ts_frame;		/* current_frame; with cframe_frame: the cframe pointer */
	__u16 ts_attached;	/* u32 that says whether the thread is attached (with a GIL: holds it) ... */
	__u16 ts_exception;	/* current_exception */
	__u16 ts_base_frame;	/* the sentinel frame embedded in the thread state (3.15) */
	__u32 ts_attached_mask; /* ... it is if (value & mask) == want */
	__u32 ts_attached_want;
	__u16 cframe_frame; /* 3.11, 3.12: offset of current_frame in the cframe; the previous one follows */
	__u16 fr_bytes;	    /* bytes of a frame to read, from its start; less than PBP_FRAME_BYTES */
	__u16 fr_previous;
	__u16 fr_code;
	__u16 fr_instr; /* instruction pointer (8 bytes), or f_lasti (4 bytes) with fr_instr_is_index */
	__u16 fr_owner;
	__u8 fr_tag_mask;	   /* low bits to clear from fr_code (tagged references, 3.14+) */
	__u8 fr_first_other_owner; /* owners from this on are not Python frames but C entry markers */
	__u8 fr_instr_is_index;
	__u8 fr_all_from_c;   /* every frame was called from C (to 3.10) */
	__u16 co_ident;	      /* what tells two code objects at one address apart: co_version, ... */
	__u16 co_ident_bytes; /* 4, or at most PBP_IDENT_WORDS that are folded by pbp_fold() */
	__u16 in_next;
	__u16 in_threads_head;
	__u16 co_bytes; /* bytes of a code object to copy, from its start; less than PBP_CODE_BYTES */
	__u16 co_name;	/* pointer to the string that names it: co_qualname, or co_name */
	__u16 co_filename;
	__u16 co_linetable;
	__u32 in_gc_collecting; /* these two may lie beyond 64 KiB: 0 = absent */
	__u32 in_generation;	/* code_object_generation */
	__u64 gil_tstate; /* address of the pointer to the thread state that holds the GIL, where ts_attached
			     is absent (to 3.11); 0 = unknown */
	__u64 gc_collecting; /* address of the flag, where it is the runtime's (3.8); 0 = in_gc_collecting */
	__u64 code_type;     /* address of the type of code objects; 0 = unknown */
	__u16 fr_from_c;     /* a byte that is set if C called the frame, where no marker tells (3.11) */
	__u16 st_length; /* string objects: length, then hash and state. PBP_NONE: co_ident is all there is to
			    an identity; else the strings at co_name and co_filename belong to it */
	__u16 st_ascii;	 /* where the characters of an ASCII string begin; PBP_STRING_TAIL at least */
	__u16 st_compact; /* ... and those of any other */
	__u16 co_type;	  /* type of an object */
	__u16 in_id;	  /* id of an interpreter */
	__u16 ts_executor; /* not 0: the thread runs code that the JIT made */
	__u16 ts_suspended; /* value at ts_attached while a stop-the-world pause keeps the thread; 0: none */
	__u64 main_interp; /* address of interpreter 0, from which others are entered; 0 = unknown */
	__u32 in_gc_frame; /* frame that the collection began in; 0 = absent, as the next one */
	__u32 in_requester; /* thread state that has stopped all others */
	__u16 collector;    /* PBP_COLLECTOR_*: which thread collects, while garbage is being collected */
	__u16 ts_exc_info;  /* pointer to the exceptions that are being handled: a list of ... */
	__u16 ex_value;	    /* ... exceptions, or something else that stands for none ... */
	__u16 ex_previous;  /* ... and the next item */
	__u16 ty_flags;	    /* flags of a type, 8 bytes */
	__u16 reserved2[3];
};

#define PBP_COLLECTOR_UNKNOWN	0
#define PBP_COLLECTOR_ATTACHED	1 /* the one that is: with a GIL, holds it */
#define PBP_COLLECTOR_FRAME	2 /* the one whose stack has in_gc_frame */
#define PBP_COLLECTOR_REQUESTER 3 /* in_requester */

/* Of a type: its instances are exceptions (Py_TPFLAGS_BASE_EXC_SUBCLASS). */
#define PBP_TYPE_EXCEPTION (1ull << 30)
#define PBP_EXCEPTIONS_MAX 64 /* items of the list that are looked at */

/* Records: every one starts with its type. */
enum pbp_record_type {
	PBP_STACK = 1, /* struct pbp_stack: a chain of frames not sent before */
	PBP_CODE,      /* struct pbp_code: a code object not sent before, ahead of the stack it is in */
	PBP_SAMPLE,    /* struct pbp_sample */
	PBP_EXEC,      /* struct pbp_process: a target called execve */
	PBP_BIRTH,     /* struct pbp_process: a target has started a thread; sent for the first one only */
	PBP_FORK,      /* struct pbp_process: a target has started a process, which is a target, too */
	PBP_MOVED,     /* struct pbp_process: it was put into another cgroup, or started in one */
	PBP_EXIT,      /* struct pbp_process: the last thread of a target ends ... */
	PBP_FREED,     /* ... and nothing is left of it, not even a zombie; may come for any PBP_EXIT */
	PBP_LOOK,      /* struct pbp_process: what is no Python has other code mapped than it had */
	PBP_WAIT,      /* struct pbp_wait: a thread was off the CPU, and is on it again */
};

/* pbp_frame.flags */
/* the caller of this frame is C code (an entry marker lay between it and the next frame) */
#define PBP_FRAME_C_BELOW 1
/* set by the user side only: where the caller was executing is not known, since it went on meanwhile */
#define PBP_FRAME_MOVED 2
/* no frame, but the end of those of an interpreter that is not the main one: its id is in instr; code is 0 */
#define PBP_FRAME_INTERP 4
/* no frame, but the collection of garbage that the next one, its caller, has come to; code is 0 */
#define PBP_FRAME_GC 8

struct pbp_frame {
	__u64 code;  /* address of the code object, tags cleared */
	__u64 instr; /* instruction pointer, or lasti; 0 in the leaf of a pbp_stack, whose own is in the
			sample */
	__u32 ident; /* identity of the code object at the sample instant */
	__u32 flags;
};

/* pbp_stack.flags */
/* the base is missing: deeper than any limit; sent by the user side only */
#define PBP_STACK_TRUNCATED 1

struct pbp_stack {
	__u32 type;
	__u32 tgid;
	__u64 id;    /* hash over all frames but the leaf's instr, tgid, epoch; keyed by a random seed */
	__u32 count; /* number of frames, leaf first */
	__u32 flags;
	/* struct pbp_frame frames[count] follow */
};

/*
 * A code object as it was at the sample instant, with the start of the objects that name it. Code that is
 * made, run once and freed (eval, exec, templates) is gone before anyone could read it from outside. What is
 * longer than its part is read from user space.
 */
#define PBP_CODE_BYTES	256
#define PBP_NAME_BYTES	256
#define PBP_FILE_BYTES	256
#define PBP_TABLE_BYTES 512
/* copied at most in one tick; more than that at once are a program's first samples */
#define PBP_TICK_CODES 32

struct pbp_code {
	__u32 type;
	__u32 tgid;
	__u64 code;
	__u32 ident;
	__u32 reserved;
	__u16 lens[4]; /* valid bytes of the parts, in their order; 0 = unreadable */
	__u8 header[PBP_CODE_BYTES];
	__u8 name[PBP_NAME_BYTES];
	__u8 file[PBP_FILE_BYTES];
	__u8 table[PBP_TABLE_BYTES];
};

/* How a walk ended. X(identifier, what a user reads behind a number of samples) */
#define PBP_STATUSES(X)                                                                                      \
	X(COMPLETE, "complete")                                                                              \
	X(DEEP, "deeper than the kernel's budget: completed from user space")                                \
	X(FRAME_FAULT, "a frame's memory was not resident: completed from user space")                       \
	X(NO_TARGET, "where no Python was found in the process (yet)")                                       \
	X(NO_TSTATE, "of native threads, which have no Python thread state")                                 \
	X(TSTATE_FAULT, "with a thread state that was not readable")                                         \
	X(NO_FRAMES, "of threads without frames, starting, ending or idle")                                  \
	X(NOT_WALKED, "long wait of a kind that had been short, and so was not walked")

enum pbp_status {
#define PBP_STATUS_ENUM(name, text) PBP_STATUS_##name,
	PBP_STATUSES(PBP_STATUS_ENUM)
#undef PBP_STATUS_ENUM
		PBP_STATUS_COUNT
};

/* pbp_sample.flags */
#define PBP_SAMPLE_ATTACHED 1 /* the thread was attached: held the GIL (GIL builds) */
#define PBP_SAMPLE_GC	    2 /* the thread was collecting garbage */
#define PBP_SAMPLE_RAISING  4 /* an exception was set */
#define PBP_SAMPLE_KERNEL   8 /* interrupted in the kernel (a system call, a page fault) */
#define PBP_SAMPLE_NESTED   16 /* the walk ended before it came to the callers in other interpreters */
/* in code that the JIT made, which does not always say how far it is: leaf_instr is where it last did */
#define PBP_SAMPLE_JIT 32
/* an exception was being handled; told only if asked for (want_exceptions) */
#define PBP_SAMPLE_HANDLING  64
#define PBP_SAMPLE_SUSPENDED 128 /* kept from going on by a stop-the-world pause (free-threaded builds) */

struct pbp_sample {
	__u32 type;
	__u32 tgid; /* ids as the profiler's own pid namespace numbers them */
	__u32 tid;
	__u16 status; /* enum pbp_status */
	__u16 flags;
	__u64 time_ns;	/* CLOCK_MONOTONIC */
	__u64 stack_id; /* 0 = no frames */
	__u64 leaf_instr;
	__u64 tstate;	  /* address of the thread state, 0 = none */
	__u64 generation; /* code_object_generation, 0 = version has none */
	char comm[16];	  /* name of the thread; empty unless want_names */
	/* DEEP and FRAME_FAULT only; other samples end before this. */
	__u64 link_frame;      /* address of the last frame walked, 0 = none was ... */
	__u64 tail_frame;      /* ... and of the one after it, where the walk goes on */
	__u32 witness_version; /* of the struct pbp_witnesses that was used, 0 = there was none */
	__u32 witness_count;
	__u32 witnesses[PBP_WITNESSES]; /* pbp_frame_hash() of its frames at the sample instant, 0 =
					   unreadable */
};

/* Length of a sample without the part for tails. */
#define PBP_SAMPLE_SHORT __builtin_offsetof(struct pbp_sample, link_frame)

/*
 * Frames of the tail that one thread had when its data stack was last read, for the kernel side to look at
 * when it meets a deep stack: a tail that has been exchanged for another one since shows in them.
 */
struct pbp_witness_key {
	__u64 tstate;
	__u64 tgid;
};
struct pbp_witnesses {
	__u32 version; /* not 0 */
	__u32 count;
	__u64 frames[PBP_WITNESSES]; /* addresses */
};

/* pbp_wait.flags */
#define PBP_WAIT_READY	 1 /* it was ready to run all the time: others ran in its place */
#define PBP_WAIT_STOPPED 2 /* by a signal or a debugger */
/* it was off the CPU before it was a target: out_ns is when it was found so by user space, which read the
 * rest */
#define PBP_WAIT_FOUND	 4
#define PBP_WAIT_CERTAIN 8 /* it would have been walked in any case: it stands for itself only */
/* by the user side only: it was met so at a tick, at out_ns, and duration_ns is what that stands for */
#define PBP_WAIT_TICK 16

/* One that lasts so long stands for itself, walked or not. */
#define PBP_WAIT_LONG_NS 50000000ull

/* Waits of one kind are taken to last about as long as the ones before. */
#define PBP_WAIT_KINDS 8

#define PBP_SYSCALL_NONE    (-1)
#define PBP_SYSCALL_UNKNOWN (-2) /* by the user side only */

/*
 * restart_syscall: after a stop the kernel goes on with a call that has a time limit, whose arguments are
 * gone.
 */
#define PBP_SYSCALL_RESTART 219

/* Is it one of these? poll, nanosleep, futex, clock_nanosleep. */
static inline int pbp_syscall_restarts(__s32 syscall)
{
	return syscall == 7 || syscall == 35 || syscall == 202 || syscall == 230;
}

/* A time off the CPU of one thread. */
struct pbp_wait {
	__u32 type;
	__u32 flags;
	__u64 out_ns;	   /* when it left the CPU (CLOCK_MONOTONIC) ... */
	__u64 duration_ns; /* ... and for how long; 0: it has not come back */
	__u64 ready_ns;	   /* of that, ready to run: from when it was woken */
	__u64 extra_ns;	   /* what it stands for, of the waits of its kind that were not walked */
	__u64 arg;	   /* first argument of ... */
	__s32 syscall;	   /* ... the system call that it is in; PBP_SYSCALL_* */
	__u32 reserved;
	struct pbp_sample sample; /* its stack then; short or whole, as a record of its own would be */
};

#define PBP_WAIT_SHORT (__builtin_offsetof(struct pbp_wait, sample) + PBP_SAMPLE_SHORT)

static inline __u32 pbp_wait_kind(__u32 flags, __s32 syscall)
{
	__u32 kind = flags & (PBP_WAIT_READY | PBP_WAIT_STOPPED) ? 1000 + flags : (__u32)syscall;

	return kind * 0x9e3779b9u >> 29;
}

/*
 * A thread that is off the CPU, or was. Written by the kernel side; user space puts in those that were off
 * before anything was watched, and reads those that are still.
 */
struct pbp_off_thread {
	/* What is looked at at every switch lies together. */
	__u64 out_ns;	     /* 0: it is on a CPU */
	__u64 woken_ns;	     /* 0: not yet */
	__u64 ran_ns;	     /* its CPU time when it left; 0: not known */
	__u64 expected_ns;   /* of this wait, when it began ... */
	__u64 walk_every_ns; /* ... and that of its budget then */
	__u32 kind;
	__u32 walked;	  /* 0: wait.sample has an earlier stack */
	__u32 found_tgid; /* not 0: its process, as user space put it in (PBP_WAIT_FOUND) */
	__u32 out_ticks;  /* if it was not walked: out_ns in ticks of the kernel's clock */
	__u64 usual_ns[PBP_WAIT_KINDS]; /* that waits of a kind last; 0: there was none */
	struct pbp_wait wait;
};

/* Sets of ids, by the last bits (bpf/maps.bpf.h). */
#define PBP_ID_BITS 65536

/* For walks of waits that last about as long. */
struct pbp_walk_budget {
	__u64 spent_ns;	     /* in the present window */
	__u64 walk_every_ns; /* of time off the CPU one walk, where waits are shorter; 0: all are walked */
};

/* Of a CPU. */
struct pbp_switch_budget {
	__u64 window_ns;   /* when the present window began */
	__u64 unwalked_ns; /* when a thread last left without a walk */
	struct pbp_walk_budget brief, other;
};

/* Waits that were not walked and are not told of. */
struct pbp_skipped {
	__u64 count;
	__u64 time_ns;
};

struct pbp_process {
	__u32 type;
	__u32 tgid;
	__u64 time_ns;
	__u32 parent; /* PBP_FORK: the target that started it ... */
	__u32 epoch;  /* ... and what goes into the ids of its stacks until user space says otherwise */
	__u64 cpu_ns; /* PBP_EXIT, PBP_FREED: what it used up to then */
};

/* Epochs that the kernel side gives to processes that it follows. User space's own are smaller. */
#define PBP_FORK_EPOCH 0x80000000u

/* Counters of the BPF program, one u64 per CPU each. */
enum pbp_counter {
	PBP_COUNTER_LOST_SAMPLE,  /* ring buffer full ... */
	PBP_COUNTER_LOST_STACK,	  /* ... for the stack of one */
	PBP_COUNTER_LOST_PROCESS, /* ... for a struct pbp_process */
	PBP_COUNTER_LOST_WAIT,	  /* ... for a struct pbp_wait */
	PBP_COUNTER_LOST_WAIT_NS, /* ... and its time */
	PBP_COUNTER_LOST_THREAD,  /* threads that there was no room for: their waits are not told of */
	PBP_COUNTER_UNSEEN,	  /* waits whose end was not told of, but found by the thread's CPU time */
	PBP_COUNTER_TABLE_FULL,	  /* processes that there was no room for: not followed */
	PBP_COUNTER_WAKEUPS,	  /* of the profiler */
	PBP_COUNTER_LIST_WALKS,	  /* thread states that were looked for in the interpreters' lists */
	PBP_COUNTER_COUNT
};

/* What is told of a witness: which frame of which call it is. Never 0. */
static inline __u32 pbp_frame_hash(__u64 code, __u64 instr, __u64 previous)
{
	__u64 hash = (code * 0x9e3779b97f4a7c15ull ^ instr) * 0x9e3779b97f4a7c15ull ^ previous;

	return (__u32)(hash * 0x9e3779b97f4a7c15ull >> 32) | 1;
}

/*
 * Identity of a code object from the bytes at co_ident (words, unused ones are 0) and from its strings, if
 * they belong to it: both sides compute it.
 */
static inline __u64 pbp_fold(__u64 hash, const __u64 *words, __u32 count)
{
	for (__u32 i = 0; i < count; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
	return hash;
}

/*
 * What tells a string from another one that had its address before: CPython's own hash of its characters, or,
 * if that has not been computed yet, the end of them.
 */
#define PBP_STRING_TAIL	   32
#define PBP_STRING_NO_HASH (~0ull)

struct pbp_string {
	__u64 length, hash, state;	 /* as at st_length */
	__u64 tail[PBP_STRING_TAIL / 8]; /* the bytes before pbp_string_end(); 0 if there is a hash */
};

/* Where the characters end, from the start of the object (PyASCIIObject.state, to 3.11: kind and ascii). */
static inline __u64 pbp_string_end(const struct pbp_target *target, const struct pbp_string *string)
{
	__u64 kind = string->state >> 2 & 7, is_ascii = string->state >> 6 & 1;

	return is_ascii ? target->st_ascii + string->length : target->st_compact + string->length * kind;
}

static inline __u64 pbp_fold_string(__u64 hash, const struct pbp_string *string)
{
	hash = pbp_fold(hash, &string->length, 2);
	return pbp_fold(hash, string->tail, PBP_STRING_TAIL / 8);
}

_Static_assert(sizeof(struct pbp_frame) == 24, "pbp_frame is part of the ABI");
_Static_assert(sizeof(struct pbp_stack) == 24, "pbp_stack is part of the ABI");
_Static_assert(sizeof(struct pbp_sample) == 352, "pbp_sample is part of the ABI");
_Static_assert(sizeof(struct pbp_code) == 1312, "pbp_code is part of the ABI");
_Static_assert(sizeof(struct pbp_wait) == 408, "pbp_wait is part of the ABI");
_Static_assert(sizeof(struct pbp_off_thread) == 528, "pbp_off_thread is part of the ABI");
_Static_assert(sizeof(struct pbp_target) == 176, "pbp_target is part of the ABI");
_Static_assert(PBP_MAX_FRAMES * sizeof(struct pbp_frame) < 256 * 1024,
	       "a record must stay far below the ring's size");
