// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * START HERE (kernel side). on_tick runs in the timer interrupt of a target's thread: it finds the thread's
 * Python state (tstate.bpf.h), walks its frames (walk.bpf.h) and sends a sample (emit.bpf.h). on_kernel_tick
 * does so at the kernel's own tick (clock.bpf.h). on_exec tells when a target becomes another program,
 * on_new_task when it starts a thread or a process, on_end when it ends, on_move when any process is put into
 * another cgroup; look.bpf.h, when what is no Python may have become one. Everything the target owns is only
 * read, and all of it is taken for hostile.
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
#include "walk.bpf.h"
#include "tstate.bpf.h"
#include "activity.bpf.h"
#include "emit.bpf.h"
#include "look.bpf.h"
#include "clock.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Id of a task in the profiler's pid namespace, which is the numbering that user space knows. 0 for a task
 * that is not in it: a task of a sibling namespace can have the same number there.
 */
static __always_inline __u32 local_id(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 offset = bpf_core_field_offset(struct pid, numbers) + pidns_level * sizeof(struct upid);
	struct upid id = {};

	if (BPF_CORE_READ(pid, level) < pidns_level)
		return 0;
	bpf_probe_read_kernel(&id, sizeof(id), (void *)pid + offset);
	return (__u64)id.ns == pidns ? id.nr : 0;
}

static __always_inline void fill_ids(struct pbp_sample *sample, struct task_struct *task)
{
	if (pidns_level) {
		sample->tid = local_id(task);
		sample->tgid = local_id(BPF_CORE_READ(task, group_leader));
	} else {
		sample->tid = task->pid;
		sample->tgid = task->tgid;
	}
}

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

/*
 * Is the interpreter collecting garbage, and how many code objects has it freed: one read where both lie
 * close together.
 */
static __always_inline void fill_interp_state(struct pbp_sample *sample, const struct pbp_target *target,
					      struct scratch *scratch)
{
	__u64 interp = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_interp);
	__u32 span = target->in_generation - target->in_gc_collecting;
	__u32 collecting = 0;

	scratch->walk.generation_read = 0;
	scratch->walk.gc_frame = 0;
	if (target->in_generation && target->in_gc_collecting && span <= PBP_INTERP_BYTES - 8) {
		if (bpf_probe_read_user(scratch->interp, span + 8,
					(void *)(interp + target->in_gc_collecting)))
			return;
		collecting = *(__u32 *)scratch->interp;
		sample->generation = scratch_u64(scratch->interp, PBP_INTERP_BYTES, span);
		scratch->walk.generation_read = 1;
	} else {
		if (target->gc_collecting || target->in_gc_collecting)
			bpf_probe_read_user(
				&collecting, sizeof(collecting),
				(void *)(target->gc_collecting ?: interp + target->in_gc_collecting));
		if (target->in_generation &&
		    !bpf_probe_read_user(&sample->generation, sizeof(sample->generation),
					 (void *)(interp + target->in_generation)))
			scratch->walk.generation_read = 1;
	}
	if (collecting)
		note_collector(sample, target, scratch, interp);
}

static __always_inline void fill_state(struct pbp_sample *sample, const struct pbp_target *target,
				       struct scratch *scratch)
{
	if (target->ts_attached != PBP_NONE) {
		__u32 state = scratch_u32(scratch->tstate, PBP_TSTATE_BYTES, target->ts_attached);

		if ((state & target->ts_attached_mask) == target->ts_attached_want)
			sample->flags |= PBP_SAMPLE_ATTACHED;
		else if (target->ts_suspended && state == target->ts_suspended)
			sample->flags |= PBP_SAMPLE_SUSPENDED;
	} else if (scratch->walk.holds_gil) {
		sample->flags |= PBP_SAMPLE_ATTACHED;
	}
	if (target->ts_exception != PBP_NONE &&
	    scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_exception))
		sample->flags |= PBP_SAMPLE_RAISING;
	if (target->ts_executor != PBP_NONE &&
	    scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_executor))
		sample->flags |= PBP_SAMPLE_JIT;
	fill_interp_state(sample, target, scratch);
}

