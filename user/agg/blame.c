/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See blame.h. All lists are sorted by lock and time, so that what concerns a wait lies in one piece of each.
 */
#include "agg/blame.h"

#include "base/util.h"

#include <string.h>

#define PENDING_MAX 131072
#define PAIRS_MAX   262144
#define HALVINGS    50

int blame__wait(struct blame *blame, const struct blame_wait *wait)
{
	return wait->from_ns < wait->to_ns ? vec__push(&blame->waits, *wait) : 0;
}

int blame__hold(struct blame *blame, const struct blame_hold *hold)
{
	return hold->from_ns < hold->to_ns ? vec__push(&blame->holds, *hold)
					   : vec__push(&blame->samples, *hold);
}

bool blame__is_full(const struct blame *blame)
{
	return blame->waits.len + blame->holds.len + blame->samples.len >= PENDING_MAX;
}

/* --- what falls into a wait --- */

static int compare_holds(const void *left, const void *right)
{
	const struct blame_hold *a = left, *b = right;

	return compare_u64(a->lock, b->lock) ?: compare_u64(a->from_ns, b->from_ns)
	       ?: compare_u64(a->to_ns, b->to_ns) ?: compare_u64(a->holder, b->holder);
}

/* Two at a time cannot be: where it is said, the first one had it. */
static size_t cut_overlaps(struct blame_hold *holds, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct blame_hold hold = holds[i];

		if (kept && holds[kept - 1].lock == hold.lock)
			hold.from_ns = max_u64(hold.from_ns, holds[kept - 1].to_ns);
		if (hold.from_ns < hold.to_ns)
			holds[kept++] = hold;
	}
	return kept;
}

