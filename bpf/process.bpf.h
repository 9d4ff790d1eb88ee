/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that tell what becomes of processes: another program (on_exec), more threads and processes
 * (on_new_task), their end (on_end, on_free), another cgroup (on_move).
 */
#pragma once

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

/*
 * Of a process that ends: of the task itself, its leader if that waits to be reaped, and those that are gone.
 */
static __always_inline __u64 cpu_ns_at_end(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 sum = BPF_CORE_READ(task, signal, sum_sched_runtime) + BPF_CORE_READ(task, se.sum_exec_runtime);

	return leader == task ? sum : sum + BPF_CORE_READ(leader, se.sum_exec_runtime);
}

/*
 * The current task ends. If it is the last of its process, that is told, with its CPU time so far: once its
 * parent has reaped it, nobody knows. Of two that end at the same instant both may be told; the second knows
 * more.
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

/*
 * The last of a process, after it was reaped: told as of its end, since its number may be another's by now.
 */
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
