/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom waits are due to. Whatever is added, the shares of a waiter come to what it has waited.
 */
#include "agg/blame.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { LOCK = 0x1000, OTHER_LOCK = 0x2000 };
enum { WAITER = 1, WAITER_2, HOLDER = 11, HOLDER_2 };

static struct blame blame;
static VEC(struct blame_share) shares;

static void start(void)
{
	blame.sample_ns = 1000000; /* more than all that waits here */
}

static void stop(void)
{
	blame__free(&blame);
	vec__free(&shares);
}

TestSuite(blame, .init = start, .fini = stop);

static void wait_for(uint64_t lock, uint32_t waiter, uint64_t from, uint64_t to, uint64_t extra)
{
	struct blame_wait wait = {.lock = lock, .from_ns = from, .to_ns = to, .extra_ns = extra, .waiter = waiter};

	cr_assert_eq(blame__wait(&blame, &wait), 0);
}

static void hold(uint64_t lock, uint32_t holder, uint64_t from, uint64_t to)
{
	struct blame_hold hold = {.lock = lock, .from_ns = from, .to_ns = to, .holder = holder};

	cr_assert_eq(blame__hold(&blame, &hold), 0);
}

static void take(void *context, const struct blame_share *share)
{
	cr_assert_eq(vec__push(&shares, *share), 0);
}

static void settle(void)
{
	shares.len = 0;
	cr_assert_eq(blame__settle(&blame, take, NULL), 0);
}

static uint64_t time_of(uint32_t waiter, uint32_t holder)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < shares.len; i++)
		if (shares.items[i].waiter == waiter && (!holder || shares.items[i].holder == holder))
			sum += shares.items[i].time_ns;
	return sum;
}

static uint64_t extra_of(uint32_t waiter, uint32_t holder)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < shares.len; i++)
		if (shares.items[i].waiter == waiter && (!holder || shares.items[i].holder == holder))
			sum += shares.items[i].extra_ns;
	return sum;
}

static void expect(uint32_t waiter, uint32_t holder, uint64_t time)
{
	cr_expect_eq(time_of(waiter, holder), time, "%u for %u: %lu, should be %lu", waiter, holder,
		     time_of(waiter, holder), time);
}

Test(blame, nothing)
{
	settle();
	cr_expect_eq(shares.len, 0);
	wait_for(LOCK, WAITER, 100, 100, 0); /* no time at all */
	settle();
	cr_expect_eq(shares.len, 0);
}

/* It is said so, and nobody is guessed, whatever others waited for or held. */
Test(blame, holder_not_seen)
{
	wait_for(LOCK, WAITER, 100, 300, 7);
	wait_for(LOCK, WAITER_2, 400, 500, 0);
	hold(LOCK, HOLDER, 450, 450);
	hold(LOCK, HOLDER, 0, 100);
	hold(LOCK, HOLDER, 300, 400);
	hold(OTHER_LOCK, HOLDER_2, 150, 250);
	hold(OTHER_LOCK, HOLDER_2, 200, 200);
	settle();
	expect(WAITER, BLAME_NOBODY, 200);
	expect(WAITER, 0, 200);
	cr_expect_eq(extra_of(WAITER, BLAME_NOBODY), 7);
	expect(WAITER_2, HOLDER, 100);
}

/* For exactly as long as both lasted, whichever was told of first. */
Test(blame, holders_off_the_cpu)
{
	wait_for(LOCK, WAITER, 100, 200, 10);
	hold(LOCK, HOLDER_2, 180, 500);
	hold(LOCK, HOLDER, 50, 130);
	wait_for(LOCK, WAITER_2, 120, 190, 0);
	settle();
	expect(WAITER, HOLDER, 30);
	expect(WAITER, HOLDER_2, 20);
	expect(WAITER, BLAME_NOBODY, 50);
	expect(WAITER_2, HOLDER, 10);
	expect(WAITER_2, HOLDER_2, 10);
	expect(WAITER_2, BLAME_NOBODY, 50);
	cr_expect_eq(extra_of(WAITER, HOLDER), 3);
	cr_expect_eq(extra_of(WAITER, HOLDER_2), 2);
	cr_expect_eq(extra_of(WAITER, 0), 10);
}

