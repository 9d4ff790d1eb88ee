/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map and knob of the kernel side, with who writes and who reads it. Knobs in .rodata are set before
 * load, so that the verifier drops dead code; variables in .bss are shared while running.
 */
#pragma once

/* Set by user space before load. */
const volatile __u32 max_frames = PBP_MAX_FRAMES; /* budget of one walk, from the rate */
const volatile __u32 want_names = 0;		  /* put the thread's name into samples */
const volatile __u32 want_exceptions = 0;	  /* ... and whether an exception is being handled */
const volatile __u64 hash_seed = 1; /* random: a target cannot make two stacks collide on purpose */

const volatile __u32 follow_forks = 0; /* processes that targets start are targets, too */
/* ... and those are told of that no target has started, and so is new code in them */
const volatile __u32 tell_execs = 0;
const volatile __u32 tell_moves = 0; /* processes that are put into another cgroup are told of */
const volatile __u32 tick_ns = 1000000; /* from one of the kernel's ticks to the next */
const volatile __u32 tick_stride = 1; /* parts of a tick of the kernel to one sample (clock.bpf.h) */

/* Written by user space, read here. */
__u32 reader_idle = 0; /* the reader has stopped polling: wake it for the next record */
__u32 cpu_ticks = 0;	/* the timers on the CPUs count, those on threads are on their way out */
__u32 kernel_ticks = 0; /* those of the kernel's clock count */

/* Written by own_pidns(), once. */
__u32 pidns_level = 0; /* depth of the profiler's pid namespace: ids are sent as it numbers them */
__u64 pidns = 0;       /* address of its struct pid_namespace */
__u64 own_time_ns = 0; /* by the clock that records are stamped with */

/*
 * Ids of targets, and of threads that are in off_threads, by their last bits; user space sets those of what
 * it puts in. Never cleared: a bit that is set says perhaps, and one that is not saves a look-up at every
 * switch.
 */
__u64 target_bits[PBP_ID_BITS / 64] = {};
__u64 off_thread_bits[PBP_ID_BITS / 64] = {};

/* Written and read here. */
__u64 last_wakeup_ns = 0;
__u32 birth_told = 0; /* a target has started a thread, and the reader knows */
__u32 forks = 0;      /* number of processes that were followed */
__u64 tick_function = 0;    /* of the timer that is the kernel's tick; 0: it has not been met yet */
__u64 next_stranger_ns = 0; /* no process that is no target is told of before this time (look.bpf.h) */

/* Wake-ups from the interrupt are paid by the target: at most 100 a second over all CPUs. */
#define WAKEUP_INTERVAL_NS 10000000ull

/* tgid -> how to walk it. Written by user space, and here for what a target starts; sized there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct pbp_target);
} targets SEC(".maps");

/* All records. Read by user space; sized there. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PBP_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/*
 * Identities of code objects, so that a function that recurs is read once. Valid while `stamp` is the walk's
 * own.
 */
#define IDENT_ENTRIES 64
struct ident_entry {
	__u64 code;
	__u64 stamp;
	__u64 ident;
};

#define WALK_GUESSES 6 /* registers */

/* A walk in progress. */
struct walk {
	__u64 frame;	  /* the next frame to read, 0 = the chain has ended */
	__u64 last_read;  /* the last one read */
	__u64 last_frame; /* the last one recorded */
	__u64 base_frame; /* the sentinel of this thread, 0 = version has none */
	__u64 hash;
	__u64 leaf_instr;
	__u32 count; /* frames recorded */
	__u32 limit; /* ... at most */
	__u32 faulted;
	__u32 fresh_codes;     /* code objects in it that were not sent before */
	__u32 generation_read; /* sample.generation is the interpreter's */
	__u32 holds_gil;       /* the runtime says so; only where it tells */
	__u32 found_collector; /* gc_frame has been met */
	__u64 gc_frame; /* frame that the collection began in which runs, where the version tells; 0 = none */
	__u32 window_len;      /* valid bytes of scratch.window ... */
	__u64 window_start;    /* ... and where in the target they are */
	__u64 ident_stamp;     /* entries of scratch.idents with it hold for this walk */
	__u64 start_hash;  /* of the thread state that is being walked ... */
	__u32 start_count; /* ... and the frames before it */
	__u64 below;	/* the frame that the eval loop was entered from ... */
	__u32 unproved; /* ... and whether the walk has yet to come to it */
	__u32 belows;	/* it began there, as nothing led to it; 2, 3: at the first, second register */
	__u32 is_cut;	/* the frame it began at has no caller (yet) ... */
	__u32 guesses_left;
	__u64 guesses[8]; /* ... and WALK_GUESSES of these, from registers, may point to it */
	__u32 nested;	  /* the thread may have entered this interpreter from another one */
	__u32 next_outer;
	__u64 outer[4]; /* the thread's other thread states, innermost first; PBP_OUTER_STATES, 0 = no more */
	__u64 fsbase;
	__u64 interp_id; /* of the thread state that is being walked; 0: the main one, or nested is 0 */
};