/*
 * What identities of code objects hold for: where the interpreter counts code objects that are freed, until
 * the next one is; else for one walk.
 */
static __always_inline __u64 ident_stamp(const struct pbp_sample *sample, const struct pbp_target *target,
					 struct scratch *scratch)
{
	__u64 interp = scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_interp);

	if (!scratch->walk.generation_read)
		return ++scratch->walks;
	return hash_mix(hash_mix(interp ^ (__u64)sample->tgid << 32, sample->generation), target->epoch) |
	       1ull << 63;
}

static __always_inline __u32 witness_hash(const struct pbp_target *target, struct scratch *scratch,
					  __u64 address)
{
	__u8 *bytes = scratch->window;
	__u64 instr;

	if (bpf_probe_read_user(bytes, target->fr_bytes & (PBP_FRAME_BYTES - 1), (void *)address))
		return 0;
	instr = target->fr_instr_is_index ? scratch_u32(bytes, PBP_FRAME_BYTES, target->fr_instr)
					  : scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_instr);
	return pbp_frame_hash(scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_code) &
				      ~(__u64)target->fr_tag_mask,
			      instr, scratch_u64(bytes, PBP_FRAME_BYTES, target->fr_previous));
}

struct witness_scan {
	const struct pbp_target *target;
	struct scratch *scratch;
	const struct pbp_witnesses *list;
};

static long witness_step(__u32 i, struct witness_scan *scan)
{
	__u32 slot = i & (PBP_WITNESSES - 1);

	if (i >= PBP_WITNESSES || i >= scan->list->count)
		return 1;
	scan->scratch->witnesses[slot] = witness_hash(scan->target, scan->scratch, scan->list->frames[slot]);
	return 0;
}

LOOP_BODY(witness_step, struct witness_scan)

/* The walk stops here, the stack goes on: say how some of the frames further down look at this instant. */
static __always_inline void look_at_witnesses(struct pbp_sample *sample, const struct pbp_target *target,
					      struct scratch *scratch, bool use_loop)
{
	struct pbp_witness_key key = {.tstate = sample->tstate, .tgid = sample->tgid};
	struct pbp_witnesses *list = bpf_map_lookup_elem(&witness_lists, &key);
	struct witness_scan scan = {.target = target, .scratch = scratch, .list = list};

	if (!list)
		return;
	sample->witness_version = list->version;
	sample->witness_count = list->count;
	repeat(use_loop, PBP_WITNESSES, witness_step, &scan);
	__builtin_memcpy(sample->witnesses, scratch->witnesses, sizeof(sample->witnesses));
}

/*
 * Walk the thread whose state is in scratch and fill in the sample. Returns whether the sample may be sent.
 */
static __always_inline bool take_stack(struct pbp_sample *sample, const struct pbp_target *target,
				       struct scratch *scratch, bool use_loop, bool *urgent)
{
	struct walker walker = {.target = target, .scratch = scratch};
	struct walk *walk = &scratch->walk;

	walk->frame = first_frame(target, scratch);
	walk->last_read = 0;
	walk->last_frame = 0;
	walk->base_frame = target->ts_base_frame == PBP_NONE ? 0 : sample->tstate + target->ts_base_frame;
	walk->hash = hash_mix(hash_seed, (__u64)target->epoch << 32 | sample->tgid);
	walk->start_hash = walk->hash;
	walk->start_count = 0;
	walk->leaf_instr = 0;
	walk->count = 0;
	walk->limit = max_frames;
	walk->faulted = 0;
	walk->window_len = 0;
	walk->found_collector = 0;
	walk->ident_stamp = ident_stamp(sample, target, scratch);
	repeat(use_loop, 2 * max_frames, walk_step, &walker);

