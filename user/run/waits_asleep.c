/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See waits_parts.h. A thread that sleeps from before the run until after it is put into the kernel side's
 * map, so that its return is told, and then read. If the map says afterwards that it has not come back, its
 * stack stood still.
 */
#include "run/waits_parts.h"

#include "base/clock.h"
#include "os/proc.h"
#include "os/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS                                                                                              \
	20000000ull /* between looks for long waits that were not walked, and how long they are then */

/* Those of a list that have been off the CPU since before it was read are what was read of them. */
static int keep_asleep(struct waits *waits, const struct sleepers *sleepers)
{
	for (size_t i = 0; i < sleepers->items.len; i++) {
		const struct sleeper *sleeper = &sleepers->items.items[i];
		struct pbp_off_thread thread;
		struct open_wait *open;

		if (!sampler__is_off_since(waits->sampler, sleeper->tid, sleeper->out_ns, &thread) ||
		    waits_came_back(sleeper->tid, &thread, now_ns()))
			continue;
		open = waits_keep_open(waits, sleeper->tid, sleeper->out_ns);
		if (!open)
			return -ENOMEM;
		open->is_read = true;
		open->sleeper = *sleeper;
	}
	return 0;
}

static void fill_comms(const struct waits *waits, struct sleepers *sleepers, const struct process *process)
{
	char comm[64];

	for (size_t i = 0; i < sleepers->items.len && waits->want_names; i++) {
		struct sleeper *sleeper = &sleepers->items.items[i];

		if (!proc__task_comm(process->pid, sleeper->tid, comm, sizeof(comm)))
			memcpy(sleeper->sample.comm, comm, strnlen(comm, sizeof(sleeper->sample.comm)));
	}
}

static int read_asleep(struct waits *waits, struct process *process, struct sleepers *sleepers)
{
	int err = sleepers->items.len ? sleepers__read(sleepers, process, waits->symbolizer) : 0;

	if (err == -ENOMEM)
		return err;
	/* Those that could not be read sleep all the same. */
	fill_comms(waits, sleepers, process);
	return keep_asleep(waits, sleepers);
}

/* --- those that went to sleep meanwhile --- */

struct asleep {
	struct waits *waits;
	struct sleepers sleepers; /* of all processes */
	uint64_t unwalked_before; /* only those that left the CPU before and were not walked; 0: all */
	int err;
};

static bool is_asked_for(const struct asleep *asleep, const struct pbp_off_thread *thread,
			 const struct open_wait *open)
{
	bool is_read = open && open->is_read;

	if (asleep->unwalked_before)
		return !thread->walked && !is_read && !(thread->wait.flags & PBP_WAIT_FOUND) &&
		       thread->out_ns < asleep->unwalked_before;
	return is_read || !(thread->wait.flags & PBP_WAIT_FOUND);
}

static void note_asleep(void *context, pid_t tid, const struct pbp_off_thread *thread)
{
	struct asleep *asleep = context;
	const struct open_wait *open = waits_find_open(asleep->waits, tid, thread->out_ns);
	struct sleeper sleeper = {.tid = tid,
				  .out_ns = thread->out_ns,
				  .syscall = thread->wait.syscall,
				  .arg = thread->wait.arg,
				  .sample.tgid = thread->wait.sample.tgid};

	if (asleep->err || !is_asked_for(asleep, thread, open))
		return;
	if (open && open->is_read) {
		sleeper.syscall = open->sleeper.syscall;
		sleeper.arg = open->sleeper.arg;
		sleeper.is_stopped = open->sleeper.is_stopped;
	}
	asleep->err = vec__push(&asleep->sleepers.items, sleeper);
}

static int by_process(const void *left, const void *right)
{
	const struct sleeper *a = left, *b = right;

	return (a->sample.tgid > b->sample.tgid) - (a->sample.tgid < b->sample.tgid);
}

