/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See processes.h.
 */
#include "run/processes.h"

#include "run/containers.h"

#include "pybpfprof.h"

#define EPOCHS 4096 /* for each process */

int processes__add(struct processes *processes, struct process *process)
{
	int err = vec__push(&processes->items, process);

	if (err)
		return err;
	err = hmap__set(&processes->by_pid, process->pid, (uintptr_t)process);
	if (err) {
		processes->items.len--;
		return err;
	}
	process->serial = ++processes->serials;
	/* Ids of stacks do not come again when a pid does. */
	process->epoch = process->target.layout.epoch = process->serial * EPOCHS % PBP_FORK_EPOCH;
	return 0;
}

struct process *processes__find(const struct processes *processes, pid_t pid)
{
	const uint64_t *found = hmap__get(&processes->by_pid, pid);

	return found ? (struct process *)(uintptr_t)*found : NULL;
}

void processes__end(struct processes *processes, struct process *process, uint64_t now)
{
	if (process->exited)
		return;
	process->exited = true;
	process->exited_ns = now;
	processes->ended++;
}

/* Released already: it is told of at the end. */
static bool is_kept(const struct process *process)
{
	return process->exited && !process->exited_ns;
}

static bool was_profiled(const struct process *process)
{
	return process->python || process->samples;
}

static void add_to_container(struct container *container, const struct process *process)
{
	container->past_pythons++;
	container->past_samples += process->samples;
	container->past_cpu_ns += process->cpu_end_ns - process->cpu_start_ns;
}

static void drop(struct processes *processes, struct process *process)
{
	struct processes_past *past = &processes->past;

	if (was_profiled(process)) {
		past->pythons++;
		past->cpu_ns += process->cpu_end_ns - process->cpu_start_ns;
		if (process->container)
			add_to_container(process->container, process);
	} else {
		past->others++;
		past->ended_unknown += process__ended_unknown(process);
	}
	past->samples += process->samples;
	process__add_reads(process, &past->reads);
	if (processes__find(processes, process->pid) == process)
		hmap__del(&processes->by_pid, process->pid);
	process__close(process);
	free(process);
}

static size_t mark_over(struct processes *processes, uint64_t before_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < processes->items.len && count < processes->ended; i++) {
		struct process *process = processes->items.items[i];

		process->over = process->exited && !is_kept(process) && process->exited_ns < before_ns;
		count += process->over;
	}
	return count;
}

bool processes__sweep(struct processes *processes, uint64_t before_ns, void (*forget)(void *context),
		      void *context)
{
	size_t left = 0, over = processes->ended ? mark_over(processes, before_ns) : 0;

	if (!over)
		return false;
	forget(context);
	processes->ended -= over;
	for (size_t i = 0; i < processes->items.len; i++) {
		struct process *process = processes->items.items[i];

		if (process->over && !process->asked_for &&
		    (!was_profiled(process) || processes->kept >= PROCESSES_KEPT)) {
			drop(processes, process);
			continue;
		}
		if (process->over) {
			process__close(process);
			process->exited_ns = 0;
			process->over = false;
			processes->kept++;
		}
		processes->items.items[left++] = process;
	}
	processes->items.len = left;
	return true;
}

size_t processes__alive(const struct processes *processes)
{
	return processes->items.len - processes->ended - processes->kept;
}

void processes__free(struct processes *processes)
{
	for (size_t i = 0; i < processes->items.len; i++) {
		process__close(processes->items.items[i]);
		free(processes->items.items[i]);
	}
	vec__free(&processes->items);
	hmap__free(&processes->by_pid);
}
