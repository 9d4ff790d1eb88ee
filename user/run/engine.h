/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a run's samples come from: the BPF program (run/sampler.h) or a timer and reads of our own
 * (run/poller.h). Both make the same records, so that all behind is one.
 */
#pragma once

#include "base/buf.h"
#include "run/poller.h"
#include "run/sampler.h"

#include <stdbool.h>
#include <stdint.h>

enum engine_kind {
	ENGINE_AUTO, /* BPF where it is permitted and possible, else readv */
	ENGINE_BPF,
	ENGINE_READV,
};

/* Of which time a profile is. */
enum engine_mode {
	ENGINE_CPU,
	ENGINE_WALL,   /* on the CPU and off it */
	ENGINE_OFFCPU, /* off it */
	ENGINE_GIL,    /* both, as far as a GIL is held or waited for */
};

struct engine_config {
	enum engine_kind kind;
	enum engine_mode mode;
	uint32_t rate_hz;
	uint32_t kernel_frames; /* BPF: frames walked in the kernel at most; 0 = from the rate */
	enum sampler_program program;
	enum sampler_clock clock; /* BPF; the kernel's is for that engine only */
	bool want_names;
	bool want_exceptions; /* samples tell whether one is being handled */
	bool measure;
	bool follow;	   /* BPF: processes that others start are sampled from their start */
	bool tell_execs;   /* BPF: hand over records of execs of processes that are not sampled */
	bool tell_moves;   /* BPF: ... and of processes that are put into another cgroup */
	bool blocking;	   /* readv: stop threads while they are read */
	bool frame_marker; /* readv: use the frame marker of 3.15 */
};

#define ENGINE_BPF_RATE_MAX   20000
#define ENGINE_READV_RATE_MAX 1000000

/* A number of samples that are missing, and why. */
struct engine_loss {
	uint64_t count;
	const char *why;
};
#define ENGINE_LOSSES_MAX 4

struct engine {
	struct sampler *sampler; /* one of the two */
	struct poller *poller;
	uint32_t rate_hz;
	uint32_t empty_polls, quiet_polls;
	bool idle; /* BPF: the reader sleeps until it is woken */
	bool warned_cpus;
};

/*
 * 0, or -errno with the reason in one line. With ENGINE_AUTO, `reason` says why it is not BPF, "" if it is.
 */
int engine__open(struct engine *engine, const struct engine_config *config, char *reason, size_t reason_size);
void engine__close(struct engine *engine);
const char *engine__name(const struct engine *engine);

/* Becomes readable when there are records; -1: never, the engine wants to be called all the time. */
int engine__fd(const struct engine *engine);

/* A process that the engine does not know; as it is, attached or not. 0 or -errno. */
int engine__add(struct engine *engine, struct process *process);
/* How this process is to be walked from now on. 0 or -errno. */
int engine__set_target(struct engine *engine, struct process *process);
/* The process is not Python at the moment (an exec); its samples go on without stacks, or stop. */
void engine__unset_target(struct engine *engine, struct process *process);
/* Begin to sample whatever is added, from its start. 0 or -errno. */
int engine__start_all(struct engine *engine);
/* The same, of what is in these cgroups (sampler__watch_cgroups). 0 or -errno. */
int engine__start_cgroups(struct engine *engine, const int *fds, size_t count);
/* Begin to sample it. 0 or -errno (-ESRCH: it has ended). */
int engine__start(struct engine *engine, struct process *process);
void engine__remove(struct engine *engine, struct process *process);
/* Targets start threads: sample these too. */
void engine__watch_threads(struct engine *engine);
/* To be called every second or so. */
void engine__refresh(struct engine *engine);

typedef void (*engine_record_fn)(void *context, const void *record, size_t size);
/*
 * Hand over the records that have come; the readv engine makes them meanwhile, until `until_ns` or something
 * is new. Number or -errno. *more: there are some left.
 */
int engine__collect(struct engine *engine, uint64_t until_ns, engine_record_fn record, void *context,
		    bool *more);
/* When a stack with this id is met again, to send its frames once more; the BPF engine sends code along with them. */
void engine__send_again(struct engine *engine, uint64_t stack_id);
/* What the caller makes of a collection: `news`, something was to be looked up. May collect once more. */
bool engine__update_pace(struct engine *engine, bool any, bool news);
/* When to collect again without being woken, UINT64_MAX = only then. */
uint64_t engine__next_ns(const struct engine *engine, uint64_t now);

/* The time of a record by the clock of this process, which a time namespace may have set differently. */
uint64_t engine__local_ns(const struct engine *engine, uint64_t time_ns);

/* Records of processes that were lost, so far. */
uint64_t engine__lost_processes(const struct engine *engine);

/* Take no more samples. What has come can still be collected. */
void engine__stop(struct engine *engine);

/* Samples that are missing, by reason: their number in `out`. */
size_t engine__losses(const struct engine *engine, struct engine_loss out[ENGINE_LOSSES_MAX]);
