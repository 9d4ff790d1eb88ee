/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How tasks and processes are numbered: as user space numbers them.
 */
#pragma once

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

/* How user space numbers a thread; 0: not at all. */
static __always_inline __u32 thread_key(struct task_struct *task, __u32 pid)
{
	return pidns_level ? local_id(task) : pid;
}

/* Id of a process: as local_id() of its leader, but cheaper in the machine's own namespace. */
static __always_inline __u32 process_id(struct task_struct *task)
{
	return pidns_level ? local_id(BPF_CORE_READ(task, group_leader)) : BPF_CORE_READ(task, tgid);
}
