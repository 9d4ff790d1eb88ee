/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See poller.h; the parts are in poller_parts.h. One tick of one process: look which of its threads run, read
 * their stacks in one call, and then, if that call shows another thread holding the GIL than the ones that
 * were read, read that one too.
 */
#include "run/poller.h"

#include "base/clock.h"
#include "base/util.h"
#include "os/proc.h"
#include "os/task.h"
#include "py/marker.h"
#include "run/poller_parts.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define SLEEP_MOST_NS (SECOND / 10) /* between two looks for signals */
#define SPIN_RATE_HZ  25000	    /* from this on waits are spent waiting, for want of a better timer */
#define WAIT_LEAST_NS 5000	    /* shorter ones too */
#define FOLLOW_NS     (SECOND / 200) /* between two looks where the only thread that runs does so */
#define FOLLOW_MOST   4		    /* processes: of many, one or the other runs everywhere */
#define LATE_NS	      50000	    /* an interrupt, a look at what has come: ticks catch up with that */
#define MADE_UP_NS    SECOND /* of a longer time nothing is known ... */
#define MADE_UP_MOST  65536  /* ... and each tick of it is a sample */
#define NICE	      (-10)
#define RECORD_NS     100 /* what the caller needs for each record: all of a run take it half a period at most */
#define BATCH_LEAST   12

uint64_t poller_next_random(struct poller *poller)
{
	poller->random ^= poller->random << 13;
	poller->random ^= poller->random >> 7;
	poller->random ^= poller->random << 17;
	return poller->random * 0x2545f4914f6cdd1dull;
}

/* --- opening and closing --- */

int poller__open(struct poller **out, const struct poller_config *config)
{
	struct poller *poller = calloc(1, sizeof(*poller));

	if (!poller)
		return -ENOMEM;
	poller->config = *config;
	poller->seed = hmap_seed();
	poller->random = poller->seed | 1;
	poller->fund = poller_most_credit(poller);
	poller->batch = max_u64(BATCH_LEAST, SECOND / config->rate_hz / 2 / RECORD_NS);
	task__raise_file_limit();
	/* Timers of a normal process may be late by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	/* On a busy machine it is late for its ticks otherwise. Only root may; others go without. */
	if (getpriority(PRIO_PROCESS, 0) > NICE)
		setpriority(PRIO_PROCESS, 0, NICE);
	if (config->frame_marker)
		marker__catch_crashes();
	*out = poller;
	return 0;
}

void poller__close(struct poller *poller)
{
	if (!poller)
		return;
	while (poller->processes.len)
		poller_free_polled(poller, poller->processes.items[--poller->processes.len]);
	vec__free(&poller->processes);
	vec__free(&poller->chosen);
	vec__free(&poller->stacks);
	vec__free(&poller->joined);
	vec__free(&poller->record_bytes);
	hmap__free(&poller->sent);
	free(poller);
}

/* --- a tick --- */

/* The only thread that runs, or that holds the GIL; NULL: several do, or none. */
static struct lane *only_runner(const struct poller *poller)
{
	struct lane *found = NULL;
	size_t attached = 0;

	for (size_t i = 0; i < poller->chosen.len; i++)
		if (poller->chosen.items[i]->has_stack &&
		    poller->chosen.items[i]->stack.flags & PBP_SAMPLE_ATTACHED && !attached++)
			found = poller->chosen.items[i];
	if (attached == 1)
		return found;
	return !attached && poller->chosen.len == 1 ? poller->chosen.items[0] : NULL;
}

static int read_chosen(struct poller *poller, struct polled *polled, uint64_t now)
{
	int err = poller_choose_shared(poller, polled);
	const struct lane *runner;

	poller->stacks.len = 0;
	for (size_t i = 0; i < poller->chosen.len && !err; i++)
		if (poller->chosen.items[i]->has_stack)
			err = vec__push(&poller->stacks, &poller->chosen.items[i]->stack);
	poller_stop_chosen(poller);
	err = err ?: unwinder__read(&polled->unwinder, poller->stacks.items, poller->stacks.len);
	poller_resume_chosen(poller);
	runner = only_runner(poller);
	poller->runner = runner ? runner->tid : 0;
	for (size_t i = 0; i < poller->chosen.len && !err; i++)
		err = poller_take_lane(poller, polled, poller->chosen.items[i], now);
	return err;
}

static bool has_attached(const struct poller *poller)
{
	for (size_t i = 0; i < poller->stacks.len; i++)
		if (poller->stacks.items[i]->result != UNWIND_GONE &&
		    poller->stacks.items[i]->flags & PBP_SAMPLE_ATTACHED)
			return true;
	return false;
}

