/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF engine is polled while samples come, so that the target does not pay for wake-ups, and sleeps until
 * woken while none come: every 20 ms while there is something to look up, less often while all stacks are
 * known ones, since the kernel side wakes the reader when the ring fills. The readv engine works while it is
 * called.
 */
#include "run/engine.h"

#include "base/log.h"
#include "base/util.h"
#include "run/permission.h"

#include <errno.h>
#include <stdio.h>

#define MS	      1000000ull
#define POLL_NS	      (20 * MS)
#define POLL_QUIET_NS (100 * MS)
#define QUIET_POLLS   5	 /* polls without a new stack or a tail before they become rarer */
#define IDLE_POLLS    10 /* empty polls before the reader goes to sleep */

static int open_sampler(struct engine *engine, const struct engine_config *config, char *reason,
			size_t reason_size)
{
	struct sampler_config sampler_config = {.rate_hz = config->rate_hz,
						.max_frames = config->kernel_frames,
						.program = config->program,
						.clock = config->clock,
						.no_ticks = config->mode == ENGINE_OFFCPU,
						.switches = config->mode != ENGINE_CPU,
						.want_names = config->want_names,
						.want_exceptions = config->want_exceptions,
						.measure = config->measure,
						.follow = config->follow,
						.tell_execs = config->tell_execs,
						.tell_moves = config->tell_moves};
	const char *missing = permission__missing(PERMISSION_BPF);
	int err;

	if (config->rate_hz > ENGINE_BPF_RATE_MAX) {
		snprintf(reason, reason_size, "the bpf engine takes up to %d samples a second",
			 ENGINE_BPF_RATE_MAX);
		return -EINVAL;
	}
	if (*missing) {
		snprintf(reason, reason_size, "not permitted to load BPF: %s", missing);
		return -EPERM;
	}
	err = sampler__open(&engine->sampler, &sampler_config, reason, reason_size);
	/* A filter may refuse as if there were no such call. */
	if ((err == -EPERM || err == -EACCES || err == -ENOSYS) && permission__add_hint(reason, reason_size))
		return -EPERM;
	return err;
}

static int open_poller(struct engine *engine, const struct engine_config *config)
{
	static const enum poller_takes takes[] = {
		[ENGINE_CPU] = POLLER_ON_CPU, [ENGINE_WALL] = POLLER_ALL, [ENGINE_OFFCPU] = POLLER_OFF_CPU,
		[ENGINE_GIL] = POLLER_ALL};
	struct poller_config poller_config = {.rate_hz = config->rate_hz,
					      .takes = takes[config->mode],
					      .want_names = config->want_names,
					      .want_exceptions = config->want_exceptions,
					      .empty = config->program == SAMPLER_EMPTY,
					      .blocking = config->blocking,
					      .frame_marker = config->frame_marker};

	return poller__open(&engine->poller, &poller_config);
}

int engine__open(struct engine *engine, const struct engine_config *config, char *reason, size_t reason_size)
{
	int err = -EPERM;

	*engine = (struct engine){.rate_hz = config->rate_hz};
	snprintf(reason, reason_size, "%s", "");
	if (config->kind != ENGINE_READV) {
		err = open_sampler(engine, config, reason, reason_size);
		if (!err || config->kind == ENGINE_BPF || config->clock == SAMPLER_TICK)
			return err;
	}
	err = open_poller(engine, config);
	if (err)
		snprintf(reason, reason_size, "out of memory");
	return err;
}

void engine__close(struct engine *engine)
{
	sampler__close(engine->sampler);
	poller__close(engine->poller);
	*engine = (struct engine){0};
}

const char *engine__name(const struct engine *engine)
{
	return engine->sampler ? "bpf" : "readv";
}

int engine__fd(const struct engine *engine)
{
	return engine->sampler ? sampler__fd(engine->sampler) : -1;
}

int engine__add(struct engine *engine, struct process *process)
{
	process->engine_epoch = process->target.layout.epoch;
	if (engine->sampler)
		return sampler__add_target(engine->sampler, process->pid, &process->target.layout);
	return process->attached ? poller__add(engine->poller, process) : 0;
}

static int update_target(struct engine *engine, struct process *process)
{
	int err = sampler__set_target(engine->sampler, process->pid, &process->target.layout);

	process->engine_epoch = process->target.layout.epoch;
	return err == -ENOENT ? -ESRCH : err;
}

int engine__set_target(struct engine *engine, struct process *process)
{
	return engine->sampler ? update_target(engine, process) : poller__add(engine->poller, process);
}

