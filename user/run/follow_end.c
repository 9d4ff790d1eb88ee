/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends of processes. Their pidfds tell; the kernel side tells it, too, with the CPU time, which nobody knows
 * once the parent has reaped the process.
 */
#include "run/follow_parts.h"

#include "base/util.h"

void follow_take_end(struct follower *follower, struct process *process, const struct pbp_process *record)
{
	if (!process || record->time_ns < process->since_ns ||
	    (record->type == PBP_FREED && !process->exited))
		return;
	process->cpu_end_ns = max_u64(process->cpu_end_ns, record->cpu_ns);
	follower->cpu_unknown -= process->cpu_missed;
	process->cpu_missed = false;
	process->cpu_known = true;
	follower__exit(follower, process);
}

void follower__update_cpu(struct follower *follower)
{
	for (size_t i = 0; i < follower->processes.items.len; i++)
		if (!follower->processes.items.items[i]->exited)
			process__update_cpu(follower->processes.items.items[i]);
}

void follow_look_for_ends(struct follower *follower)
{
	for (size_t i = 0; i < follower->processes.items.len && follower->unwatched; i++) {
		struct process *process = follower->processes.items.items[i];

		if (process->pidfd < 0 && !process->exited && !process__lives(process))
			follower__exit(follower, process);
	}
}

static void forget(void *context)
{
	struct follower *follower = context;

	symbolizer__forget_over(follower->symbolizer);
}

void follow_sweep(struct follower *follower, uint64_t before_ns)
{
	processes__sweep(&follower->processes, before_ns, forget, follower);
}
