/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See session.h. The loop of a run, once it has begun (session_open.c). What happens to processes is dealt
 * with in follow.c; where samples come from is the engine's business, and what becomes of them the
 * symbolizer's.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "run/session_parts.h"
#include "run/signals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#define MS	     1000000ull
#define SECOND	     (1000 * MS)
#define DRAINS_MAX  8	      /* times what is handed over at once: more than the ring holds */
#define COLLECT_NS  (50 * MS) /* at most before signals and ends are looked for again */
#define PROGRESS_NS (250 * MS)
#define LOST_EXEC_NS (10 * MS)
#define FLUSH_NS     (800 * MS) /* what is flushed was taken some time before, and all is to take a second */
#define FLUSH_SHARE  20	       /* of the time at most 1 in so many goes into that */
#define MOVED_NS     (100 * MS) /* between looks for cgroups that are new, if something was moved */
#define CLOCK_TRIES  4
#define HALTS_MAX    16 /* processes of which it is told whether something keeps them from running */

uint64_t session_now_realtime_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

/* --- records --- */

/* In the words of a shell that asked for the time before it started us: seconds since 1970. */
static void log_first_sample(struct session *session, const struct pbp_sample *sample)
{
	uint64_t ago_ns = now_ns() - engine__local_ns(&session->engine, sample->time_ns);

	session->first_seen = true;
	log_dbg("session", "first sample at %.6f", (session_now_realtime_ns() - ago_ns) / 1e9);
}

static void handle_sample(struct session *session, const struct pbp_sample *sample, size_t size)
{
	struct process *process;

	session->news |= size > PBP_SAMPLE_SHORT; /* a deep stack */
	if (!session->first_seen)
		log_first_sample(session, sample);
	/* Some time after the kernel side was told how to walk it: the record of another exec was lost. */
	if (sample->status == PBP_STATUS_NO_TARGET) {
		process = processes__find(&session->follower.processes, sample->tgid);
		if (process && process->attached && !process->exited &&
		    engine__local_ns(&session->engine, sample->time_ns) > process->set_ns + LOST_EXEC_NS)
			follower__exec(&session->follower, process);
	}
}

static void handle_process(struct session *session, const struct pbp_process *record)
{
	session->news |= record->type != PBP_EXIT && record->type != PBP_FREED;
	session->moved |= record->type == PBP_MOVED;
	if (record->type == PBP_BIRTH)
		engine__watch_threads(&session->engine);
	else
		follower__handle(&session->follower, record);
}

/* Is it a struct pbp_process? */
static bool is_of_process(uint32_t type)
{
	return type == PBP_EXEC || type == PBP_BIRTH || type == PBP_FORK || type == PBP_EXIT ||
	       type == PBP_FREED || type == PBP_LOOK || type == PBP_MOVED;
}

static void handle_record(void *context, const void *record, size_t size)
{
	struct session *session = context;
	uint32_t type = size >= sizeof(type) ? load_u32(record) : 0;
	int err;

	if (is_of_process(type) && size >= sizeof(struct pbp_process)) {
		handle_process(session, record);
		return;
	}
	if (type == PBP_WAIT) {
		session->err = session->err ?: waits__take(&session->waits, record, size);
		return;
	}
	if (type == PBP_SAMPLE && size >= PBP_SAMPLE_SHORT)
		handle_sample(session, record, size);
	else
		session->news = true;
	err = symbolizer__take(&session->symbolizer, record, size);
	if (err)
		session->err = session->err ?: err;
}

/* They would be waited for in vain. */
static void look_for_halts(struct session *session)
{
	const struct processes *processes = &session->follower.processes;

	for (size_t i = 0, looks = 0; i < processes->items.len && looks < HALTS_MAX; i++) {
		struct process *process = processes->items.items[i];

		if (process->exited || !(process->python || process->asked_for) ||
		    !process__update_cpu(process))
			continue;
		process__look_for_halt(process);
		looks++;
	}
}