static int read_sleepers(struct waits *waits, const struct sleeper *sleepers, size_t count)
{
	struct process *process = processes__find(waits->processes, sleepers[0].sample.tgid);
	struct sleepers copy = {0};
	int err;

	if (!process || !process->attached || process->exited)
		return 0;
	err = vec__reserve(&copy.items, count);
	if (!err) {
		memcpy(copy.items.items, sleepers, count * sizeof(*sleepers));
		copy.items.len = count;
		err = read_asleep(waits, process, &copy);
	}
	vec__free(&copy.items);
	return err;
}

static int read_all(struct waits *waits, uint64_t unwalked_before)
{
	struct asleep asleep = {.waits = waits, .unwalked_before = unwalked_before};
	const struct sleeper *items;
	size_t count;

	sampler__each_off(waits->sampler, note_asleep, &asleep);
	items = asleep.sleepers.items.items;
	count = asleep.sleepers.items.len;
	if (count)
		qsort(asleep.sleepers.items.items, count, sizeof(*items), by_process);
	for (size_t first = 0, end; first < count && !asleep.err; first = end) {
		for (end = first + 1; end < count && items[end].sample.tgid == items[first].sample.tgid;)
			end++;
		asleep.err = read_sleepers(waits, items + first, end - first);
	}
	vec__free(&asleep.sleepers.items);
	return asleep.err;
}

/* --- those that are asleep when a process is attached to --- */

static bool is_stopped(const struct process *process)
{
	struct proc_stat stat;

	return !proc__stat(process->pid, &stat) && (stat.state == 'T' || stat.state == 't');
}

int waits__find(struct waits *waits, struct process *process, uint64_t now)
{
	struct sleepers sleepers = {0};
	struct proc_tasks tasks = {0};
	bool stopped, known = false;
	int err = 0;

	if (!waits->sampler || !process->attached || proc__tasks(process->pid, &tasks))
		return 0;
	now = waits_kernel_ns(waits, now);
	stopped = is_stopped(process);
	/* First all of them: from then on it is known when they come back. */
	for (size_t i = 0; i < tasks.tids.len; i++) {
		uint64_t ran_ns;

		if (task__ran_ns(process->pid, tasks.tids.items[i], &ran_ns))
			ran_ns = 0;
		err = sampler__expect_thread(waits->sampler, process->pid, tasks.tids.items[i], now, ran_ns);
		known |= err == -EEXIST;
		waits->no_room += err && err != -EEXIST;
		if (err)
			tasks.tids.items[i] = 0;
	}
	err = 0;
	for (size_t i = 0; i < tasks.tids.len && !err; i++) {
		struct sleeper sleeper = {.tid = tasks.tids.items[i], .out_ns = now};
		struct task_look look;

		if (!sleeper.tid)
			continue;
		look = task__look(process->pid, sleeper.tid);
		if (look.state == TASK_GONE)
			sampler__forget_thread(waits->sampler, sleeper.tid);
		if (look.state != TASK_WAITING)
			continue;
		sleeper.syscall = look.syscall;
		sleeper.arg = look.arg;
		sleeper.is_stopped = stopped;
		err = vec__push(&sleepers.items, sleeper);
	}
	err = err ?: read_asleep(waits, process, &sleepers);
	waits->found += sleepers.items.len;
	vec__free(&sleepers.items);
	vec__free(&tasks.tids);
	/* Those that left the CPU while it was looked at anew are without a stack. */
	return err ?: known ? read_all(waits, now) : 0;
}

int waits__read_again(struct waits *waits)
{
	return waits->sampler ? read_all(waits, 0) : 0;
}

int waits__look(struct waits *waits, uint64_t now)
{
	uint64_t last_ns;

	if (!waits->sampler || now < waits->look_ns)
		return 0;
	waits->look_ns = now + LOOK_NS;
	now = waits_kernel_ns(waits, now);
	last_ns = sampler__unwalked_ns(waits->sampler);
	if (!last_ns || last_ns < waits->looked_ns)
		return 0; /* there is none that has not been looked at */
	waits->looked_ns = now - LOOK_NS;
	return read_all(waits, waits->looked_ns);
}
