/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See poller_parts.h. Which threads are read in a tick: of those that ran lately every one that runs, of the
 * others some by turns; who holds a GIL; and no more than the CPU time of their process pays for.
 */
#include "base/util.h"
#include "os/proc.h"
#include "run/poller_parts.h"

#define YOUNG_NS     (SECOND / 10)  /* within which a thread gets its thread state, if it is to have one */
#define TURN_LOOKS   16		    /* threads looked at by turns in one tick */
#define STOP_NS	     (SECOND / 50)  /* between looks for a stop */
#define CPU_CLOCK_NS (SECOND / 250) /* another process's CPU clock moves with the kernel's tick ... */
#define CREDIT_NS    (SECOND / 50)  /* ... so its samples may run ahead of it by this much ... */
#define BEHIND_NS    (SECOND / 2)   /* ... and by chance they stay behind */

/* --- those that run --- */

/*
 * Does it run? Threads that no file could be opened for are taken for waiting unless they hold the GIL; where there
 * is none, those that are attached are taken for running (poller_take_lane).
 */
static bool is_running(struct polled *polled, struct lane *lane, bool holds_gil)
{
	struct task_look look = task_probe__look(&lane->probe);

	lane->looked_at = true;
	lane->look = look;
	if (look.state == TASK_GONE) {
		polled->stale = true;
		return false;
	}
	if (look.state == TASK_UNKNOWN)
		return holds_gil || (lane->has_stack && poller_is_free_threaded(polled));
	if (look.state == TASK_RUNNING)
		lane->waited = 0;
	else if (lane->waited < ACTIVE_LOOKS)
		lane->waited++;
	return look.state == TASK_RUNNING;
}

/* A stopped thread looks as if it waited in its system call. A process is stopped as a whole, for the most part. */
void poller_look_for_stop(struct poller *poller, struct polled *polled, uint64_t now)
{
	pid_t pid = polled->process->pid;

	if (poller->config.takes == POLLER_ON_CPU || now - polled->state_ns < STOP_NS)
		return;
	polled->state_ns = now;
	polled->stopped = task__is_stopped(pid, pid);
}

/* Is it one to be read, whether it runs or not? */
static bool is_taken(const struct poller *poller, struct polled *polled, struct lane *lane)
{
	lane->off_cpu = !is_running(polled, lane, false);
	lane->is_ready = false;
	return !lane->off_cpu || (poller->config.takes != POLLER_ON_CPU && lane->look.state != TASK_GONE);
}

/* The same thread's. */
static void copy_state(struct lane *lane, const struct lane *from)
{
	lane->off_cpu = from->off_cpu;
	lane->is_ready = from->is_ready;
	lane->look = from->look;
}

static int choose(struct poller *poller, struct lane *lane, uint32_t weight)
{
	lane->weight = weight;
	lane->unpaid = 0;
	lane->chosen_slot = poller->slot;
	return vec__push(&poller->chosen, lane);
}

/* Those that ran lately; the ones that have not for a while join the others. */
int poller_choose_active(struct poller *poller, struct polled *polled)
{
	size_t kept = 0, count = polled->active.len;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct lane *lane = polled->active.items[i];

		if (is_taken(poller, polled, lane))
			err = choose(poller, lane, poller->stands_for);
		if (lane->waited < ACTIVE_LOOKS)
			polled->active.items[kept++] = lane;
		else
			err = err ?: vec__push(&polled->waiting, lane);
	}
	polled->active.len = kept;
	return err;
}

static size_t ticks_of_turn(const struct polled *polled)
{
	return (polled->waiting.len + TURN_LOOKS - 1) / TURN_LOOKS;
}

/*
 * Of the others, every one whose number leaves a certain rest, which is drawn anew for each tick: so each is
 * looked at in one of so many ticks, and stands for as many if it is found running.
 */
int poller_choose_by_turns(struct poller *poller, struct polled *polled)
{
	size_t ticks = poller->last ? 1 : ticks_of_turn(polled);
	int err = 0;

	for (size_t i = ticks > 1 ? poller_next_random(poller) % ticks : 0; i < polled->waiting.len && !err;
	     i += ticks) {
		struct lane *lane = polled->waiting.items[i];

		if (lane->chosen_slot != poller->slot && is_taken(poller, polled, lane))
			err = choose(poller, lane, ticks * poller->stands_for);
	}
	return err;
}

/* What was found running in this tick is looked at in the next one. */
int poller_activate_chosen(struct poller *poller, struct polled *polled)
{
	int err = 0;

	for (size_t i = polled->waiting.len; i-- > 0 && poller->chosen.len && !err;) {
		struct lane *lane = polled->waiting.items[i];

		if (lane->waited)
			continue;
		polled->waiting.items[i] = polled->waiting.items[--polled->waiting.len];
		err = vec__push(&polled->active, lane);
	}
	return err;
}