/* Everything that has come, or comes until then, into the profile. Number of records. */
static int drain(struct session *session, uint64_t until_ns)
{
	int count = engine__collect(&session->engine, until_ns, handle_record, session, &session->more);

	if (count < 0)
		session->err = session->err ?: count;
	if (count <= 0)
		return count;
	session->err = session->err ?: symbolizer__flush_batch(&session->symbolizer);
	for (size_t i = 0; i < session->symbolizer.wanted.len; i++)
		engine__send_again(&session->engine, session->symbolizer.wanted.items[i]);
	session->symbolizer.wanted.len = 0;
	return count;
}

/* ... and what is left: the ring has an end, but the target may fill it meanwhile. */
static void drain_all(struct session *session)
{
	do
		drain(session, 0);
	while (session->more && !session->err && ++session->drains < DRAINS_MAX);
	session->drains = 0;
}

/*
 * Empty the caches. The kernel side gets new epochs first, so that it sends every stack again; what it sent
 * under the old ones is taken while the stacks are still known.
 */
static void flush_caches(struct session *session)
{
	const struct processes *processes = &session->follower.processes;

	for (size_t i = 0; i < processes->items.len; i++) {
		struct process *process = processes->items.items[i];

		process->epoch++;
		process->target.layout.epoch = process->epoch;
		if (process->attached && !process->exited)
			engine__set_target(&session->engine, process);
	}
	drain_all(session);
	session->err = session->err ?: waits__tell(&session->waits, now_ns());
	session->err = session->err ?: symbolizer__flush_batch(&session->symbolizer);
	symbolizer__forget(&session->symbolizer, NULL);
	for (size_t i = 0; i < processes->items.len; i++) {
		code_cache__clear(&processes->items.items[i]->codes);
		hmap__clear(&processes->items.items[i]->lines);
	}
	session->err = session->err ?: waits__read_again(&session->waits);
}

/* CPU time of what was profiled; 0: it is not known of all. */
static uint64_t cpu_ns(const struct session *session)
{
	const struct processes *processes = &session->follower.processes;
	uint64_t sum = processes->past.cpu_ns;

	for (size_t i = 0; i < processes->items.len; i++)
		if (processes->items.items[i]->python || processes->items.items[i]->samples)
			sum += processes->items.items[i]->cpu_end_ns -
			       processes->items.items[i]->cpu_start_ns;
	return session->follower.cpu_unknown || !session->symbolizer.cpu_is_known ? 0 : sum;
}

/* Those that are not over count as far as they have come. `last`: as symbolizer__settle. */
static void tell_waits(struct session *session, uint64_t now, bool last)
{
	session->err = session->err ?: waits__tell(&session->waits, now);
	session->err = session->err ?: symbolizer__flush_batch(&session->symbolizer);
	if (session->symbolizer.gil)
		session->err = session->err ?: gil__settle(&session->gil);
	if (!session->waits.end_ns) /* else it stands as at the end */
		follower__update_cpu(&session->follower);
	waits__settle(&session->waits, cpu_ns(session), last);
}

/* What is said of the run is what the samples come to that the sinks have. */
static void flush_sinks(struct session *session, uint64_t now)
{
	uint64_t done;

	if (session->waits.sampler || session->symbolizer.gil)
		tell_waits(session, now, false);
	session->profile.duration_ns = now - session->start_ns;
	session_account(session);
	for (struct sink *sink = session->symbolizer.sink; sink; sink = sink->next)
		sink->flush(sink);
	done = now_ns();
	session->flush_ns = done + max_u64(FLUSH_NS, (done - now) * FLUSH_SHARE);
}

/* The sums of a profile of time are told in the end report. */
static bool may_renew(const struct session *session)
{
	return session->config.no_profile && session->config.mode == ENGINE_CPU;
}

