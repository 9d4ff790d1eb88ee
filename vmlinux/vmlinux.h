/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types that the BPF side touches, trimmed by hand, so that a build needs neither BTF nor
 * kernel headers. Layouts here don't matter: every access is relocated by CO-RE against the running kernel,
 * except the uapi types, which are fixed. To look up more: bpftool btf dump file /sys/kernel/btf/vmlinux
 * format c.
 */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* uapi: linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_ANY = 0,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/*
 * uapi: asm/ptrace.h (x86-64) and linux/bpf_perf_event.h. cs tells user from kernel mode, orig_ax and di the
 * system call and its first argument.
 */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

/* uapi: linux/bpf.h, linux/sched.h */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};
#define CLONE_THREAD 0x00010000
#define CLONE_INTO_CGROUP 0x200000000ull

/* linux/sched.h; not uapi, but user space sees them as numbers and letters. */
#define __TASK_STOPPED 0x04
#define __TASK_TRACED  0x08
#define TASK_DEAD      0x80

/*
 * What the context of a perf_event program really is, behind struct bpf_perf_event_data; the same since 4.9.
 */
struct perf_event;
struct bpf_perf_event_data_kern {
	void *regs;
	void *data;
	struct perf_event *event;
};

/* The id of a task or thread group at one level of pid namespaces; the same since 2.6.24. */
struct upid {
	int nr;
	void *ns;
};

/*
 * Relocated by CO-RE. A type added here must be added to KERNEL_TYPES in user/run/sampler_load.c: libbpf is
 * shown those only.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Ids of a task or thread group, one per pid namespace level. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct thread_struct {
	unsigned long fsbase; /* x86-64: the thread pointer, which CPython's thread_id equals */
};

struct mm_struct {
	unsigned long exec_vm; /* pages of code that are mapped */
};

struct sched_entity {
	__u64 sum_exec_runtime; /* ns of CPU time */
};

typedef struct {
	int counter;
} atomic_t;

/* What the threads of a process share. */
struct signal_struct {
	atomic_t live;			      /* threads that have not begun to end */
	unsigned long long sum_sched_runtime; /* ns of CPU time of those that are gone */
};

struct task_struct {
	int pid;
	int tgid;
	unsigned int __state; /* since 5.14 */
	__u64 start_time;     /* with pid: the identity of a thread */
	struct task_struct *group_leader;
	struct mm_struct *mm; /* NULL: a kernel thread, or one that ends */
	struct signal_struct *signal;
	struct sched_entity se;
	struct pid *thread_pid;
	struct thread_struct thread;
};

struct hrtimer {
	void *function; /* called when it expires */
};

struct perf_event {
	int cpu; /* -1 for an event on a task, else the CPU it ticks on */
};

#pragma clang attribute pop
