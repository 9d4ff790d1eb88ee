/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel side on the host: what its sources need of the kernel, so that tests include bpf/pybpfprof.bpf.c
 * and call its programs. User memory is the test's own, read by process_vm_readv, so an unmapped page is a
 * fault as it is for the kernel; pages that only the kernel side may not see are marked by host.fault_*. Maps
 * are arrays and lists here, one CPU, one task.
 */
#pragma once

#include "base/util.h"
#include "base/vec.h"
#include "pybpfprof.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"

/* Offsets come from the target, and the machine does not mind. */
#undef __always_inline
#define __always_inline inline __attribute__((no_sanitize("alignment")))

#define SEC(name)
#define __uint(name, value)		   int(*name)[value]
#define __type(name, type)		   __typeof__(type) *name
#define BPF_CORE_READ(...)		   CORE_READ_PICK(__VA_ARGS__, CORE_READ_2, CORE_READ_1)(__VA_ARGS__)
#define CORE_READ_PICK(a, b, c, pick, ...) pick
#define CORE_READ_1(from, a)		   ((from)->a)
#define CORE_READ_2(from, a, b)		   ((from)->a->b)
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)

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

struct upid {
	int nr;
	void *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[4];
};
struct mm_struct {
	unsigned long exec_vm;
};
struct signal_struct {
	struct {
		int counter;
	} live;
	unsigned long long sum_sched_runtime;
};
struct task_struct {
	int pid;
	int tgid;
	unsigned int __state;
	__u64 start_time;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct {
		__u64 sum_exec_runtime;
	} se;
	struct pid *thread_pid;
	struct {
		unsigned long fsbase;
	} thread;
};
struct perf_event {
	int cpu;
};
struct hrtimer {
	const char *function; /* its name stands for it */
};
/* What a task had in its registers when it entered the kernel. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};
struct bpf_perf_event_data {
	struct {
		unsigned long cs;
	} regs;
};
struct bpf_perf_event_data_kern {
	void *regs;
	void *data;
	struct perf_event *event;
};
struct bpf_raw_tracepoint_args {
	__u64 args[4];
};
#define CLONE_THREAD      0x00010000
#define CLONE_INTO_CGROUP 0x200000000ull
#define __TASK_STOPPED 0x04
#define __TASK_TRACED  0x08
#define TASK_DEAD      0x80

/* ---- the machine ---- */

struct host_record {
	__u64 flags; /* of bpf_ringbuf_output */
	size_t size;
	void *bytes;
};

struct host_map {
	const void *map;
	VEC(void *) keys;
	VEC(void *) values; /* of an array: one block with all */
};

static struct {
	struct task_struct task;
	struct pid task_ids;
	struct pt_regs registers;
	__u32 random; /* the next one */
	__u32 names;  /* of functions that were asked for */
	__u64 now_ns, step_ns; /* the clock moves on by step_ns with each look at it */
	__u64 fault_start, fault_end; /* memory that is there, but not resident */
	__u64 reads, read_bytes;      /* of user memory */
	__u64 ring_size, ring_used;
	bool ring_full;
	VEC(struct host_record) records;
	VEC(struct host_map) maps;
} host = {.now_ns = 1000000000, .ring_size = 1 << 20};

/* Whole, or an error and zeros, like the kernel's. */
static inline long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	__u64 start = (uintptr_t)from;
	struct iovec local = {to, size}, remote = {(void *)from, size};
	bool resident = start >= host.fault_end || start + size <= host.fault_start;

	host.reads++;
	host.read_bytes += size;
	if (!size || (resident && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size))
		return 0;
	memset(to, 0, size);
	return -EFAULT;
}

static inline long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

static struct task_struct *bpf_get_current_task_btf(void)
{
	return &host.task;
}

static long bpf_task_pt_regs(struct task_struct *task)
{
	return (long)&host.registers;
}

static __u64 bpf_get_current_task(void)
{
	return (uintptr_t)&host.task;
}

static __u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

static inline __u32 bpf_get_prandom_u32(void)
{
	return host.random;
}

static __u64 bpf_ktime_get_ns(void)
{
	return host.now_ns += host.step_ns;
}

/* Ticks that are 1 ms apart. */
static inline __u64 bpf_jiffies64(void)
{
	return host.now_ns / 1000000;
}

static inline long bpf_get_current_comm(void *to, __u32 size)
{
	strncpy(to, "worker", size);
	return 0;
}

/* Of "%ps" only. */
static inline long bpf_snprintf(char *to, __u32 size, const char *format, const __u64 *values, __u32 bytes)
{
	host.names++;
	return snprintf(to, size, "%s", (const char *)(uintptr_t)*values);
}

#define bpf_loop(turns, step, context, flags)                                                                \
	do {                                                                                                 \
		for (__u32 i_ = 0; i_ < (turns); i_++)                                                       \
			if ((step)(i_, (context)))                                                           \
				break;                                                                       \
	} while (0)