/* What has been given away is no one's business any more; so a recording can go on for ever. */
static void renew_profile(struct session *session, uint64_t now)
{
	flush_caches(session);
	flush_sinks(session, now);
	session->err = session->err ?: symbolizer__renew(&session->symbolizer);
}

void session__give_samples(struct session *session, struct sink *sinks)
{
	session->symbolizer.sink = sinks;
	session->flush_ns = session->start_ns + FLUSH_NS;
}

/* --- the loop --- */

static void show_progress(struct session *session, uint64_t now)
{
	double elapsed = (now - session->start_ns) / 1e9;
	struct engine_loss losses[ENGINE_LOSSES_MAX];
	size_t count = engine__losses(&session->engine, losses);
	uint64_t lost = 0;
	char limit[32] = "";

	session->progress_ns = now + PROGRESS_NS;
	for (size_t i = 0; i < count; i++)
		lost += losses[i].count;
	if (session->config.duration_ns)
		snprintf(limit, sizeof(limit), "/%.0f", session->config.duration_ns / 1e9);
	log_progress("%.1f%s s  %llu samples  %.0f/s  %llu lost   (Ctrl-C to stop)", elapsed, limit,
		     (unsigned long long)session->symbolizer.counts.samples,
		     elapsed > 0 ? session->symbolizer.counts.samples / elapsed : 0,
		     (unsigned long long)lost);
}

/* Milliseconds until there is something to do without being woken; -1 = nothing. */
static int next_timeout(const struct session *session, uint64_t now)
{
	uint64_t next = follower__next_ns(&session->follower);

	if (session->more)
		return 0;
	if (session->end_ns)
		next = min_u64(next, session->end_ns);
	if (session->config.progress)
		next = min_u64(next, session->progress_ns);
	next = min_u64(next, session->moved ? session->moved_ns : session->refresh_ns);
	next = min_u64(next, min_u64(session->flush_ns, engine__next_ns(&session->engine, now)));
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)min_u64((next - now + MS - 1) / MS, 1u << 30);
}

static void collect(struct session *session, uint64_t until_ns)
{
	bool again;

	do {
		bool any = drain(session, until_ns) > 0, news = session->news;

		session->news = false;
		again = engine__update_pace(&session->engine, any, news);
	} while (again);
}

/* Until when an engine that works while it is called may do so. */
static uint64_t collect_until(const struct session *session, uint64_t now)
{
	uint64_t until = min_u64(now + COLLECT_NS, follower__next_ns(&session->follower));

	if (session->end_ns)
		until = min_u64(until, session->end_ns);
	return until;
}

static bool handle_signals(struct session *session, void (*snapshot)(void *context), void *context)
{
	bool wants_snapshot;

	session->signal = signals__take(&wants_snapshot);
	if (wants_snapshot) {
		drain(session, 0);
		if (session->symbolizer.sink)
			flush_sinks(session, now_ns());
		else
			tell_waits(session, now_ns(), true);
		if (snapshot) {
			session->profile.duration_ns = now_ns() - session->start_ns;
			follower__update_cpu(&session->follower);
			session_account(session);
			snapshot(context);
		}
	}
	return session->signal != 0;
}

/* Nobody is left in the cgroups. For a time that was asked for, others are waited for, as of a service that
 * is started again. */
static bool is_scope_over(struct session *session)
{
	return !session->config.duration_ns && !processes__alive(&session->follower.processes) &&
	       !scope__is_populated(&session->scope);
}

static bool is_over(struct session *session)
{
	if (session->command.pid)
		return session->first->exited;
	if (session_has_scope(session))
		return is_scope_over(session);
	return !session->config.all && !processes__alive(&session->follower.processes);
}

/* Of a service that was started again the cgroup is another one, for which there are no timers yet. */
static void refresh_scope(struct session *session, uint64_t now)
{
	session->moved = false;
	session->moved_ns = now + MOVED_NS;
	if (!session_has_scope(session) || !scope__refresh(&session->scope))
		return;
	if (engine__start_cgroups(&session->engine, session->scope.fds.items, session->scope.fds.len))
		session->err = session->err ?: -EIO;
}