/* Thread states of one thread are read together. */
int poller_choose_shared(struct poller *poller, struct polled *polled)
{
	size_t count = poller->chosen.len;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		const struct lane *lane = poller->chosen.items[i];

		for (size_t j = 0; j < polled->lanes.len && lane->shares && !err; j++) {
			struct lane *other = polled->lanes.items[j];

			if (other->tid != lane->tid || !other->has_stack ||
			    other->chosen_slot == poller->slot)
				continue;
			copy_state(other, lane);
			err = choose(poller, other, lane->weight);
		}
	}
	return err;
}

/* Threads that hold a GIL but were not among those that were read. */
int poller_choose_holders(struct poller *poller, struct polled *polled)
{
	int err = 0;

	poller->chosen.len = 0;
	if (poller->config.takes != POLLER_ON_CPU)
		return 0; /* every thread has its turn */
	for (size_t i = 0; i < polled->unwinder.gils.len && !err; i++) {
		py_addr holder = polled->unwinder.gils.items[i].holder;
		struct lane *lane = holder ? poller_find_lane(polled, holder) : NULL;

		polled->stale |= holder && !lane;
		if (!lane || lane->chosen_slot == poller->slot)
			continue;
		/* A moment ago it may have been waiting. */
		lane->off_cpu = !is_running(polled, lane, true);
		if (!lane->off_cpu)
			err = choose(poller, lane, poller->stands_for);
	}
	return err;
}

/* Without a GIL: threads that were not known when the others were looked at. */
int poller_choose_new(struct poller *poller, struct polled *polled)
{
	int err = 0;

	for (size_t i = 0; i < polled->active.len && poller_is_free_threaded(polled) && !err; i++) {
		struct lane *lane = polled->active.items[i];

		if (!lane->looked_at && is_taken(poller, polled, lane))
			err = choose(poller, lane, poller->stands_for);
	}
	return err;
}

/* --- what the CPU time pays for --- */

/*
 * A thread that waits for a CPU looks as one that runs. So a process gets no more samples than its CPU time
 * is worth. The clock is late, and a process that lives for less than a period is due a sample now and then: so it is
 * lent some to begin with, of what others have left that ended with fewer samples than were due.
 */
double poller_most_credit(const struct poller *poller)
{
	return (double)CREDIT_NS * poller->config.rate_hz / SECOND + 2;
}

static double samples_in(const struct poller *poller, double cpu_ns)
{
	return cpu_ns * poller->config.rate_hz / SECOND;
}

/* What has just been forked is due what it has used up to now. */
void poller_begin_credit(struct poller *poller, struct polled *polled, uint64_t now)
{
	const struct process *process = polled->process;
	uint64_t base_ns = process->inherited ? process->cpu_start_ns : process->cpu_end_ns;

	polled->since_ns = now;
	polled->cpu_ns = base_ns;
	polled->credit = min_double(poller->fund, poller_most_credit(poller));
	poller->fund -= polled->credit;
}

bool poller_update_credit(const struct poller *poller, struct polled *polled, uint64_t now)
{
	uint64_t cpu_ns;

	if (now - polled->cpu_read_ns < CPU_CLOCK_NS || proc__cpu_ns(polled->process->pid, &cpu_ns))
		return false;
	cpu_ns = max_u64(cpu_ns, polled->cpu_ns);
	polled->run_ns += cpu_ns - polled->cpu_ns;
	polled->credit += samples_in(poller, cpu_ns - polled->cpu_ns);
	polled->cpu_ns = cpu_ns;
	polled->cpu_read_ns = now;
	return true;
}

/* What is beyond the limit was due, and no tick has met it. Where waits are told of, they are told of that, too. */
static void limit_credit(struct poller *poller, double *credit, double most)
{
	uint64_t missed = *credit > most ? *credit - most : 0;

	*credit -= missed;
	poller->counts.missed += poller->config.takes == POLLER_ON_CPU ? missed : 0;
}

/*
 * What was not sampled when it was due is made up for later only as far as chance does that in the end. Of threads
 * that are looked at by turns one that is found running stands for all that the others have used in the meantime.
 */
void poller_limit_credit(struct poller *poller, struct polled *polled)
{
	limit_credit(poller, &polled->credit,
		     poller_most_credit(poller) + samples_in(poller, BEHIND_NS) + 8 * ticks_of_turn(polled));
}

/* Of a process that ends, what it is likely to have used since its clock was read. */
static double unread_ns(const struct polled *polled, uint64_t now)
{
	const struct process *process = polled->process;
	double known = max_u64(process->cpu_end_ns, polled->cpu_ns) - polled->cpu_ns;
	double life = polled->cpu_read_ns - min_u64(polled->since_ns, polled->cpu_read_ns);
	double rest = (now - min_u64(now, max_u64(polled->cpu_read_ns, polled->since_ns))) / 2.0;

	if (process->cpu_known)
		return known;
	return known + (life > 0 ? rest * min_double(1, polled->run_ns / life) : rest);
}