/* All the waits of one waiter together, since most are shorter than the time between two samples. */
Test(blame, by_samples)
{
	for (uint64_t i = 0; i < 10; i++)
		wait_for(LOCK, WAITER, 100 * i, 100 * i + 50, 0);
	hold(LOCK, HOLDER, 10, 10);
	hold(LOCK, HOLDER, 350, 350);	/* the end of a wait belongs to it */
	hold(LOCK, HOLDER, 100, 100);	/* its beginning does not */
	hold(LOCK, HOLDER_2, 410, 410);
	hold(LOCK, HOLDER_2, 460, 460); /* between two */
	settle();
	expect(WAITER, HOLDER, 333);
	expect(WAITER, HOLDER_2, 167);
	expect(WAITER, 0, 500);
}

/* A sample counts for each that waits then. */
Test(blame, several_wait)
{
	wait_for(LOCK, WAITER, 0, 100, 0);
	wait_for(LOCK, WAITER_2, 40, 90, 0);
	hold(LOCK, HOLDER, 20, 20);
	hold(LOCK, HOLDER_2, 50, 50);
	settle();
	expect(WAITER, HOLDER, 50);
	expect(WAITER, HOLDER_2, 50);
	expect(WAITER_2, HOLDER_2, 50);
}

/* What one held off the CPU is not shared out by samples of those who ran in the rest of the time. */
Test(blame, both)
{
	wait_for(LOCK, WAITER, 0, 100, 100);
	hold(LOCK, HOLDER, 0, 60);
	hold(LOCK, HOLDER_2, 70, 70);
	settle();
	expect(WAITER, HOLDER, 60);
	expect(WAITER, HOLDER_2, 40);
	cr_expect_eq(extra_of(WAITER, HOLDER), 60);
	cr_expect_eq(extra_of(WAITER, HOLDER_2), 40);
}

/*
 * Nobody is due more than the time that all are seen to have held it in: the rest of the time it may have been free,
 * and who waited had no CPU.
 */
Test(blame, worth_of_samples)
{
	blame.sample_ns = 10;
	wait_for(LOCK, WAITER, 0, 100, 10);
	wait_for(LOCK, WAITER_2, 0, 50, 0);
	wait_for(LOCK, WAITER_2, 100, 150, 0);
	hold(LOCK, HOLDER, 20, 20); /* for both */
	hold(LOCK, HOLDER, 70, 70);
	hold(LOCK, HOLDER_2, 90, 90);
	hold(OTHER_LOCK, HOLDER, 20, 20);
	wait_for(OTHER_LOCK, 3, 0, 10, 0); /* no sample: not to be shared out to others */
	wait_for(OTHER_LOCK, 4, 15, 21, 0);
	settle();
	expect(WAITER, 0, 100);
	expect(WAITER, HOLDER, 20);
	expect(WAITER, HOLDER_2, 10);
	expect(WAITER, BLAME_NOBODY, 70);
	cr_expect_eq(extra_of(WAITER, BLAME_NOBODY), 7);
	expect(WAITER_2, HOLDER, 10);
	expect(WAITER_2, BLAME_NOBODY, 90);
	expect(3, BLAME_NOBODY, 10);
	expect(4, HOLDER, 6);
}

/* Where it was held all the time, by chance one waiter has more samples than another. */
Test(blame, by_chance)
{
	blame.sample_ns = 10;
	wait_for(LOCK, WAITER, 0, 30, 0);
	wait_for(LOCK, WAITER_2, 30, 60, 0);
	for (uint64_t at = 5; at < 60; at += at < 25 ? 5 : 20)
		hold(LOCK, HOLDER, at, at);
	settle();
	expect(WAITER, HOLDER, 30);
	expect(WAITER_2, HOLDER, 30);
	/* ... but not more than all samples are worth. */
	wait_for(LOCK, WAITER, 0, 20, 0);
	wait_for(LOCK, WAITER_2, 30, 130, 0);
	for (uint64_t at = 5; at < 20; at += 5)
		hold(LOCK, HOLDER, at, at);
	hold(LOCK, HOLDER, 50, 50);
	settle();
	expect(WAITER, HOLDER, 20);
	cr_expect(time_of(WAITER_2, HOLDER) >= 19 && time_of(WAITER_2, HOLDER) <= 20);
	expect(WAITER_2, 0, 100);
}

/* Of one process that says so. */
Test(blame, two_at_a_time)
{
	wait_for(LOCK, WAITER, 0, 100, 0);
	hold(LOCK, HOLDER, 10, 80);
	hold(LOCK, HOLDER_2, 20, 70);
	hold(LOCK, HOLDER_2, 60, 90);
	settle();
	expect(WAITER, HOLDER, 70);
	expect(WAITER, HOLDER_2, 10);
	expect(WAITER, BLAME_NOBODY, 20);
}

