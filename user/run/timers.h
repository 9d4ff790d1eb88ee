/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timers that a BPF program runs at: perf events of the software CPU clock with a fixed period. On the
 * thread of a process that has one, so that nobody else is interrupted; on the CPUs as soon as there are
 * several (bpf/pybpfprof.bpf.c, skip_tick), for whoever runs there or for what is in given cgroups.
 */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct timers {
	int program_fd; /* of the BPF program, borrowed; -1: there are to be no timers */
	uint64_t period_ns;
	bool on_cpus;
	const int *cgroups; /* that the timers on CPUs tick for, if there are any; borrowed */
	size_t cgroup_count;
	size_t cpus_end;  /* numbers of CPUs are less than this */
	bool *watched;	  /* CPUs that have a timer; it goes when the CPU does */
	bool *online_now; /* working memory of the same size */
	VEC(int) events;
};

/* `cpus`: that there can be. 0 or -ENOMEM. */
int timers__init(struct timers *timers, uint64_t period_ns, size_t cpus);
void timers__free(struct timers *timers);

/* May there be any? It may be refused though programs may be loaded. 0 or -errno. */
int timers__try(struct timers *timers);

/*
 * One on the thread of the process if it has one only, else on the CPUs. *cpu_ticks becomes 1 when those are
 * the ones that count. 0 or -errno (-ESRCH: it has ended).
 */
int timers__attach(struct timers *timers, pid_t pid, uint32_t *cpu_ticks);
/* Go over to timers on the CPUs. 0 or -errno; nothing has changed then. */
int timers__watch_cpus(struct timers *timers, uint32_t *cpu_ticks);
/* The same for what is in these cgroups; for whoever runs if there can be none for them. 0 or -errno. */
int timers__watch_cgroups(struct timers *timers, const int *fds, size_t count, uint32_t *cpu_ticks);
/* CPUs come and go: timers for those that are online again. 0 or -errno. */
int timers__refresh(struct timers *timers);
/* Take all away. */
void timers__stop(struct timers *timers);