#define bpf_for_each_map_elem(map, step, context, flags)                                                     \
	do {                                                                                                 \
		for (__u32 i_ = 0; i_ < sizeof(*(map)->max_entries) / 4; i_++)                               \
			if ((step)((map), &i_, NULL, (context)))                                             \
				break;                                                                       \
	} while (0)

/* ---- maps ---- */

static inline void *host_alloc(size_t size)
{
	void *block = calloc(1, size);

	if (!block)
		abort();
	return block;
}

static inline struct host_map *host_map(const void *map)
{
	for (size_t i = 0; i < host.maps.len; i++)
		if (host.maps.items[i].map == map)
			return &host.maps.items[i];
	if (vec__push(&host.maps, ((struct host_map){.map = map})))
		abort();
	return &host.maps.items[host.maps.len - 1];
}

static inline void *host_element(const void *of, size_t entries, size_t value_size, const void *key)
{
	struct host_map *map = host_map(of);
	__u32 index = load_u32(key);

	if (index >= entries)
		return NULL;
	if (!map->values.len && vec__push(&map->values, host_alloc(entries * value_size)))
		abort();
	return (char *)map->values.items[0] + index * value_size;
}

static inline void *host_find(const void *of, size_t key_size, const void *key)
{
	struct host_map *map = host_map(of);

	for (size_t i = 0; i < map->keys.len; i++)
		if (!memcmp(map->keys.items[i], key, key_size))
			return map->values.items[i];
	return NULL;
}

static inline long host_set(const void *of, size_t key_size, size_t value_size, const void *key,
			    const void *value)
{
	struct host_map *map = host_map(of);
	void *found = host_find(of, key_size, key);

	if (!found) {
		found = host_alloc(value_size);
		if (vec__push(&map->keys, host_alloc(key_size)) || vec__push(&map->values, found))
			abort();
		memcpy(map->keys.items[map->keys.len - 1], key, key_size);
	}
	memcpy(found, value, value_size);
	return 0;
}

static inline long host_delete(const void *of, size_t key_size, const void *key)
{
	struct host_map *map = host_map(of);

	for (size_t i = 0; i < map->keys.len; i++) {
		if (memcmp(map->keys.items[i], key, key_size))
			continue;
		free(map->keys.items[i]);
		free(map->values.items[i]);
		map->keys.items[i] = map->keys.items[--map->keys.len];
		map->values.items[i] = map->values.items[--map->values.len];
		return 0;
	}
	return -ENOENT;
}

#define HOST_MAP_TYPE(map)    (sizeof(*(map)->type) / sizeof(int))
#define HOST_MAP_ENTRIES(map) (sizeof(*(map)->max_entries) / sizeof(int))

#define bpf_map_lookup_elem(map, at)                                                                         \
	((__typeof__((map)->value))(HOST_MAP_TYPE(map) == BPF_MAP_TYPE_ARRAY ||                              \
						    HOST_MAP_TYPE(map) == BPF_MAP_TYPE_PERCPU_ARRAY          \
					    ? host_element((map), HOST_MAP_ENTRIES(map),                     \
							   sizeof(*(map)->value), (at))                      \
					    : host_find((map), sizeof(*(map)->key), (at))))
#define bpf_map_update_elem(map, at, new, flags)                                                             \
	host_set((map), sizeof(*(map)->key), sizeof(*(map)->value), (at), (new))

#define bpf_map_delete_elem(map, at) host_delete((map), sizeof(*(map)->key), (at))

static inline long bpf_ringbuf_output(const void *map, const void *bytes, __u64 size, __u64 flags)
{
	struct host_record record = {.flags = flags, .size = size};

	if (host.ring_full)
		return -EAGAIN;
	record.bytes = host_alloc(size);
	memcpy(record.bytes, bytes, size);
	if (vec__push(&host.records, record))
		abort();
	return 0;
}

static __u64 bpf_ringbuf_query(const void *map, __u64 what)
{
	return what == BPF_RB_RING_SIZE ? host.ring_size : host.ring_used;
}

static inline void host_forget_maps(void)
{
	for (size_t i = 0; i < host.maps.len; i++) {
		struct host_map *map = &host.maps.items[i];

		for (size_t k = 0; k < map->keys.len; k++)
			free(map->keys.items[k]);
		for (size_t k = 0; k < map->values.len; k++)
			free(map->values.items[k]);
		vec__free(&map->keys);
		vec__free(&map->values);
	}
	host.maps.len = 0;
}

static inline void host_forget_records(void)
{
	for (size_t i = 0; i < host.records.len; i++)
		free(host.records.items[i].bytes);
	host.records.len = 0;
}

/* A constant of .rodata, before "load". */
static inline void host_set_knob(const volatile __u32 *knob, __u32 value)
{
	__u32 *writable = (__u32 *)(uintptr_t)knob;
	size_t page = sysconf(_SC_PAGESIZE);

	if (mprotect((void *)((uintptr_t)knob & ~(page - 1)), page, PROT_READ | PROT_WRITE))
		abort();
	*writable = value;
}