/* The first of this lock that ends after the time; those of one lock do not overlap. */
static size_t find_first(const struct blame_hold *holds, size_t count, uint64_t lock, uint64_t after_ns)
{
	size_t first = 0, end = count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (holds[middle].lock < lock ||
		    (holds[middle].lock == lock && holds[middle].to_ns <= after_ns))
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static uint64_t key_of(uint64_t lock, uint32_t waiter, uint32_t other)
{
	return hmap_mix(hmap_mix(lock ^ hmap_seed()) ^ ((uint64_t)waiter << 32 | other));
}

static int add_due(struct blame *blame, const struct blame_wait *wait, uint64_t time_ns, uint64_t extra_ns)
{
	uint64_t key = key_of(wait->lock, wait->waiter, wait->kind);
	const uint64_t *known = hmap__get(&blame->due_index, key);
	struct blame_due due = {.lock = wait->lock, .share = {.waiter = wait->waiter, .kind = wait->kind}};
	struct blame_share *share;
	int err = 0;

	if (!known)
		err = vec__push(&blame->due, due) ?: hmap__set(&blame->due_index, key, blame->due.len - 1);
	if (err)
		return err;
	share = &blame->due.items[*hmap__get(&blame->due_index, key)].share;
	share->time_ns += time_ns;
	share->extra_ns += extra_ns;
	return 0;
}

/* Of more pairs than are kept it is not known who the holder was. */
static int add_sample(struct blame *blame, uint64_t lock, uint32_t waiter, uint32_t holder)
{
	uint64_t key = key_of(lock, waiter, holder), *known = hmap__get(&blame->pair_index, key);
	struct blame_pair pair = {.lock = lock, .waiter = waiter, .holder = holder, .samples = 1};

	if (known)
		blame->pairs.items[*known].samples++;
	if (known || blame->pairs.len >= PAIRS_MAX)
		return 0;
	return vec__push(&blame->pairs, pair) ?: hmap__set(&blame->pair_index, key, blame->pairs.len - 1);
}

static int join_wait(struct blame *blame, const struct blame_wait *wait, blame_fn take, void *context)
{
	uint64_t whole_ns = wait->to_ns - wait->from_ns, left_ns = whole_ns, left_extra_ns = wait->extra_ns;
	size_t i = find_first(blame->holds.items, blame->holds.len, wait->lock, wait->from_ns);
	int err = 0;

	for (; i < blame->holds.len; i++) {
		const struct blame_hold *hold = &blame->holds.items[i];
		struct blame_share share = {
			.waiter = wait->waiter, .holder = hold->holder, .kind = wait->kind};

		if (hold->lock != wait->lock || hold->from_ns >= wait->to_ns)
			break;
		share.time_ns = min_u64(hold->to_ns, wait->to_ns) - max_u64(hold->from_ns, wait->from_ns);
		share.extra_ns = part_of(wait->extra_ns, share.time_ns, whole_ns);
		left_ns -= share.time_ns;
		left_extra_ns -= share.extra_ns;
		take(context, &share);
	}
	if (left_ns || left_extra_ns)
		err = add_due(blame, wait, left_ns, left_extra_ns);
	i = find_first(blame->samples.items, blame->samples.len, wait->lock, wait->from_ns);
	for (; i < blame->samples.len && left_ns && !err; i++) {
		const struct blame_hold *sample = &blame->samples.items[i];

		if (sample->lock != wait->lock || sample->from_ns > wait->to_ns)
			break;
		err = add_sample(blame, wait->lock, wait->waiter, sample->holder);
	}
	return err;
}

static int join(struct blame *blame, blame_fn take, void *context)
{
	int err = 0;

	if (blame->holds.len)
		qsort(blame->holds.items, blame->holds.len, sizeof(struct blame_hold), compare_holds);
	if (blame->samples.len)
		qsort(blame->samples.items, blame->samples.len, sizeof(struct blame_hold), compare_holds);
	blame->holds.len = cut_overlaps(blame->holds.items, blame->holds.len);
	for (size_t i = 0; i < blame->waits.len && !err; i++)
		err = join_wait(blame, &blame->waits.items[i], take, context);
	blame->waits.len = blame->holds.len = blame->samples.len = 0;
	return err;
}

/* --- what is left of waits --- */

static int compare_due(const void *left, const void *right)
{
	const struct blame_due *a = left, *b = right;

	return compare_u64(a->lock, b->lock) ?: compare_u64(a->share.waiter, b->share.waiter)
	       ?: compare_u64(a->share.kind, b->share.kind);
}

static int compare_pairs(const void *left, const void *right)
{
	const struct blame_pair *a = left, *b = right;

	return compare_u64(a->lock, b->lock) ?: compare_u64(a->waiter, b->waiter)
	       ?: compare_u64(a->holder, b->holder);
}

/* What is left of the waits of one waiter for one lock, and the samples that fell into them. */
struct claim {
	uint64_t lock;
	const struct blame_due *due; /* by kinds */
	size_t due_count;
	const struct blame_pair *pairs;
	size_t pair_count;
	uint64_t due_ns, samples;
};
struct claims {
	VEC(struct claim) items;
};

static bool is_same(const struct blame_due *a, uint64_t lock, uint32_t waiter)
{
	return a->lock == lock && a->share.waiter == waiter;
}

/* Both lists are sorted alike, so that each is gone through once. */
static int make_claims(const struct blame *blame, struct claims *claims)
{
	const struct blame_due *due = blame->due.items, *due_end = due + blame->due.len;
	const struct blame_pair *pair = blame->pairs.items, *pair_end = pair + blame->pairs.len;
	int err = 0;

	while (due < due_end && !err) {
		struct claim claim = {.lock = due->lock, .due = due};
		const struct blame_pair wanted = {.lock = due->lock, .waiter = due->share.waiter};

		for (; due < due_end && is_same(due, wanted.lock, wanted.waiter); due++) {
			claim.due_ns += due->share.time_ns;
			claim.due_count++;
		}
		while (pair < pair_end && compare_pairs(pair, &wanted) < 0)
			pair++;
		claim.pairs = pair;
		for (; pair < pair_end && is_same(claim.due, pair->lock, pair->waiter); pair++) {
			claim.samples += pair->samples;
			claim.pair_count++;
		}
		err = vec__push(&claims->items, claim);
	}
	return err;
}

static uint64_t seen_ns(const struct claim *claim, double sample_ns)
{
	double worth = claim->samples * sample_ns;

	return worth < claim->due_ns ? (uint64_t)worth : claim->due_ns;
}

static uint64_t all_seen_ns(const struct claim *claims, size_t count, double sample_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += seen_ns(&claims[i], sample_ns);
	return sum;
}

/*
 * What a sample is worth to the waiters for one lock. By chance some have more samples than they have waited,
 * and others less: what is too much for the first is the others'.
 */
static double worth_of_sample(const struct claim *claims, size_t count, uint64_t sample_ns)
{
	uint64_t due_ns = 0, samples = 0, want_ns;
	double low = sample_ns, high = sample_ns;

	for (size_t i = 0; i < count; i++) {
		due_ns += claims[i].samples ? claims[i].due_ns : 0;
		samples += claims[i].samples;
		if (claims[i].samples && claims[i].due_ns > high * claims[i].samples)
			high = (double)claims[i].due_ns / claims[i].samples;
	}
	want_ns = min_u64(due_ns, samples * sample_ns);
	if (all_seen_ns(claims, count, low) >= want_ns)
		return low;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (all_seen_ns(claims, count, middle) < want_ns)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* To the last nanosecond: each holder gets what all up to it are due, less what those before it got. */
static void share_out(const struct claim *claim, const struct blame_share *due, uint64_t seen_ns,
		      blame_fn take, void *context)
{
	uint64_t due_ns = part_of(due->time_ns, seen_ns, claim->due_ns);
	uint64_t due_extra_ns = part_of(due->extra_ns, seen_ns, claim->due_ns);
	uint64_t so_far = 0, time_ns = 0, extra_ns = 0;
	struct blame_share share = *due;

	for (size_t i = 0; i < claim->pair_count; i++) {
		so_far += claim->pairs[i].samples;
		share.holder = claim->pairs[i].holder;
		share.time_ns = part_of(due_ns, so_far, claim->samples) - time_ns;
		share.extra_ns = part_of(due_extra_ns, so_far, claim->samples) - extra_ns;
		time_ns += share.time_ns;
		extra_ns += share.extra_ns;
		take(context, &share);
	}
	share.holder = BLAME_NOBODY;
	share.time_ns = due->time_ns - time_ns;
	share.extra_ns = due->extra_ns - extra_ns;
	if (share.time_ns || share.extra_ns)
		take(context, &share);
}

/* All that wait for one lock. */
static void settle_lock(const struct blame *blame, const struct claim *claims, size_t count, blame_fn take,
			void *context)
{
	double sample_ns = worth_of_sample(claims, count, blame->sample_ns);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < claims[i].due_count; k++)
			share_out(&claims[i], &claims[i].due[k].share, seen_ns(&claims[i], sample_ns), take,
				  context);
}

int blame__settle(struct blame *blame, blame_fn take, void *context)
{
	int err = join(blame, take, context);
	struct claims claims = {0};

	if (blame->due.len)
		qsort(blame->due.items, blame->due.len, sizeof(struct blame_due), compare_due);
	if (blame->pairs.len)
		qsort(blame->pairs.items, blame->pairs.len, sizeof(struct blame_pair), compare_pairs);
	err = make_claims(blame, &claims) ?: err;
	for (size_t first = 0, end; first < claims.items.len; first = end) {
		for (end = first + 1; end < claims.items.len &&
				      claims.items.items[end].lock == claims.items.items[first].lock;)
			end++;
		settle_lock(blame, claims.items.items + first, end - first, take, context);
	}
	vec__free(&claims.items);
	blame->due.len = blame->pairs.len = 0;
	hmap__clear(&blame->due_index);
	hmap__clear(&blame->pair_index);
	return err;
}

void blame__free(struct blame *blame)
{
	vec__free(&blame->waits);
	vec__free(&blame->holds);
	vec__free(&blame->samples);
	vec__free(&blame->due);
	vec__free(&blame->pairs);
	hmap__free(&blame->due_index);
	hmap__free(&blame->pair_index);
}