/* What has been shared out is not shared out again. */
Test(blame, settled_twice)
{
	wait_for(LOCK, WAITER, 0, 100, 0);
	hold(LOCK, HOLDER, 50, 50);
	settle();
	expect(WAITER, HOLDER, 100);
	settle();
	cr_expect_eq(shares.len, 0);
	wait_for(LOCK, WAITER, 100, 150, 0);
	hold(LOCK, HOLDER_2, 120, 120);
	settle();
	expect(WAITER, HOLDER, 0);
	expect(WAITER, HOLDER_2, 50);
}

Test(blame, bounds_its_memory)
{
	for (uint64_t i = 0; i < 10000000 && !blame__is_full(&blame); i++)
		wait_for(LOCK, WAITER, i, i + 1, 0);
	cr_assert(blame__is_full(&blame));
	cr_expect_lt(blame.waits.len, 1000000);
	settle();
	cr_expect(!blame__is_full(&blame));
	cr_expect_eq(shares.len, 1);
}

/* Each waits for each, and nobody's time goes. */
Test(blame, of_more_pairs_than_are_kept)
{
	enum { MANY = 600 };
	uint64_t seen = 0;

	blame.sample_ns = 1;
	for (uint32_t i = 0; i < MANY; i++) {
		wait_for(LOCK, i, 100, 100 + MANY, 0);
		hold(LOCK, MANY + i, 200, 200);
	}
	settle();
	for (size_t i = 0; i < shares.len; i++)
		seen += shares.items[i].holder == BLAME_NOBODY ? 0 : shares.items[i].time_ns;
	cr_expect_eq(time_of(0, 0), MANY);
	expect(MANY - 1, BLAME_NOBODY, MANY);
	cr_expect(seen >= 200000 && seen < 300000, "%lu", seen);
	cr_expect_lt(blame.pairs.cap, 1000000);
}

/* Counted instant by instant, for random spans: overlaps to the nanosecond, sums to what was waited. */
Test(blame, agrees_with_every_instant)
{
	enum { END = 400, WAITERS = 3, HOLDERS = 3 };
	unsigned int seed = 11;

	for (int round = 0; round < 200; round++) {
		uint64_t due[WAITERS + 1][HOLDERS + 1] = {0}, waited[WAITERS + 1] = {0}, samples[WAITERS + 1] = {0};
		uint32_t holder[END] = {0}, sampled[END] = {0};

		for (uint64_t at = 0; at < END;) {
			uint64_t to = at + 1 + rand_r(&seed) % 40;
			uint32_t who = rand_r(&seed) % (HOLDERS + 1);

			to = to < END ? to : END;
			if (who)
				hold(LOCK, who, at, to);
			for (; at < to; at++)
				holder[at] = who;
		}
		for (uint64_t at = 1; at < END; at++) {
			if (holder[at] || rand_r(&seed) % 8)
				continue;
			sampled[at] = 1 + rand_r(&seed) % HOLDERS;
			hold(LOCK, sampled[at], at, at);
		}
		for (int i = 0; i < 30; i++) {
			uint64_t from = rand_r(&seed) % END, to = from + 1 + rand_r(&seed) % 60;
			uint32_t waiter = 1 + rand_r(&seed) % WAITERS;

			to = to < END - 1 ? to : END - 1;
			from = from < to ? from : to - 1;
			wait_for(LOCK, waiter, from, to, 0);
			waited[waiter] += to - from;
			for (uint64_t at = from; at < to; at++)
				due[waiter][holder[at]]++;
			/* As a wait with no time left has nothing to share out. */
			for (uint64_t at = from + 1, left = 0; at <= to; at++) {
				for (uint64_t k = from; k < to && !left; k++)
					left += !holder[k];
				samples[waiter] += left && sampled[at];
			}
		}
		settle();
		for (uint32_t waiter = 1; waiter <= WAITERS; waiter++) {
			uint64_t by_samples = 0;

			expect(waiter, 0, waited[waiter]);
			for (uint32_t who = 1; who <= HOLDERS; who++) {
				cr_assert_geq(time_of(waiter, who), due[waiter][who]);
				by_samples += time_of(waiter, who) - due[waiter][who];
			}
			cr_assert_eq(by_samples, samples[waiter] ? due[waiter][0] : 0);
		}
	}
}