/*
 * Working memory of one walk. An array indexed by CPU, since a per-CPU map refuses values over 32 KiB. A
 * perf-event program is not interrupted by another one on its CPU, so one each is enough.
 */
struct scratch {
	struct pbp_target target; /* a copy: user space may replace the original meanwhile */
	struct pbp_sample sample;
	__u8 tstate[PBP_TSTATE_BYTES];
	__u8 interp[PBP_INTERP_BYTES];
	__u8 window[PBP_WINDOW_BYTES +
		    PBP_FRAME_BYTES]; /* part of the data stack: a page, and what a frame juts out */
	__u8 ident[PBP_IDENT_BYTES];
	struct pbp_string string;
	__u8 cframe[PBP_CFRAME_BYTES];
	struct ident_entry idents[IDENT_ENTRIES];
	__u64 walks;
	struct walk walk;
	struct pbp_code code;
	__u32 witnesses[PBP_WITNESSES];
	struct pbp_stack stack; /* header of the record; its frames follow */
	struct pbp_frame frames[PBP_MAX_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_memory SEC(".maps");

/*
 * Stacks and code objects already sent: direct-mapped caches of their hashes. A displaced entry is sent
 * again, which costs bytes and nothing else. Written only after the ring buffer took the record.
 */
#define SENT_STACKS 32768
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SENT_STACKS);
	__type(key, __u32);
	__type(value, __u64);
} sent_stacks SEC(".maps");

#define SENT_CODES 16384
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SENT_CODES);
	__type(key, __u32);
	__type(value, __u64);
} sent_codes SEC(".maps");

/* What is known of a thread that no slot could tell. Keyed by kernel tid. */
struct thread {
	__u64 start_time; /* of the task this is about: tids are reused */
	__u64 tstate;	  /* last thread state found by a list walk, 0 = none */
	__u64 retry_ns;	  /* no list walk before this time */
	__u64 inner;	  /* thread state of an interpreter that is not the main one ... */
	__u64 outer[4];	  /* ... and the thread's other ones ... */
	__u64 outer_ns;	  /* ... to be looked for again at this time */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

/*
 * Processes of which the last thread is ending, and when that was told, by the task that stands for them.
 * What a task used is known to the last when it is freed.
 */
struct ending {
	__u64 time_ns;
	__u32 tgid;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct ending);
} endings SEC(".maps");

/*
 * What was known of a process that is no Python when user space was last told to look at it. Keyed by tgid.
 */
struct stranger {
	__u64 code_pages;
	__u64 next_ns; /* not told again before this time */
	__u64 wait_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct stranger);
} strangers SEC(".maps");

/* Threads of targets (struct pbp_off_thread), keyed by thread id as user space numbers them; sized there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pbp_off_thread);
} off_threads SEC(".maps");

/* One of nothing, to begin with: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pbp_off_thread);
} no_thread SEC(".maps");

/* What walks at switches may cost on a CPU (offcpu.bpf.h). Read by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pbp_switch_budget);
} switch_budgets SEC(".maps");

/* Waits that were not walked, by kind. Read by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PBP_WAIT_KINDS);
	__type(key, __u32);
	__type(value, struct pbp_skipped);
} skipped SEC(".maps");

/* Which of the ticks that met a target are samples; in parts of a tick, from the beginning. */
struct tick_pace {
	__u64 seen;
	__u64 next; /* the first one beyond this is */
	__u64 end;  /* of the stride that `next` lies in; 0: there was none */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tick_pace);
} tick_paces SEC(".maps");

/* What user space wants looked at in a thread's tail. Written there, read here. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct pbp_witness_key);
	__type(value, struct pbp_witnesses);
} witness_lists SEC(".maps");

static __always_inline void add(__u32 counter, __u64 number)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += number;
}

static __always_inline void count(__u32 counter)
{
	add(counter, 1);
}