	sample->leaf_instr = walk->leaf_instr;
	if (walk->found_collector)
		sample->flags |= PBP_SAMPLE_GC;
	if (walk->frame) {
		if (walk->nested)
			sample->flags |= PBP_SAMPLE_NESTED;
		sample->status = walk->faulted ? PBP_STATUS_FRAME_FAULT : PBP_STATUS_DEEP;
		sample->link_frame = walk->last_frame;
		sample->tail_frame = walk->frame;
		look_at_witnesses(sample, target, scratch, use_loop);
		*urgent = true;
	} else if (!walk->count) {
		sample->status = PBP_STATUS_NO_FRAMES;
	}
	if (!walk->count)
		return true;
	sample->stack_id = hash_mix(walk->hash, walk->count);
	return !send_stack(target, scratch, sample->tgid, sample->stack_id, use_loop, urgent);
}

/*
 * Everything but the ids. Returns whether the sample may be sent; *urgent: the reader should look at it soon.
 */
static __always_inline bool take_sample(struct pbp_sample *sample, const struct pbp_target *target,
					struct scratch *scratch, struct task_struct *task, bool use_loop,
					bool *urgent)
{
	bool faulted = false;

	sample->time_ns = bpf_ktime_get_ns();
	if (want_names)
		bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	if (!target->interpreters_head) {
		sample->status = PBP_STATUS_NO_TARGET;
		return true;
	}
	sample->tstate = find_tstate(target, scratch, task, sample->time_ns, use_loop, &faulted);
	if (!sample->tstate) {
		sample->status = faulted ? PBP_STATUS_TSTATE_FAULT : PBP_STATUS_NO_TSTATE;
		return true;
	}
	fill_state(sample, target, scratch);
	note_handled(sample, target, scratch, use_loop);
	find_outer(sample, target, scratch, task, use_loop);
	return take_stack(sample, target, scratch, use_loop, urgent);
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
	count(PBP_COUNTER_TICKS);
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

#include "offcpu.bpf.h"

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

/* Ids of a process: as local_id() of its leader, but cheaper in the machine's own namespace. */
static __always_inline __u32 process_id(struct task_struct *task)
{
	return pidns_level ? local_id(BPF_CORE_READ(task, group_leader)) : BPF_CORE_READ(task, tgid);
}

/*
 * The current task has become another program. A raw tracepoint, not tp_btf, which costs a look-up in all
 * kernel types.
 */
SEC("raw_tp/sched_process_exec")
int on_exec(void *ctx)
{
	struct pbp_process record = {.type = PBP_EXEC, .time_ns = bpf_ktime_get_ns()};
	struct pbp_target *target;

	record.tgid = process_id(bpf_get_current_task_btf());
	bpf_map_delete_elem(&strangers, &record.tgid);
	forget_off_thread(bpf_get_current_task_btf());
	target = bpf_map_lookup_elem(&targets, &record.tgid);
	if (target)
		target->interpreters_head = 0; /* the old program's memory is gone; user space looks again */
	else if (!tell_execs || !record.tgid)
		return 0;
	send_process(&record, true);
	return 0;
}

/* Of a process that ends: of the task itself, its leader if that waits to be reaped, and those that are gone. */
static __always_inline __u64 cpu_ns_at_end(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 sum = BPF_CORE_READ(task, signal, sum_sched_runtime) + BPF_CORE_READ(task, se.sum_exec_runtime);

	return leader == task ? sum : sum + BPF_CORE_READ(leader, se.sum_exec_runtime);
}

/*
 * The current task ends. If it is the last of its process, that is told, with its CPU time so far: once its parent has
 * reaped it, nobody knows. Of two that end at the same instant both may be told; the second knows more.
 */
SEC("raw_tp/sched_process_exit")
int on_end(void *ctx)
{
	struct pbp_process record = {.type = PBP_EXIT, .time_ns = bpf_ktime_get_ns()};
	struct task_struct *task = bpf_get_current_task_btf();
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct ending ending = {0};
	__u64 leader;
	int live = 1;

	bpf_probe_read_kernel(&live, sizeof(live), &signal->live);
	if (live)
		return 0;
	record.tgid = process_id(task);
	bpf_map_delete_elem(&strangers, &record.tgid);
	if (!bpf_map_lookup_elem(&targets, &record.tgid))
		return 0;
	record.cpu_ns = cpu_ns_at_end(task);
	send_process(&record, false);
	leader = (__u64)BPF_CORE_READ(task, group_leader);
	ending.time_ns = record.time_ns;
	ending.tgid = record.tgid;
	bpf_map_update_elem(&endings, &leader, &ending, BPF_ANY);
	return 0;
}

/* The last of a process, after it was reaped: told as of its end, since its number may be another's by now. */
SEC("raw_tp/sched_process_free")
int on_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct pbp_process record = {.type = PBP_FREED};
	__u64 key = (__u64)task;
	struct ending *ending = bpf_map_lookup_elem(&endings, &key);

	if (!ending)
		return 0;
	record.tgid = ending->tgid;
	record.time_ns = ending->time_ns;
	record.cpu_ns = BPF_CORE_READ(task, signal, sum_sched_runtime);
	bpf_map_delete_elem(&endings, &key);
	send_process(&record, false);
	return 0;
}

