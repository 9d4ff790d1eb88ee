/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own tick as a clock: it comes in any case, so that nobody is interrupted for a sample. It is
 * one of many timers that expire. The kernel tells by which function, whose name is looked at until the
 * tick's has been met; unlike addresses in /proc/kallsyms, names are hidden from nobody who may load this.
 */
#pragma once

#define TICK_ONE (1u << 16) /* a tick, in the units of tick_stride */

static const char SYMBOL[] = "%ps";
static const char TICK_NAME[] = "tick_nohz_handler";	/* since 6.9 */
static const char TICK_NAME_OLD[] = "tick_sched_timer"; /* before */

/* A compiler may have added something behind a point. */
static __always_inline bool is_named(const char *name, const char *want, __u32 len)
{
	for (__u32 i = 0; i < len; i++)
		if (name[i] != want[i])
			return false;
	return !name[len] || name[len] == '.';
}

static __always_inline bool is_tick(__u64 function)
{
	__u64 known = tick_function;
	char name[32] = "";

	if (known)
		return function == known;
	if (bpf_snprintf(name, sizeof(name), SYMBOL, &function, sizeof(function)) < 0)
		return false;
	if (!is_named(name, TICK_NAME, sizeof(TICK_NAME) - 1) &&
	    !is_named(name, TICK_NAME_OLD, sizeof(TICK_NAME_OLD) - 1))
		return false;
	tick_function = function;
	return true;
}

/*
 * Is this tick of a target a sample? One of each tick_stride is, at a place by chance, so that no rhythm of
 * the target falls in with it.
 */
static __always_inline bool is_due(void)
{
	__u64 stride = tick_stride;
	struct tick_pace *pace;
	__u32 zero = 0;

	pace = bpf_map_lookup_elem(&tick_paces, &zero);
	if (!pace)
		return false;
	if (!pace->end) {
		pace->next = bpf_get_prandom_u32() * stride >> 32;
		pace->end = stride;
	}
	pace->seen += TICK_ONE;
	if (pace->seen <= pace->next)
		return false;
	pace->next = pace->end + (bpf_get_prandom_u32() * stride >> 32);
	pace->end += stride;
	return true;
}

/*
 * No registers of what was interrupted are at hand, but those that the task has come from user space with: in
 * a system call they have its number.
 */
static __always_inline bool is_in_syscall(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	return (__s64)regs->orig_ax >= 0;
}