/* Lists of threads, and that of interpreters, whose first one is not the one that was first. */
static void notice_new_threads(struct polled *polled)
{
	const struct unwinder *unwinder = &polled->unwinder;

	polled->stale |= unwinder->interps.len && unwinder->head != unwinder->interps.items[0].address;
	for (size_t i = 0; i < polled->unwinder.interps.len && !polled->stale; i++) {
		const struct unwind_interp *interp = &polled->unwinder.interps.items[i];

		polled->stale = interp->readable && interp->threads_head &&
				!hmap__get(&polled->by_tstate, interp->threads_head);
	}
}

/*
 * Where nobody that was read is attached, somebody else may hold the GIL, or a thread has entered an
 * interpreter that is not known yet.
 */
static int find_holders(struct poller *poller, struct polled *polled)
{
	int err = 0;

	if (!polled->unwinder.want_gils && (polled->unwinder.gils.len || poller->stacks.len) &&
	    !has_attached(poller)) {
		polled->unwinder.want_gils = true;
		err = unwinder__read(&polled->unwinder, NULL, 0);
	}
	polled->unwinder.want_gils = !has_attached(poller) || polled->unwinder.gils.len > 1;
	notice_new_threads(polled);
	return err;
}

static bool is_due(const struct polled *polled, uint64_t now)
{
	uint64_t age = now - polled->refreshed_ns;

	return age > REFRESH_NS || (polled->stale && age > REFRESH_LEAST);
}

/* What is ending has no memory, and runs nothing any more. */
static bool has_program(const struct polled *polled)
{
	uint64_t id;

	return proc__exec_id(polled->process->pid, &id) != -ESRCH;
}

/* Those that are met by turns stand for several. */
static uint32_t ticks_chosen(const struct poller *poller)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < poller->chosen.len; i++)
		sum += poller->chosen.items[i]->weight;
	return sum;
}

static int tick_process(struct poller *poller, struct polled *polled, uint64_t now)
{
	int err = 0;

	if (is_due(polled, now)) {
		if (!py_target__is_alive(&polled->process->target))
			return has_program(polled) ? poller_tell_exec(poller, polled, now) : -ESRCH;
		err = poller_refresh(poller, polled, now);
	}
	poller_update_credit(poller, polled, now);
	poller_look_for_stop(poller, polled, now);
	poller_resume_late(poller, polled);
	poller->chosen.len = 0;
	err = err ?: poller_choose_active(poller, polled) ?:
	      poller_choose_by_turns(poller, polled) ?:
	      poller_look_again_at_young(poller, polled, now);
	polled->running = ticks_chosen(poller);
	if (!err && !poller_spend_credit(poller, polled))
		return 0; /* they only wait for a CPU, all of them */
	err = err ?: poller_activate_chosen(poller, polled) ?:
	      read_chosen(poller, polled, now) ?:
	      find_holders(poller, polled);
	err = err ?: poller_choose_holders(poller, polled);
	/* One that started since the last tick, perhaps with the thread state of one that has ended. */
	if (!err && polled->stale && is_due(polled, now)) {
		polled->unwinder.want_gils = true;
		err = poller_refresh(poller, polled, now) ?:
		      unwinder__read(&polled->unwinder, NULL, 0) ?:
		      poller_choose_holders(poller, polled) ?:
		      poller_choose_new(poller, polled);
	}
	polled->running += ticks_chosen(poller);
	err = err ?: poller_activate_chosen(poller, polled);
	err = err ?: poller_look_again_at_young(poller, polled, now);
	if (!err && poller->chosen.len && poller_spend_credit(poller, polled))
		err = read_chosen(poller, polled, now);
	return err;
}

/*
 * A thread whose CPU this program runs on stands still while its stack is read; beside one that goes on, what
 * lasts less than a reading is met too seldom. So the poller sleeps, and wakes up, where the only runner is.
 */