void poller_settle_credit(struct poller *poller, struct polled *polled, uint64_t now)
{
	poller->fund += polled->credit + samples_in(poller, unread_ns(polled, now));
	limit_credit(poller, &poller->fund, 4 * poller_most_credit(poller));
}

/* Thread states of one thread run as one. */
static bool is_paid_for(const struct poller *poller, size_t count, const struct lane *lane)
{
	for (size_t i = 0; i < count && lane->shares; i++)
		if (poller->chosen.items[i]->tid == lane->tid)
			return true;
	return false;
}

/* What it is chosen for, or as much of that as there is. False: nothing. */
static bool pay_for(struct polled *polled, struct lane *lane)
{
	if (lane->weight && polled->credit < 1)
		return false;
	lane->unpaid = lane->weight - (uint32_t)min_double(lane->weight, polled->credit);
	lane->weight -= lane->unpaid;
	polled->credit -= lane->weight;
	return true;
}

/*
 * Leaves out what the CPU time does not pay for, whichever: where more threads are ready to run than there
 * are CPUs for, none is to come before the others. Where those that wait are taken, too, these are such.
 * False: that is all that there was.
 */
bool poller_spend_credit(struct poller *poller, struct polled *polled)
{
	size_t kept = 0, count = poller->chosen.len;

	for (size_t i = 0; i < count; i++) {
		size_t drawn = i + poller_next_random(poller) % (count - i);
		struct lane *lane = poller->chosen.items[drawn];

		poller->chosen.items[drawn] = poller->chosen.items[i];
		if (!lane->off_cpu && !is_paid_for(poller, kept, lane) && !pay_for(polled, lane)) {
			if (poller->config.takes == POLLER_ON_CPU)
				continue;
			lane->off_cpu = lane->is_ready = true;
		}
		poller->chosen.items[kept++] = lane;
	}
	poller->chosen.len = kept;
	return kept || !count;
}

/* --- stopped while they are read --- */

/* For --blocking. One that cannot be stopped is read as it runs. */
void poller_stop_chosen(struct poller *poller)
{
	for (size_t i = 0; i < poller->chosen.len && poller->config.blocking; i++) {
		struct lane *lane = poller->chosen.items[i];

		/* Told to stop in an earlier tick, and has not yet. */
		if (!lane->has_stack || !stop__resume(&lane->stopped))
			continue;
		if (stop__task(&lane->stopped, lane->tid))
			poller->counts.not_stopped += lane->weight;
		lane->stack.still = lane->stopped.state == STOP_DONE;
	}
}

void poller_resume_chosen(struct poller *poller)
{
	for (size_t i = 0; i < poller->chosen.len && poller->config.blocking; i++)
		stop__resume(&poller->chosen.items[i]->stopped);
}

/* Threads that stopped only after they were given up. */
void poller_resume_late(struct poller *poller, struct polled *polled)
{
	for (size_t i = 0; i < polled->lanes.len && poller->config.blocking; i++)
		if (polled->lanes.items[i]->stopped.state != STOP_NONE)
			stop__resume(&polled->lanes.items[i]->stopped);
}

/* --- young ones --- */

static bool is_young(const struct lane *lane, uint64_t now)
{
	return !lane->has_stack && now - lane->found_ns < YOUNG_NS;
}

/* No stack is read twice at once. */
static bool is_chosen(const struct poller *poller, const struct lane *lane)
{
	for (size_t i = 0; i < poller->chosen.len; i++)
		if (poller->chosen.items[i] == lane)
			return true;
	return false;
}

/* A thread that had no thread state when it was found may have got one since: look again before it is sampled. */
int poller_look_again_at_young(struct poller *poller, struct polled *polled, uint64_t now)
{
	VEC(struct lane) chosen = {0};
	bool young = false;
	int err = 0;

	for (size_t i = 0; i < poller->chosen.len; i++)
		young |= is_young(poller->chosen.items[i], now);
	if (!young || now - polled->refreshed_ns < REFRESH_LEAST)
		return 0;
	for (size_t i = 0; i < poller->chosen.len && !err; i++)
		err = vec__push(&chosen, *poller->chosen.items[i]); /* only tid, weight, what was seen and the
								       thread state are used */
	err = err ?: poller_refresh(poller, polled, now);
	poller->chosen.len = 0;
	for (size_t i = 0; i < chosen.len && !err; i++) {
		const struct lane *then = &chosen.items[i];
		const uint64_t *index = then->tid ? hmap__get(&polled->by_tid, then->tid) : NULL;
		struct lane *lane = then->has_stack ? poller_find_lane(polled, then->stack.thread.tstate) : NULL;

		if (!lane && index)
			lane = polled->lanes.items[*index];
		if (lane && !is_chosen(poller, lane)) {
			copy_state(lane, then);
			err = choose(poller, lane, then->weight);
		}
	}
	vec__free(&chosen);
	return err;
}