static enum session_end sample(struct session *session, void (*snapshot)(void *context), void *context)
{
	uint64_t now = session->start_ns;

	session->end_ns = session->config.duration_ns ? now + session->config.duration_ns : 0;
	session->progress_ns = now + PROGRESS_NS;
	session->refresh_ns = now + SECOND;
	look_for_halts(session);
	while (!session->err) {
		struct epoll_event events[16];
		int count =
			epoll_wait(session->epoll_fd, events, ARRAY_SIZE(events), next_timeout(session, now));
		bool stop = false;

		now = now_ns();
		collect(session, collect_until(session, now));
		now = now_ns();
		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 == SESSION_WATCH_SIGNAL)
				stop = handle_signals(session, snapshot, context);
			else if (events[i].data.u64 >= FOLLOW_WATCH_MIN)
				follower__exit(&session->follower,
					       (struct process *)(uintptr_t)events[i].data.u64);
		}
		session->err = session->err ?: waits__look(&session->waits, now);
		follower__turn(&session->follower, now);
		session->err = session->err ?: session->follower.err;
		if (now >= session->refresh_ns) {
			session->refresh_ns = now + SECOND;
			engine__refresh(&session->engine);
			refresh_scope(session, now);
			look_for_halts(session);
		}
		if (session->moved && now >= session->moved_ns)
			refresh_scope(session, now);
		if (symbolizer__is_full(&session->symbolizer))
			flush_caches(session);
		if (may_renew(session) && symbolizer__is_profile_full(&session->symbolizer))
			renew_profile(session, now_ns());
		if (now >= session->flush_ns)
			flush_sinks(session, now);
		if (session->symbolizer.gil && gil__is_full(&session->gil))
			tell_waits(session, now, false);
		if (session->config.progress && now >= session->progress_ns)
			show_progress(session, now);
		if (stop)
			return SESSION_END_SIGNAL;
		if (is_over(session))
			return SESSION_END_TARGETS;
		if (session->end_ns && now >= session->end_ns)
			return SESSION_END_DURATION;
	}
	log_err("sampling stopped: %s", log_reason(session->err));
	return SESSION_END_ERROR;
}

static void stop_sampling(struct session *session, enum session_end end)
{
	uint64_t before, now = now_ns();

	/* Both at one moment, as near as can be: something else may come between. */
	for (int i = 0; i < CLOCK_TRIES; i++) {
		before = now;
		follower__update_cpu(&session->follower);
		now = now_ns();
		if (now - before < MS / 4)
			break;
	}
	session->profile.duration_ns = now - session->start_ns;
	waits__end(&session->waits, now);
	look_for_halts(session);
	engine__stop(&session->engine);
	drain_all(session);
	tell_waits(session, now, true);
	session->end = end;
	session_account(session);
	session->profile.account.end = session_end_text(session);
	log_progress("%s", "");
}

/* Those that are asleep already. */
static void find_sleepers(struct session *session)
{
	const struct processes *processes = &session->follower.processes;

	for (size_t i = 0; i < processes->items.len && !session->err; i++)
		session->err = waits__find(&session->waits, processes->items.items[i], session->start_ns);
}

enum session_end session__run(struct session *session, void (*snapshot)(void *context), void *context)
{
	enum session_end end;

	find_sleepers(session);
	end = sample(session, snapshot, context);

	stop_sampling(session, end);
	return end;
}

const struct profile *session__profile(const struct session *session)
{
	return &session->profile;
}

int session__read_code(struct session *session)
{
	return code_files__read(&session->code_files, &session->profile);
}

int session__wait_command(struct session *session)
{
	int code;

	if (!session->command.pid)
		return 0;
	if (!session->first->exited)
		engine__close(&session->engine); /* nothing more is to be sampled or told of it */
	code = command__wait(&session->command);
	signals__forget_command();
	return code;
}