/* A target has started a thread: told once, so that user space puts timers on the CPUs. */
static __always_inline void tell_birth(__u32 tgid)
{
	struct pbp_process record = {.type = PBP_BIRTH, .tgid = tgid, .time_ns = bpf_ktime_get_ns()};

	if (!birth_told && !send_process(&record, true))
		birth_told = 1;
}

/*
 * A target has started a process, which has not run yet. It is laid out as its parent until it calls execve.
 * User space is to know of it, or it is not sampled.
 */
static __always_inline void follow(struct task_struct *child, const struct pbp_target *parent, __u32 tgid)
{
	struct pbp_process record = {.type = PBP_FORK, .parent = tgid, .time_ns = bpf_ktime_get_ns()};
	struct pbp_target target = *parent;

	record.tgid = process_id(child);
	record.epoch = PBP_FORK_EPOCH | __sync_fetch_and_add(&forks, 1);
	target.epoch = record.epoch;
	if (!record.tgid)
		return;
	if (bpf_map_update_elem(&targets, &record.tgid, &target, BPF_ANY))
		count(PBP_COUNTER_TABLE_FULL);
	else if (send_process(&record, true))
		bpf_map_delete_elem(&targets, &record.tgid);
	else
		set_bit(target_bits, record.tgid);
}

static __always_inline void tell_move(struct task_struct *task)
{
	struct pbp_process record = {.type = PBP_MOVED, .time_ns = bpf_ktime_get_ns()};

	record.tgid = process_id(task);
	if (record.tgid)
		send_process(&record, true);
}

/* Of any hierarchy; user space looks where the process is now. */
SEC("?raw_tp/cgroup_attach_task")
int on_move(struct bpf_raw_tracepoint_args *ctx)
{
	tell_move((void *)ctx->args[2]);
	return 0;
}

SEC("raw_tp/task_newtask")
int on_new_task(struct bpf_raw_tracepoint_args *ctx)
{
	bool is_thread = ctx->args[1] & CLONE_THREAD;
	struct pbp_target *target;
	__u32 tgid;

	if (is_thread ? birth_told : !follow_forks)
		return 0;
	tgid = process_id(bpf_get_current_task_btf());
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!target) {
		if (tell_moves && ctx->args[1] & CLONE_INTO_CGROUP)
			tell_move((void *)ctx->args[0]);
		return 0;
	}
	if (is_thread)
		tell_birth(tgid);
	else
		follow((void *)ctx->args[0], target, tgid);
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
