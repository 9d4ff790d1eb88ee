/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel side as seen from user space: load the BPF program, put a timer on every thread of a target,
 * hand over records. The only user of libbpf. Knows nothing of CPython but the opaque struct pbp_target that
 * it passes on.
 */
#pragma once

#include "pybpfprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Which program runs at a tick. */
enum sampler_program {
	SAMPLER_WALK,	 /* the real one, with bpf_loop or without as the kernel has it */
	SAMPLER_BOUNDED, /* the real one as an older kernel gets it */
	SAMPLER_EMPTY,	 /* does nothing: the cost of the timer alone, for benchmarks */
};

/* What samples are taken at. */
enum sampler_clock {
	SAMPLER_PERF, /* timers of our own: perf events (run/timers.h) */
	SAMPLER_TICK, /* the kernel's tick, which comes in any case: up to its rate */
};

struct sampler_config {
	uint32_t rate_hz;
	enum sampler_clock clock;
	uint32_t max_frames; /* frames walked in the kernel at most; 0 = from the rate */
	enum sampler_program program;
	bool no_ticks;	 /* no timers: nothing is sampled on the CPU */
	bool switches;	 /* tell of threads that were off the CPU */
	bool want_names; /* samples carry the name of their thread */
	bool want_exceptions; /* ... and tell whether an exception is being handled */
	bool follow;	 /* processes that targets start are targets from their start */
	bool tell_execs; /* of processes, too, that are no targets */
	bool tell_moves; /* of processes that are put into another cgroup */
	bool measure;	 /* let the kernel time the program (a little more cost for every BPF program of the
			    machine) */
};

struct sampler;

#define SAMPLER_TARGETS_MAX 16384 /* processes at one time, where they are followed */

/*
 * Load the BPF program; no samples are taken yet. 0; -EPERM / -EACCES when not permitted; another -errno, and
 * `reason` then says in one line what failed (the verifier's log goes to log_dbg).
 */
int sampler__open(struct sampler **out, const struct sampler_config *config, char *reason,
		  size_t reason_size);
void sampler__close(struct sampler *sampler);

/* A process that is to be sampled from now on. 0 or -errno. */
int sampler__add_target(struct sampler *sampler, pid_t pid, const struct pbp_target *target);
/* Tell the BPF program how to walk a target (also again, after an exec). 0 or -errno (-ENOENT: it is none).
 */
int sampler__set_target(struct sampler *sampler, pid_t pid, const struct pbp_target *target);
/* It has ended; unless the pid has become another target meanwhile, that is one with another epoch. */
void sampler__remove_target(struct sampler *sampler, pid_t pid, uint32_t epoch);

/* Which frames to look at in the tails of this thread. 0 or -errno. */
int sampler__set_witnesses(struct sampler *sampler, pid_t pid, uint64_t tstate,
			   const struct pbp_witnesses *witnesses);

/*
 * Sample the process: by a timer on its thread if it has one only, else by timers on the CPUs. 0 or -errno
 * (-ESRCH: it has ended).
 */
int sampler__attach(struct sampler *sampler, pid_t pid);

/*
 * Go over to timers on the CPUs, which tick for whoever runs there; samples are taken of the targets only.
 * For targets that start threads. 0 or -errno; nothing has changed then.
 */
int sampler__watch_cpus(struct sampler *sampler);
/*
 * From now on timers on the CPUs tick only while tasks of these cgroups run, none of which is below another
 * one. The descriptors are borrowed for as long as the sampler lives, or until this is called again. Where
 * the kernel has no such timers they tick for all. 0 or -errno.
 */
int sampler__watch_cgroups(struct sampler *sampler, const int *fds, size_t count);
/* CPUs come and go: timers for those that are online again. To be called now and then. 0 or -errno. */
int sampler__refresh_cpus(struct sampler *sampler);

/* Take all timers away again, and watch switches no more. Counters and waiting records stay. */
void sampler__stop(struct sampler *sampler);

/* Becomes readable on a wake-up; for epoll. */
int sampler__fd(const struct sampler *sampler);
/* The reader stops polling until it is woken (true), or polls (false). */
void sampler__set_idle(struct sampler *sampler, bool idle);

typedef void (*sampler_record_fn)(void *context, const void *record, size_t size);
/*
 * Hand waiting records to `record`, oldest first; they are valid during the call only. Number, or -errno.
 * *more: it stopped with some left, so that the caller can look at the time.
 */
int sampler__drain(struct sampler *sampler, sampler_record_fn record, void *context, bool *more);

/* Sum over CPUs of every enum pbp_counter. */
void sampler__counters(const struct sampler *sampler, uint64_t out[PBP_COUNTER_COUNT]);

uint64_t sampler__counter(const struct sampler *sampler, enum pbp_counter counter);

/*
 * Mean time of one run of the BPF program, in ns; 0 = not measured. *runs: how often it ran, for a target or
 * not.
 */
uint64_t sampler__mean_tick_ns(const struct sampler *sampler, uint64_t *runs);
/* The same of the program of switches. */
uint64_t sampler__mean_switch_ns(const struct sampler *sampler);
/* Times that the kernel did not run the program of switches, since it was running already. */
uint64_t sampler__missed_switches(const struct sampler *sampler);

/* --- threads off the CPU: sampler_waits.c --- */

/*
 * It may be off the CPU already: if it is, and comes back, it will be told as having been off since
 * `since_ns`, with PBP_WAIT_FOUND and without a stack. If it is on a CPU, nothing is different. ran_ns: its
 * CPU time just before; 0: not known. 0, -EEXIST: its switches are known already; another -errno.
 */
int sampler__expect_thread(struct sampler *sampler, pid_t pid, pid_t tid, uint64_t since_ns, uint64_t ran_ns);
/* Has it been off the CPU since then, as far as its switches tell? Then *out is what is known of it. */
bool sampler__is_off_since(const struct sampler *sampler, pid_t tid, uint64_t out_ns,
			   struct pbp_off_thread *out);
/* It has ended. */
void sampler__forget_thread(struct sampler *sampler, pid_t tid);
/* The threads that are off the CPU now, or were put in by sampler__expect_thread; one may come twice. */
typedef void (*sampler_off_fn)(void *context, pid_t tid, const struct pbp_off_thread *thread);
void sampler__each_off(const struct sampler *sampler, sampler_off_fn take, void *context);
/* When a thread last left the CPU without a walk, by the kernel side's clock; 0: never. */
uint64_t sampler__unwalked_ns(const struct sampler *sampler);
/* Waits that were not walked, by kind. */
void sampler__skipped(const struct sampler *sampler, struct pbp_skipped out[PBP_WAIT_KINDS]);

/* For the start message: what this kernel lacks, "" if nothing. */
const char *sampler__kernel_notes(const struct sampler *sampler);
/* A record's time by this process's clock; in a time namespace the kernel side's is another. */
uint64_t sampler__local_ns(const struct sampler *sampler, uint64_t time_ns);
/* ... and one of ours by the kernel side's. */
uint64_t sampler__kernel_ns(const struct sampler *sampler, uint64_t time_ns);
uint32_t sampler__max_frames(const struct sampler *sampler);
/* How often the kernel ticks, if that is the clock; else 0. */
uint32_t sampler__tick_hz(const struct sampler *sampler);
