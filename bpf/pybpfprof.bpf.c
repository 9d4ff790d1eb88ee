// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * START HERE (kernel side). on_tick runs in the timer interrupt of a target's thread: it finds the thread's
 * Python state (tstate.bpf.h), walks its frames (sample.bpf.h, walk.bpf.h) and sends a sample (emit.bpf.h).
 * on_kernel_tick does so at the kernel's own tick (clock.bpf.h), on_switch when a thread leaves the CPU
 * (offcpu.bpf.h). The programs of process.bpf.h tell what becomes of processes; look.bpf.h, when what is no
 * Python may have become one. Everything the target owns is only read, and all of it is taken for hostile.
 */
#ifdef __bpf__
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#endif /* else tests/unit/host_shim.h */

#include "pybpfprof.h"
#include "maps.bpf.h"
#include "compat.bpf.h"
#include "read.bpf.h"
#include "ids.bpf.h"
#include "walk.bpf.h"
#include "tstate.bpf.h"
#include "activity.bpf.h"
#include "emit.bpf.h"
#include "sample.bpf.h"
#include "look.bpf.h"
#include "clock.bpf.h"
#include "offcpu.bpf.h"
#include "process.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Is this tick not to be a sample? Timers on threads serve a process that has one thread. Of several they
 * give wrong shares: each begins with a whole period, so a thread that lives shorter is never seen, and the
 * kernel lets threads that inherited the same timer exchange it when one follows the other on a CPU
 * (context_equiv() in kernel/events/core.c). So with threads, user space puts timers on the CPUs, and only
 * those count.
 */
static __always_inline bool skip_tick(void *ctx)
{
	struct perf_event *event = NULL;

	if (!cpu_ticks)
		return false;
	bpf_probe_read_kernel(&event, sizeof(event),
			      ctx + __builtin_offsetof(struct bpf_perf_event_data_kern, event));
	return BPF_CORE_READ(event, cpu) < 0;
}

static __always_inline int tick(struct task_struct *task, bool in_kernel, bool is_thinned, bool use_loop)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_memory, &cpu);
	struct pbp_target *target;
	struct pbp_sample *sample;
	bool urgent = false;
	__u32 tgid;

	if (!scratch)
		return 0;
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->type = PBP_SAMPLE;
	fill_ids(sample, task);
	tgid = sample->tgid;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!target || !target->interpreters_head)
		tell_new_code(task, tgid, target);
	if (!target || (is_thinned && !is_due()))
		return 0;
	scratch->target = *target;
	if (in_kernel)
		sample->flags |= PBP_SAMPLE_KERNEL;
	if (take_sample(sample, &scratch->target, scratch, task, use_loop, &urgent))
		send_sample(sample, urgent);
	return 0;
}

static __always_inline int timer_tick(struct bpf_perf_event_data *ctx, bool use_loop)
{
	if (skip_tick(ctx))
		return 0;
	return tick(bpf_get_current_task_btf(), !(ctx->regs.cs & 3), false, use_loop);
}

SEC("?perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	return timer_tick(ctx, true);
}

/* For kernels without bpf_loop. */
SEC("?perf_event")
int on_tick_bounded(struct bpf_perf_event_data *ctx)
{
	return timer_tick(ctx, false);
}

/* What any sampler pays: the same event with nothing done. For scripts/bench. */
SEC("?perf_event")
int on_tick_empty(struct bpf_perf_event_data *ctx)
{
	return 0;
}

/*
 * A timer of the kernel expires. Not tp_btf, as in on_exec. The tick's runs with interrupts off, as a perf
 * event's does.
 */
static __always_inline int kernel_tick(struct bpf_raw_tracepoint_args *ctx, bool use_loop)
{
	struct hrtimer *timer = (void *)ctx->args[0];
	struct task_struct *task;

	if (!is_tick((__u64)BPF_CORE_READ(timer, function)) || !kernel_ticks)
		return 0;
	task = bpf_get_current_task_btf();
	return tick(task, is_in_syscall(task), true, use_loop);
}

SEC("?raw_tp/hrtimer_expire_entry")
int on_kernel_tick(struct bpf_raw_tracepoint_args *ctx)
{
	return kernel_tick(ctx, true);
}

SEC("?raw_tp/hrtimer_expire_entry")
int on_kernel_tick_bounded(struct bpf_raw_tracepoint_args *ctx)
{
	return kernel_tick(ctx, false);
}

SEC("?raw_tp/hrtimer_expire_entry")
int on_kernel_tick_empty(void *ctx)
{
	return 0;
}

/*
 * tp_btf, which costs a look-up in all kernel types at load, and saves reads of task_structs by probe at
 * every switch of the machine: 50 ns each.
 */
SEC("?tp_btf/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	return on_switch_of(ctx, true);
}

SEC("?tp_btf/sched_switch")
int on_switch_bounded(struct bpf_raw_tracepoint_args *ctx)
{
	return on_switch_of(ctx, false);
}

SEC("?tp_btf/sched_waking")
int on_waking(struct bpf_raw_tracepoint_args *ctx)
{
	return on_waking_of(ctx);
}

/* What any tracer of switches pays. */
SEC("?tp_btf/sched_switch")
int on_switch_empty(void *ctx)
{
	return 0;
}

SEC("?tp_btf/sched_waking")
int on_waking_empty(void *ctx)
{
	return 0;
}

/* Run once by user space, in its own context: which pid namespace it is in, and what time it is here. */
SEC("raw_tp")
int own_pidns(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid id = {};

	pidns_level = BPF_CORE_READ(pid, level);
	bpf_probe_read_kernel(&id, sizeof(id),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      pidns_level * sizeof(id));
	pidns = (__u64)id.ns;
	own_time_ns = bpf_ktime_get_ns();
	return pidns != 0;
}