void engine__unset_target(struct engine *engine, struct process *process)
{
	process->target.layout.interpreters_head = 0;
	if (engine->sampler)
		update_target(engine, process);
	else
		poller__remove(engine->poller, process);
}

int engine__start_all(struct engine *engine)
{
	return engine->sampler ? sampler__watch_cpus(engine->sampler) : 0;
}

int engine__start_cgroups(struct engine *engine, const int *fds, size_t count)
{
	return engine->sampler ? sampler__watch_cgroups(engine->sampler, fds, count) : 0;
}

int engine__start(struct engine *engine, struct process *process)
{
	return engine->sampler ? sampler__attach(engine->sampler, process->pid) : 0;
}

void engine__remove(struct engine *engine, struct process *process)
{
	if (engine->sampler)
		sampler__remove_target(engine->sampler, process->pid, process->engine_epoch);
	else
		poller__remove(engine->poller, process);
}

void engine__watch_threads(struct engine *engine)
{
	int err = engine->sampler ? sampler__watch_cpus(engine->sampler) : 0;

	if (err && !engine->warned_cpus)
		log_warn("cannot put timers on the CPUs (%s): threads started from now on are missing",
			 log_reason(err));
	engine->warned_cpus |= err != 0;
}

/* A CPU that went offline took its timer with it. */
void engine__refresh(struct engine *engine)
{
	if (!engine->sampler || !sampler__refresh_cpus(engine->sampler) || engine->warned_cpus)
		return;
	log_warn("cannot put timers on CPUs that have come online");
	engine->warned_cpus = true;
}

int engine__collect(struct engine *engine, uint64_t until_ns, engine_record_fn record, void *context,
		    bool *more)
{
	*more = false;
	return engine->sampler ? sampler__drain(engine->sampler, record, context, more)
			       : poller__run(engine->poller, until_ns, record, context);
}

void engine__send_again(struct engine *engine, uint64_t stack_id)
{
	if (engine->poller)
		poller__send_again(engine->poller, stack_id);
}

bool engine__update_pace(struct engine *engine, bool any, bool news)
{
	if (!engine->sampler)
		return false;
	engine->quiet_polls = news ? 0 : engine->quiet_polls + 1;
	if (any) {
		engine->empty_polls = 0;
		if (engine->idle)
			sampler__set_idle(engine->sampler, engine->idle = false);
		return false;
	}
	if (engine->idle || ++engine->empty_polls < IDLE_POLLS)
		return false;
	sampler__set_idle(engine->sampler, engine->idle = true);
	return true; /* for one that came just before the kernel side knew */
}

uint64_t engine__next_ns(const struct engine *engine, uint64_t now)
{
	if (!engine->sampler)
		return now;
	if (engine->idle)
		return UINT64_MAX;
	return now + (engine->quiet_polls < QUIET_POLLS ? POLL_NS : POLL_QUIET_NS);
}

uint64_t engine__local_ns(const struct engine *engine, uint64_t time_ns)
{
	return engine->sampler ? sampler__local_ns(engine->sampler, time_ns) : time_ns;
}

uint64_t engine__lost_processes(const struct engine *engine)
{
	return engine->sampler ? sampler__counter(engine->sampler, PBP_COUNTER_LOST_PROCESS) : 0;
}

void engine__stop(struct engine *engine)
{
	if (engine->sampler)
		sampler__stop(engine->sampler);
	if (engine->poller)
		poller__stop(engine->poller);
}

size_t engine__losses(const struct engine *engine, struct engine_loss out[ENGINE_LOSSES_MAX])
{
	uint64_t counters[PBP_COUNTER_COUNT];
	struct poller_counts counts;

	if (engine->sampler) {
		sampler__counters(engine->sampler, counters);
		out[0] = (struct engine_loss){counters[PBP_COUNTER_LOST_SAMPLE], "ring buffer full"};
		out[1] = (struct engine_loss){counters[PBP_COUNTER_LOST_STACK],
					      "ring buffer full for a new stack"};
		out[2] = (struct engine_loss){counters[PBP_COUNTER_LOST_WAIT], "waits: ring buffer full"};
		return 3;
	}
	counts = poller__counts(engine->poller);
	out[0] = (struct engine_loss){counts.missed, "missed: the profiler was not run in time"};
	out[1] = (struct engine_loss){counts.torn, "torn: the stack changed while it was read"};
	out[2] = (struct engine_loss){counts.ended, "thread ended before it was read"};
	out[3] = (struct engine_loss){counts.unreadable, "frames not readable"};
	return 4;
}
