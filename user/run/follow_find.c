/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For follow.c: processes that were there before, by a pass over /proc; and without BPF, whatever starts or
 * calls exec.
 */
#include "run/follow_parts.h"

#include "os/proc.h"
#include "os/tree.h"

#include <errno.h>
#include <unistd.h>

#define POLLS_SETTLED 10   /* polls to each look whether one that is attached has called exec */
#define POLLS_UNTOLD  20   /* ... to each pass over /proc where no numbers are told */
#define NUMBERS_MAX   4096 /* new ones that are looked at one by one */
#define SCAN_NS	      250000000ull /* between passes over /proc, at least */
#define SCANS_MAX     8
#define LATE_LOOKS    4 /* at a number that is nobody's (yet) ... */
#define LATE_NUMBERS  16 /* ... if it is one of the last */

static void find_all(struct follower *follower, const struct tree *tree)
{
	for (size_t i = 0; i < tree->edges.len; i++)
		if (!follow_is_tracked(follower, tree->edges.items[i].pid) &&
		    tree->edges.items[i].pid != getpid())
			follow_note_error(follower, vec__push(&follower->unseen, tree->edges.items[i].pid));
	follower->retry_ns = 0;
}

/* Those that are found have children, too. */
static void find_children(struct follower *follower, const struct tree *tree)
{
	for (size_t i = 0; i < follower->processes.items.len; i++) {
		size_t first, count;

		if (follower->processes.items.items[i]->exited)
			continue;
		count = tree__children(tree, follower->processes.items.items[i]->pid, &first);
		for (size_t child = first; child < first + count; child++)
			if (!follow_is_tracked(follower, tree->edges.items[child].pid))
				follow_add(follower, tree->edges.items[child].pid, NULL, 0, false);
	}
}

/* Until there is none that was not there before: what starts from then on is told by the kernel side. */
static void scan_tree(struct follower *follower)
{
	size_t before;
	int scans = 0;

	do {
		struct tree tree;
		int err = tree__read(&tree);

		before = follower->processes.items.len;
		follower->beyond_now = 0;
		follow_note_error(follower, err);
		if (err)
			return;
		if (follower->config.all)
			find_all(follower, &tree);
		else
			find_children(follower, &tree);
		tree__free(&tree);
	} while (follower->processes.items.len != before && !follower->config.all && ++scans < SCANS_MAX);
}

void follower__scan(struct follower *follower)
{
	uint64_t began_cpu_ns = proc__own_cpu_ns();

	if (!follow_finds(follower))
		return;
	follower->last_pid = tree__last_pid();
	if (follower->config.scope)
		follow_scope_scan(follower);
	else
		scan_tree(follower);
	follower->scan_ns = follow_next_pass(began_cpu_ns, SCAN_NS);
}

/* May it call exec any moment, so that it is to be looked at often? */
static bool is_unsettled(const struct process *process)
{
	return !process->attached || process->inherited;
}

void follow_look_for_execs(struct follower *follower)
{
	bool all = follower->polls++ % POLLS_SETTLED == 0;

	for (size_t i = 0; i < follower->processes.items.len; i++) {
		struct process *process = follower->processes.items.items[i];
		uint64_t id;

		if (process->exited || (!all && !is_unsettled(process)) ||
		    proc__start_id(process->pid, &id) || id == process->exec_id)
			continue;
		if (process->exec_id)
			follower__exec(follower, process);
		process->exec_id = id;
	}
}

/* False: it is nobody's (yet), or a zombie's. */
static bool look_at_number(struct follower *follower, pid_t pid)
{
	pid_t parent;

	if (!proc__exists(pid))
		return false;
	parent = pid == getpid() ? -ESRCH : tree__parent(pid);
	if (parent == -ECHILD)
		return false;
	if (parent < 0 || follow_is_tracked(follower, pid))
		return proc__process_of(pid) != 0;
	if (follower->config.scope ? scope__has(follower->config.scope, pid) == 1
				   : follow_is_tracked(follower, parent)) {
		follow_add(follower, pid, processes__find(&follower->processes, parent), 0, true);
		return follow_is_tracked(follower, pid);
	}
	if (follower->config.all)
		follow_watch(follower, pid);
	return true;
}

/* A number is given out some time before the process is there. */
static void look_at_late(struct follower *follower)
{
	size_t count = follower->late.len, left = 0;

	for (size_t i = 0; i < count; i++) {
		struct follow_number late = follower->late.items[i];

		if (!look_at_number(follower, late.pid) && ++late.looks < LATE_LOOKS)
			follower->late.items[left++] = late;
	}
	/* More may have come meanwhile. */
	for (size_t i = count; i < follower->late.len; i++)
		follower->late.items[left++] = follower->late.items[i];
	follower->late.len = left;
}

static void look_again(struct follower *follower, pid_t pid)
{
	if (follower->late.len < NUMBERS_MAX)
		follow_note_error(follower, vec__push(&follower->late, ((struct follow_number){pid, 0})));
}

void follow_number_is_free(struct follower *follower, pid_t pid)
{
	if (follow_finds(follower) && !follower->engine->sampler)
		look_again(follower, pid);
}

void follow_look_for_new(struct follower *follower)
{
	pid_t last = tree__last_pid(), first = follower->last_pid;

	if (!last && follower->polls % POLLS_UNTOLD == 0)
		follower__scan(follower); /* a /proc that does not tell (subset=pid) */
	look_at_late(follower);
	if (last == first)
		return;
	if (last < first || last - first > NUMBERS_MAX) {
		follower__scan(follower);
		last = follower->last_pid;
		first = last > LATE_NUMBERS ? last - LATE_NUMBERS : 0; /* not all of these were there yet */
	}
	follower->last_pid = last;
	for (pid_t pid = first + 1; pid <= last; pid++)
		if (!look_at_number(follower, pid) && last - pid < LATE_NUMBERS)
			look_again(follower, pid);
}