static void follow_runner(struct poller *poller, const struct polled *polled, uint64_t now)
{
	cpu_set_t set;
	int cpu;

	if (!poller->runner || now < poller->follow_ns || poller->config.rate_hz >= SPIN_RATE_HZ ||
	    poller->processes.len > FOLLOW_MOST)
		return;
	poller->follow_ns = now + FOLLOW_NS;
	cpu = proc__task_cpu(polled->process->pid, poller->runner);
	if (cpu < 0 || cpu >= CPU_SETSIZE || cpu == sched_getcpu())
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int tick(struct poller *poller, uint64_t now)
{
	int err = 0;

	for (size_t i = 0; i < poller->processes.len && !err; i++) {
		struct polled *polled = poller->processes.items[i];

		if (polled->gone)
			continue;
		poller->runner = 0;
		err = tick_process(poller, polled, now);
		poller_limit_credit(poller, polled);
		if (!err)
			follow_runner(poller, polled, now);
		/* It has become what may not be read, as by an exec of another user's program: looked at anew. */
		if (err == -EPERM || err == -EACCES)
			err = poller_tell_exec(poller, polled, now);
		if (err != -ESRCH)
			continue;
		/* Its end is told by its pidfd. */
		polled->gone = true;
		poller->news = true;
		err = 0;
	}
	return err;
}

/* --- the timer --- */

static uint64_t slot_start(const struct poller *poller, uint64_t slot)
{
	return poller->start_ns + (uint64_t)((unsigned __int128)slot * SECOND / poller->config.rate_hz);
}

static void next_slot(struct poller *poller)
{
	uint64_t start = slot_start(poller, poller->slot),
		 period = slot_start(poller, poller->slot + 1) - start;

	poller->due_ns = start + (period ? poller_next_random(poller) % period : 0);
}

/*
 * Ticks were missed by the threads that had a CPU then: as many as the CPU time since its clock was read last is
 * worth, or, if that was a moment ago, by those that ran in the last tick.
 */
static double ticks_missed(const struct poller *poller, struct polled *polled, uint64_t slots, uint64_t now)
{
	double before = polled->credit, slots_ns = (double)slots * SECOND / poller->config.rate_hz;
	uint64_t read_ns = max_u64(polled->cpu_read_ns, polled->since_ns);

	if (!poller_update_credit(poller, polled, now) || now <= read_ns)
		return (double)slots * polled->running;
	return (polled->credit - before) * min_double(1, slots_ns / (now - read_ns));
}

static void count_missed(struct poller *poller, uint64_t slots, uint64_t now)
{
	for (size_t i = 0; i < poller->processes.len; i++) {
		struct polled *polled = poller->processes.items[i];
		uint64_t whole;

		polled->missed += ticks_missed(poller, polled, slots, now);
		polled->missed = min_double(polled->missed, polled->credit > 0 ? polled->credit : 0);
		whole = polled->missed;
		polled->missed -= whole;
		polled->credit -= whole;
		poller->counts.missed += whole;
	}
}

/*
 * Where waits are told of, which stand for all the time since the thread was looked at before, what runs now
 * does so, too, within bounds. The number of ticks.
 */
static uint32_t make_up(struct poller *poller, uint64_t slots, uint64_t now)
{
	uint64_t most = min_u64((unsigned __int128)MADE_UP_NS * poller->config.rate_hz / SECOND, MADE_UP_MOST);

	if (poller->config.takes == POLLER_ON_CPU)
		most = 0;
	if (slots > most)
		count_missed(poller, slots - most, now);
	return min_u64(slots, most);
}

/* Ticks that this one is late for: by a period or more, and by LATE_NS. */
static void skip_missed(struct poller *poller, uint64_t now)
{
	uint64_t late_ns = now - poller->due_ns;
	uint64_t slots = late_ns < LATE_NS ? 0 : (unsigned __int128)late_ns * poller->config.rate_hz / SECOND;

	poller->stands_for = 1 + make_up(poller, slots, now);
	poller->slot += slots;
}

/* The rest of the run: what is found stands for the ticks that there should have been since the last one. */
static int last_tick(struct poller *poller, uint64_t now)
{
	uint64_t start = slot_start(poller, poller->slot);
	uint64_t slots = now > start ? (unsigned __int128)(now - start) * poller->config.rate_hz / SECOND : 0;
	int err = 0;

	poller->stands_for = make_up(poller, slots, now);
	poller->slot += slots + 1;
	if (poller->config.takes != POLLER_ON_CPU)
		err = tick(poller, now);
	poller->config.takes = POLLER_ON_CPU; /* that was all */
	return err;
}

/* False: a signal came. */
static bool sleep_until(uint64_t when)
{
	struct timespec time = {.tv_sec = when / SECOND, .tv_nsec = when % SECOND};

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != EINTR;
}

int poller__run(struct poller *poller, uint64_t until_ns, poller_record_fn record, void *context)
{
	uint64_t now = now_ns();
	int err = 0;

	poller->record = record;
	poller->context = context;
	poller->records = 0;
	poller->news = false;
	if (!poller->start_ns) {
		poller->start_ns = now;
		next_slot(poller);
	}
	if (poller->last)
		return last_tick(poller, now) ?: poller->records;
	while (!err && !poller->news && now < until_ns && poller->records < poller->batch) {
		uint64_t wake = min_u64(poller->due_ns, until_ns);

		if (now < wake) {
			wake = min_u64(wake, now + SLEEP_MOST_NS);
			if (poller->config.rate_hz < SPIN_RATE_HZ && wake - now > WAIT_LEAST_NS &&
			    !sleep_until(wake))
				break;
			now = now_ns();
			continue;
		}
		skip_missed(poller, now);
		err = poller->config.empty ? 0 : tick(poller, now);
		poller->slot++;
		next_slot(poller);
		now = now_ns();
	}
	return err ?: poller->records;
}

void poller__stop(struct poller *poller)
{
	poller->last = true;
}

/* --- what has come of it --- */

void poller__send_again(struct poller *poller, uint64_t stack_id)
{
	hmap__del(&poller->sent, stack_id);
}

struct poller_counts poller__counts(const struct poller *poller)
{
	return poller->counts;
}
