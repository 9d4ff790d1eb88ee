/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the sampler: sampler.c (START HERE), sampler_load.c (loading), sampler_waits.c (threads off the
 * CPU).
 */
#pragma once

#include "run/sampler.h"

#include "run/timers.h"

#include <bpf/libbpf.h>

struct pybpfprof_bpf;

struct sampler {
	struct pybpfprof_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_program *program;	    /* of ticks; NULL: there are none */
	struct bpf_program *switch_program; /* the same of switches */
	struct timers timers;
	uint32_t tick_hz; /* of the kernel's own clock, if that is used; else 0 */
	int cpus; /* that there can be */
	uint64_t clock_ahead_ns; /* what our clock has more than the kernel side's, modulo 2^64 */
	int stats_fd;	   /* while it is open the kernel times BPF programs; -1 = not measured */
	uint64_t *per_cpu; /* one value a CPU, to read counters into */
	size_t drained, drained_bytes; /* of the drain in progress */
	sampler_record_fn record;
	void *context;
	char notes[128];
};

/* --- sampler.c --- */

enum sampler_map { SAMPLER_OFF_THREADS, SAMPLER_SKIPPED, SAMPLER_BUDGETS };
int sampler_map_fd(const struct sampler *sampler, enum sampler_map map);
void sampler_mark_thread(struct sampler *sampler, pid_t tid);

/* --- sampler_load.c --- */

/*
 * Choose, load and attach programs, and map the ring buffer, which hands its records to `on_record` with the
 * sampler as their context. As sampler__open.
 */
int sampler_load(struct sampler *sampler, const struct sampler_config *config,
		 ring_buffer_sample_fn on_record, char *reason, size_t reason_size);
