/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See waits.h.
 */
#include "run/waits_parts.h"

#include "base/util.h"
#include "os/proc.h"
#include "os/task.h"
#include "run/gil.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define CALLS_MAX 65536

uint64_t waits_kernel_ns(const struct waits *waits, uint64_t now)
{
	return waits->sampler ? sampler__kernel_ns(waits->sampler, now) : now;
}

void waits__start(struct waits *waits, uint64_t now)
{
	waits->start_ns = waits_kernel_ns(waits, now);
}

void waits__end(struct waits *waits, uint64_t now)
{
	waits->end_ns = waits_kernel_ns(waits, now);
}

struct open_wait *waits_find_open(const struct waits *waits, pid_t tid, uint64_t out_ns)
{
	const uint64_t *index = hmap__get(&waits->by_tid, tid);
	struct open_wait *open = index ? &waits->open.items[*index] : NULL;

	return open && open->out_ns == out_ns ? open : NULL;
}

struct open_wait *waits_keep_open(struct waits *waits, pid_t tid, uint64_t out_ns)
{
	const uint64_t *index = hmap__get(&waits->by_tid, tid);
	struct open_wait *open;

	if (!index) {
		if (vec__push(&waits->open, (struct open_wait){0}))
			return NULL;
		if (hmap__set(&waits->by_tid, tid, waits->open.len - 1)) {
			waits->open.len--;
			return NULL;
		}
	}
	open = &waits->open.items[index ? *index : waits->open.len - 1];
	if (open->out_ns != out_ns)
		*open = (struct open_wait){.out_ns = out_ns, .sleeper.tid = tid};
	return open;
}

static void close_open(struct waits *waits, pid_t tid)
{
	const uint64_t *index = hmap__get(&waits->by_tid, tid);
	size_t place, last = waits->open.len - 1;

	if (!index)
		return;
	place = *index;
	hmap__del(&waits->by_tid, tid);
	if (place != last) {
		waits->open.items[place] = waits->open.items[last];
		hmap__set(&waits->by_tid, waits->open.items[place].sleeper.tid, place);
	}
	waits->open.len--;
}

uint64_t waits_came_back(pid_t tid, const struct pbp_off_thread *thread, uint64_t now)
{
	bool ready = thread->woken_ns || thread->wait.flags & PBP_WAIT_READY;
	uint64_t ran;

	if (!ready || !thread->ran_ns || task__ran_ns(thread->wait.sample.tgid, tid, &ran) ||
	    ran <= thread->ran_ns)
		return 0;
	ran -= thread->ran_ns;
	return max_u64(now - min_u64(ran, now), max_u64(thread->out_ns, thread->woken_ns));
}

/* --- reasons --- */

static enum wait_reason reason_of(struct process *process, const struct pbp_wait *wait)
{
	enum wait_reason reason;

	if (wait->flags & PBP_WAIT_READY)
		return WAIT_READY;
	if (wait->flags & PBP_WAIT_STOPPED)
		return WAIT_STOPPED;
	reason = wait_reason_of(wait->syscall, wait->arg);
	if (reason == WAIT_LOCK && wait->syscall == SYS_futex &&
	    process__gil_at(process, wait->arg, wait->out_ns + wait->duration_ns))
		return WAIT_GIL;
	if (reason == WAIT_LOCK && wait->sample.flags & PBP_SAMPLE_SUSPENDED)
		return WAIT_WORLD;
	return reason;
}

/* The GIL that it waits for, ready to run or not; 0: none, or it holds it still. */
static uint64_t lock_of(const struct waits *waits, struct process *process, const struct pbp_wait *wait)
{
	/* At a tick its stack is read a moment later, when it may have got it. */
	bool attached = wait->sample.flags & PBP_SAMPLE_ATTACHED && !(wait->flags & PBP_WAIT_TICK);

	if (!waits->gil || attached || wait->syscall != SYS_futex || wait->flags & PBP_WAIT_STOPPED)
		return 0;
	return process__gil_at(process, wait->arg, wait->out_ns + wait->duration_ns);
}

/* --- into the profile --- */

