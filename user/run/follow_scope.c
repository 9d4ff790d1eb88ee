/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is in a cgroup is asked of the kernel: of a process by its own file, which is exact after a fork or a
 * move that was told, and of all by the cgroups' lists, at the start, after records were lost, and now and
 * then where nobody tells.
 */
#include "run/follow_parts.h"

#include "base/log.h"
#include "os/proc.h"

#include <errno.h>
#include <stdlib.h>

#define SCANS_MAX 8
#define POLL_NS	  100000000ull

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* One that is ending is in no cgroup any more, as far as its file tells; its end is told otherwise. */
static void drop(struct follower *follower, struct process *process)
{
	uint64_t id;

	if (proc__exec_id(process->pid, &id) == -ESRCH)
		return;
	log_dbg("follow", "process %d is not in the cgroup any more", process->pid);
	follower->left += process->python;
	follower__exit(follower, process);
}

static struct process *find_alive(struct follower *follower, pid_t pid)
{
	struct process *process = processes__find(&follower->processes, pid);

	return process && !process->exited ? process : NULL;
}

static void note_container(struct follower *follower, struct process *process)
{
	struct container *container = containers__of(follower->config.containers, process->pid);

	process->renamed += container != process->container;
	process->container = container;
}

void follow_scope_look(struct follower *follower, pid_t pid)
{
	struct process *process = find_alive(follower, pid);
	int has = scope__has(follower->config.scope, pid);

	if (has == 1 && process && process->python)
		note_container(follower, process);
	else if (has == 1 && !process)
		follower__add_found(follower, pid);
	else if (has == 0 && process)
		drop(follower, process);
}

/* Of those that are known, the ones that are not in the list, if their own files say the same. */
static void drop_others(struct follower *follower, const struct cgroup_members *members)
{
	for (size_t i = 0; i < follower->processes.items.len; i++) {
		struct process *process = follower->processes.items.items[i];

		if (!process->exited && !bsearch(&process->pid, members->pids.items, members->pids.len,
						 sizeof(*members->pids.items), compare_pids))
			follow_scope_look(follower, process->pid);
	}
}

static int scan_once(struct follower *follower)
{
	struct cgroup_members members;
	int err = scope__members(follower->config.scope, &members);

	follower->beyond_now = 0;
	if (err)
		return err;
	if (members.pids.len)
		qsort(members.pids.items, members.pids.len, sizeof(*members.pids.items), compare_pids);
	for (size_t i = 0; i < members.pids.len; i++)
		follower__add_found(follower, members.pids.items[i]);
	drop_others(follower, &members);
	vec__free(&members.pids);
	return 0;
}

void follow_scope_scan(struct follower *follower)
{
	size_t before;
	int err, scans = 0;

	/* What one starts that is not known yet, nobody tells. */
	do {
		before = follower->processes.items.len;
		err = scan_once(follower);
	} while (!err && follower->processes.items.len != before && ++scans < SCANS_MAX);
	follow_note_error(follower, err);
}

void follow_scope_poll(struct follower *follower, uint64_t now)
{
	uint64_t began_cpu_ns = proc__own_cpu_ns();

	if (now < follower->scope_ns)
		return;
	follow_scope_scan(follower);
	follower->scope_ns = follow_next_pass(began_cpu_ns, POLL_NS);
}
