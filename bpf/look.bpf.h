/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is no Python may become one without an exec: by a libpython that it loads long after its start.
 * Whether it has loaded anything shows in how much code it has mapped, which is looked at when it is
 * interrupted.
 */
#pragma once

/*
 * A program that makes its code while it runs has other code all the time: it is told of ever more rarely ...
 */
#define LOOK_FIRST_NS 50000000ull
#define LOOK_MOST_NS  4000000000ull
/* ... until it has been quiet for this many times as long. */
#define LOOK_QUIET 16
/* Between two looks at any that are no targets, which may be more than the map holds. */
#define STRANGERS_NS 20000000ull

/*
 * It is told of at its first tick, whatever it has mapped, so that user space looks after that; then when
 * that has changed.
 */
static __always_inline void tell_new_code(struct task_struct *task, __u32 tgid, bool is_target)
{
	struct pbp_process record = {.type = PBP_LOOK, .tgid = tgid};
	struct stranger fresh = {.wait_ns = LOOK_FIRST_NS}, *known;
	struct mm_struct *mm;
	__u64 now;

	if (!tgid || (!is_target && !tell_execs))
		return;
	mm = BPF_CORE_READ(task, mm);
	if (!mm)
		return;
	fresh.code_pages = BPF_CORE_READ(mm, exec_vm);
	known = bpf_map_lookup_elem(&strangers, &tgid);
	if (known && known->code_pages == fresh.code_pages)
		return;
	now = record.time_ns = bpf_ktime_get_ns();
	if (known && now < known->next_ns)
		return;
	if (!is_target) {
		if (now < next_stranger_ns)
			return;
		next_stranger_ns = now + STRANGERS_NS;
	}
	if (known && now - known->next_ns < LOOK_QUIET * known->wait_ns) {
		fresh.wait_ns = 2 * known->wait_ns;
		if (fresh.wait_ns > LOOK_MOST_NS)
			fresh.wait_ns = LOOK_MOST_NS;
	}
	fresh.next_ns = now + fresh.wait_ns;
	if (!send_process(&record, false))
		bpf_map_update_elem(&strangers, &tgid, &fresh, BPF_ANY);
}