static int take_part(struct waits *waits, const struct pbp_wait *wait, struct sample_share *share,
		     uint64_t from, uint64_t part_ns, uint64_t whole_ns)
{
	struct pbp_sample sample = wait->sample;

	if (!part_ns)
		return 0;
	sample.time_ns = from;
	share->time_ns = part_ns;
	share->extra_ns = part_of(wait->extra_ns, part_ns, whole_ns);
	return symbolizer__take_share(waits->symbolizer, &sample, share);
}

/* What lies between the two times; the end of it is the part in which it was ready to run. */
static int take_between(struct waits *waits, const struct pbp_wait *wait, uint64_t from, uint64_t to,
			bool counted)
{
	struct process *process = processes__find(waits->processes, wait->sample.tgid);
	uint64_t end = wait->out_ns + wait->duration_ns, ready_from = max_u64(end - wait->ready_ns, from);
	struct sample_share share = {.kind = pbp_wait_kind(wait->flags, wait->syscall), .counted = counted};
	int err;

	if (!process || from >= to)
		return 0;
	if (waits->gil)
		gil__note_off(waits->gil, process, &wait->sample, wait->out_ns, to, wait->extra_ns);
	share.lock = lock_of(waits, process, wait);
	ready_from = share.lock ? to : min_u64(ready_from, to);
	share.reason = share.lock ? WAIT_GIL : reason_of(process, wait);
	share.syscall = wait_told(share.reason, wait->syscall);
	err = take_part(waits, wait, &share, from, ready_from - from, to - from);
	share.counted |= ready_from > from;
	share.reason = WAIT_READY;
	share.syscall = 0;
	return err ?: take_part(waits, wait, &share, ready_from, to - ready_from, to - from);
}

static void take_stack_away(struct pbp_sample *sample)
{
	sample->status = PBP_STATUS_NOT_WALKED;
	sample->stack_id = sample->tail_frame = 0;
}

/* What it goes on with after a stop is what it was found in. */
static void use_call(struct waits *waits, struct pbp_wait *wait)
{
	const uint64_t *known = waits->calls.len ? hmap__get(&waits->calls, wait->sample.tid) : NULL;

	if (known && wait->syscall == PBP_SYSCALL_RESTART && pbp_syscall_restarts(*known))
		wait->syscall = *known;
	else if (known)
		hmap__del(&waits->calls, wait->sample.tid);
}

static void keep_call(struct waits *waits, pid_t tid, int32_t syscall)
{
	/* Of threads that have ended meanwhile. */
	if (waits->calls.len >= CALLS_MAX)
		hmap__clear(&waits->calls);
	hmap__set(&waits->calls, tid, syscall); /* it may fail */
}

static void use_sleeper(struct waits *waits, struct pbp_wait *wait, const struct open_wait *open)
{
	char comm[64];

	if (open && open->is_read) {
		wait->sample = open->sleeper.sample;
		wait->syscall = open->sleeper.syscall;
		keep_call(waits, wait->sample.tid, wait->syscall);
		wait->arg = open->sleeper.arg;
		wait->flags |= open->sleeper.is_stopped ? PBP_WAIT_STOPPED : 0;
	} else if (wait->flags & PBP_WAIT_FOUND && waits->want_names &&
		   !proc__task_comm(wait->sample.tgid, wait->sample.tid, comm, sizeof(comm))) {
		memcpy(wait->sample.comm, comm, strnlen(comm, sizeof(wait->sample.comm)));
	} else {
		use_call(waits, wait);
	}
	/* Forgotten since: the time is told all the same. */
	if (wait->sample.stack_id && !symbolizer__has_stack(waits->symbolizer, wait->sample.stack_id))
		take_stack_away(&wait->sample);
}

static uint64_t told_until(const struct waits *waits, const struct pbp_wait *wait,
			   const struct open_wait *open)
{
	uint64_t from = max_u64(wait->out_ns, waits->start_ns);

	return open ? max_u64(from, open->told_ns) : from;
}

int waits__take(struct waits *waits, const void *record, size_t size)
{
	struct pbp_wait wait = {0};
	struct open_wait *open;
	uint64_t end;
	int err;

	if (size < PBP_WAIT_SHORT)
		return -EINVAL;
	memcpy(&wait, record, min_u64(size, sizeof(wait)));
	if (!waits->start_ns)
		return 0; /* it was over before the run began */
	end = wait.out_ns + wait.duration_ns;
	if (wait.flags & PBP_WAIT_TICK)
		return take_between(waits, &wait, wait.out_ns, end, false);
	open = waits_find_open(waits, wait.sample.tid, wait.out_ns);
	/* It was not asleep when it was put in, and nobody had to wake it. */
	if (wait.flags & PBP_WAIT_FOUND && !wait.ready_ns && !(open && open->is_read)) {
		wait.flags |= PBP_WAIT_READY;
		wait.ready_ns = wait.duration_ns;
	}
	use_sleeper(waits, &wait, open);
	err = take_between(waits, &wait, told_until(waits, &wait, open),
			   waits->end_ns ? min_u64(end, waits->end_ns) : end, open && open->told_ns);
	close_open(waits, wait.sample.tid);
	return err;
}

struct telling {
	struct waits *waits;
	uint64_t now;
	int err;
};

static bool is_told(const struct pbp_off_thread *thread, const struct open_wait *open, uint64_t now)
{
	/* A thread that was put in and is on a CPU ever since looks the same. */
	if (thread->wait.flags & PBP_WAIT_FOUND)
		return open && open->is_read;
	/* One that was left out is told of if it lasts long. */
	return thread->walked || thread->wait.flags & PBP_WAIT_CERTAIN ||
	       now - thread->out_ns >= PBP_WAIT_LONG_NS;
}

static void tell(void *context, pid_t tid, const struct pbp_off_thread *thread)
{
	struct telling *telling = context;
	struct waits *waits = telling->waits;
	struct open_wait *open = waits_find_open(waits, tid, thread->out_ns);
	struct pbp_wait wait = thread->wait;
	bool told = open && open->told_ns;
	uint64_t from, until;

	if (telling->err || thread->out_ns >= telling->now || !is_told(thread, open, telling->now))
		return;
	if (!thread->walked) {
		take_stack_away(&wait.sample);
		wait.sample.flags = PBP_SAMPLE_KERNEL; /* what else is there is of an earlier stack */
	}
	use_sleeper(waits, &wait, open);
	until = waits_came_back(tid, thread, telling->now) ?: telling->now;
	wait.duration_ns = until - wait.out_ns;
	wait.ready_ns = wait.flags & PBP_WAIT_READY ? wait.duration_ns
			: thread->woken_ns	    ? until - min_u64(thread->woken_ns, until)
						    : 0;
	from = told_until(waits, &wait, open);
	open = open ?: waits_keep_open(waits, tid, thread->out_ns);
	if (!open) {
		telling->err = -ENOMEM;
		return;
	}
	open->told_ns = max_u64(from, until);
	telling->err = take_between(waits, &wait, from, until, told);
}

int waits__tell(struct waits *waits, uint64_t now)
{
	struct telling telling = {.waits = waits, .now = waits_kernel_ns(waits, now)};

	if (waits->sampler && waits->start_ns)
		sampler__each_off(waits->sampler, tell, &telling);
	return telling.err;
}

void waits__settle(struct waits *waits, uint64_t cpu_ns, bool last)
{
	const struct estimate *estimate = &waits->symbolizer->estimate;
	struct pbp_skipped skipped[PBP_WAIT_KINDS];
	uint64_t exact_ns[ESTIMATE_KINDS];

	_Static_assert(SYMBOLIZE_CPU_KIND == PBP_WAIT_KINDS, "a sum for each kind");
	if (!waits->sampler)
		return;
	sampler__skipped(waits->sampler, skipped);
	for (size_t kind = 0; kind < PBP_WAIT_KINDS; kind++)
		exact_ns[kind] = skipped[kind].time_ns;
	exact_ns[SYMBOLIZE_CPU_KIND] =
		cpu_ns ?: estimate->settled[SYMBOLIZE_CPU_KIND] + estimate->sums[SYMBOLIZE_CPU_KIND];
	symbolizer__settle(waits->symbolizer, exact_ns, last);
}

void waits__free(struct waits *waits)
{
	hmap__free(&waits->by_tid);
	hmap__free(&waits->calls);
	vec__free(&waits->open);
}
