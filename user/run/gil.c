/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See gil.h. Time on the CPU is known of each thread, too, where its switches are told of: it is what lies
 * between two times off it. So a sample weighs as much of it as there are samples of its thread; what all
 * come to is the processes' CPU time by the kernel's clock (agg/estimate.h).
 */
#include "run/gil.h"

#include "base/util.h"
#include "os/pidns.h"
#include "os/wait.h"
#include "run/process.h"
#include "run/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 16384 /* then half of them make room */
#define NODES_MAX   (1u << 19) /* in the cache, or with samples that have no weight yet */
#define OTHERS	    UINT32_MAX /* index of those beyond THREADS_MAX */
#define SAMPLES_FEW 8	       /* of a thread: its time is left to chance */

static uint32_t add_frame(struct gil *gil, const char *text, bool wait)
{
	struct frame frame = {.kind = FRAME_SPECIAL,
			      .function = strtab__add(gil->profile->strings, text, strlen(text)),
			      .wait = wait};
	uint32_t id = frame_table__add(&gil->profile->frames, &frame);

	if (id != UINT32_MAX)
		return id;
	gil->err = -ENOMEM; /* which ends the run; until then it is one that there is */
	return gil->waits_frame;
}

int gil__init(struct gil *gil, struct profile *profile, struct estimate *estimate, uint32_t pruned)
{
	*gil = (struct gil){.profile = profile, .estimate = estimate, .pruned = pruned};
	gil->waits_frame = add_frame(gil, "[waits for the GIL]", true);
	gil->unseen_frame = add_frame(gil, "[holder not seen]", false);
	return gil->err;
}

/* --- which it is --- */

/* The GIL that this thread holds, if it is attached. */
static uint64_t gil_held(struct process *process, const struct pbp_sample *sample)
{
	return sample->flags & PBP_SAMPLE_ATTACHED ? process__gil_of(process, sample->tstate, sample->time_ns)
						   : 0;
}

enum gil_part gil__part(struct process *process, const struct pbp_sample *sample,
			const struct sample_share *share)
{
	return share->lock ? GIL_WAITS : gil_held(process, sample) ? GIL_HOLDS : GIL_NEITHER;
}

/* GILs of two processes may have one address. */
static uint64_t lock_of(const struct process *process, uint64_t gil)
{
	return gil ^ (uint64_t)process->serial << 47;
}

/* --- threads --- */

static uint64_t key_of(const struct gil_thread *thread)
{
	return (uint64_t)thread->serial << 32 | (uint32_t)thread->tid;
}

static uint32_t index_of(struct gil *gil, const struct process *process, const struct pbp_sample *sample)
{
	struct gil_thread thread = {.pid = process->pid, .tid = sample->tid, .serial = process->serial};
	uint64_t key = key_of(&thread);
	const uint64_t *known = hmap__get(&gil->thread_index, key);

	if (known)
		return *known;
	if (gil->threads.len >= THREADS_MAX)
		return OTHERS;
	thread.inner_tid = process->inner_pid ? pidns__inner_tid(process->pid, sample->tid) : 0;
	if (vec__push(&gil->threads, thread) || hmap__set(&gil->thread_index, key, gil->threads.len - 1))
		return OTHERS;
	return gil->threads.len - 1;
}

static struct gil_thread *thread_at(struct gil *gil, uint32_t index)
{
	return index == OTHERS ? &gil->others : &gil->threads.items[index];
}

static struct gil_thread *thread_of(struct gil *gil, const struct process *process,
				    const struct pbp_sample *sample)
{
	struct gil_thread *thread = thread_at(gil, index_of(gil, process, sample));

	thread->seen_ns = max_u64(thread->seen_ns, sample->time_ns);
	if (thread != &gil->others && sample->comm[0])
		memcpy(thread->comm, sample->comm, sizeof(thread->comm));
	return thread;
}

void gil__note_off(struct gil *gil, struct process *process, const struct pbp_sample *sample, uint64_t out_ns,
		   uint64_t in_ns, uint64_t extra_ns)
{
	struct gil_thread *thread = thread_of(gil, process, sample);

	if (thread->known_ns && out_ns > thread->known_ns)
		thread->ran_ns += out_ns - thread->known_ns;
	thread->ran_ns -= extra_ns;
	thread->known_ns = max_u64(thread->known_ns, in_ns);
}

/* On the CPU; `node`: where it held a GIL, or ESTIMATE_HIDDEN or _LEFT_OUT. */
static void count_sample(struct gil *gil, const struct process *process, const struct pbp_sample *sample,
			 uint32_t node)
{
	uint32_t index = index_of(gil, process, sample);
	struct gil_thread *thread = thread_at(gil, index);
	uint64_t key = (uint64_t)index << 32 | node, *known = hmap__get(&gil->on_cpu, key);

	thread->samples++;
	thread->seen_ns = max_u64(thread->seen_ns, sample->time_ns);
	thread->sample_ns = max_u64(thread->sample_ns, sample->time_ns);
	thread->known_ns = thread->known_ns ?: sample->time_ns;
	if (known)
		++*known;
	else if (hmap__set(&gil->on_cpu, key, 1))
		gil->err = -ENOMEM;
}

void gil__hide(struct gil *gil, struct process *process, const struct pbp_sample *sample, uint32_t as)
{
	count_sample(gil, process, sample, as);
}

void gil__name(struct gil *gil, const struct process *process, const struct pbp_sample *sample, uint32_t name)
{
	thread_of(gil, process, sample)->name = name;
}

/* How long it was on the CPU, as far as that is known; else what its samples stand for. */
static uint64_t time_on_cpu(const struct gil *gil, const struct gil_thread *thread)
{
	int64_t ns = thread->ran_ns;

	/* It is on the CPU since. */
	if (thread->sample_ns > thread->known_ns)
		ns += thread->sample_ns - thread->known_ns;
	if (thread == &gil->others || thread->samples < SAMPLES_FEW || ns <= 0)
		return thread->samples * (gil->profile->period_ns ?: 1);
	return ns;
}

static bool is_shown(uint32_t node)
{
	return node != ESTIMATE_HIDDEN && node != ESTIMATE_LEFT_OUT;
}

/* What one is worth, on average: more than a period, if ticks were lost. */
static uint64_t weigh_samples(struct gil *gil)
{
	uint64_t period_ns = gil->profile->period_ns ?: 1, samples = 0, weights = 0;
	const struct hmap_slot *slot;

	for (size_t i = 0; (slot = hmap__next(&gil->on_cpu, &i));) {
		struct gil_thread *thread = thread_at(gil, slot->key >> 32);
		uint32_t node = (uint32_t)slot->key;
		uint64_t weight = part_of(time_on_cpu(gil, thread), slot->value, thread->samples);

		estimate__add(gil->estimate, node, SYMBOLIZE_CPU_KIND, weight);
		if (is_shown(node) && gil->symbolizer)
			symbolizer__give_more(gil->symbolizer, thread, gil->last_ns, node, 0, weight,
					      SYMBOLIZE_CPU_KIND);
		thread->on_weight += is_shown(node) ? weight : 0;
		samples += slot->value;
		weights += weight;
	}
	hmap__clear(&gil->on_cpu);
	for (size_t i = 0; i <= gil->threads.len; i++) {
		struct gil_thread *thread = thread_at(gil, i < gil->threads.len ? i : OTHERS);

		thread->known_ns = thread->known_ns ? max_u64(thread->known_ns, thread->sample_ns) : 0;
		thread->samples = 0;
		thread->ran_ns = 0;
	}
	return samples ? min_u64(max_u64(weights / samples, period_ns), 2 * period_ns) : period_ns;
}

/* --- holders --- */

/* "[holds the GIL: sleep]", or below waits "[holder: sleep]". */
static uint32_t state_frame(struct gil *gil, const struct sample_share *share, bool below_wait)
{
	char reason[64], text[96];

	wait_text(share->reason, share->syscall, reason, sizeof(reason));
	if (share->reason == WAIT_NONE && !below_wait)
		snprintf(text, sizeof(text), "[holds the GIL]");
	else
		snprintf(text, sizeof(text), "[%s: %s", below_wait ? "holder" : "holds the GIL", reason + 1);
	return add_frame(gil, text, !below_wait);
}

static uint32_t hold_frame(struct gil *gil, const struct sample_share *share)
{
	uint64_t key = (uint64_t)share->reason << 32 | (uint32_t)share->syscall;
	const uint64_t *known = hmap__get(&gil->frames, key);
	uint32_t frame;

	if (known)
		return *known;
	frame = state_frame(gil, share, false);
	if (hmap__set(&gil->frames, key, frame) ||
	    hmap__set(&gil->holder_frames, frame, state_frame(gil, share, true)))
		gil->err = -ENOMEM;
	return frame;
}

/* For who waits for it. The node that it stands at. */
static uint32_t blame_holder(struct gil *gil, struct process *process, uint32_t node,
			     const struct pbp_sample *sample, const struct sample_share *share)
{
	uint32_t leaf = trie__child(&gil->profile->trie, node, hold_frame(gil, share));
	struct blame_hold hold = {.lock = lock_of(process, gil_held(process, sample)),
				  .from_ns = sample->time_ns,
				  .to_ns = sample->time_ns};

	hold.holder = leaf == TRIE_FULL ? gil->pruned : leaf;
	if (share->reason != WAIT_NONE)
		hold.to_ns += share->time_ns;
	gil->err = gil->err ?: blame__hold(&gil->blame, &hold);
	return hold.holder;
}

void gil__note_holder(struct gil *gil, struct process *process, uint32_t node,
		      const struct pbp_sample *sample, const struct sample_share *share)
{
	gil->last_ns = max_u64(gil->last_ns, sample->time_ns);
	blame_holder(gil, process, node, sample, share);
}

static uint32_t add_hold(struct gil *gil, struct process *process, uint32_t node,
			 const struct pbp_sample *sample, struct sample_share *share)
{
	struct gil_thread *thread = thread_of(gil, process, sample);
	uint32_t leaf = blame_holder(gil, process, node, sample, share);

	trie__add(&gil->profile->trie, leaf, share->time_ns);
	if (share->reason == WAIT_NONE) {
		thread->on_weight += share->time_ns;
		if (share->extra_ns)
			count_sample(gil, process, sample, leaf);
		share->extra_ns = 0;
	} else {
		if (share->extra_ns)
			estimate__add(gil->estimate, leaf, share->kind, share->extra_ns);
		thread->off_ns += share->time_ns;
		thread->off_extra_ns += share->extra_ns;
	}
	return leaf;
}

/* --- waits --- */

static uint32_t waiter_of(struct gil *gil, const struct process *process, const struct pbp_sample *sample,
			  uint32_t node)
{
	bool told_apart = gil->symbolizer && gil->symbolizer->sink;
	struct gil_waiter waiter = {node, told_apart ? index_of(gil, process, sample) : OTHERS};
	uint64_t key = (uint64_t)waiter.thread << 32 | node;
	const uint64_t *known = hmap__get(&gil->waiter_index, key);

	if (known)
		return *known;
	if (vec__push(&gil->waiters, waiter) || hmap__set(&gil->waiter_index, key, gil->waiters.len - 1))
		gil->err = -ENOMEM;
	return gil->waiters.len - 1;
}

static uint32_t add_wait(struct gil *gil, struct process *process, uint32_t node,
			 const struct pbp_sample *sample, struct sample_share *share)
{
	struct gil_thread *thread = thread_of(gil, process, sample);
	struct blame_wait wait = {.lock = lock_of(process, share->lock),
				  .from_ns = sample->time_ns,
				  .to_ns = sample->time_ns + share->time_ns,
				  .extra_ns = share->extra_ns,
				  .kind = share->kind,
				  .waiter = waiter_of(gil, process, sample, node)};

	thread->waited_ns += share->time_ns;
	thread->waited_extra_ns += share->extra_ns;
	gil->err = gil->err ?: blame__wait(&gil->blame, &wait);
	share->time_ns = share->extra_ns = 0;
	return node;
}

uint32_t gil__add(struct gil *gil, struct process *process, uint32_t node, const struct pbp_sample *sample,
		  struct sample_share *share)
{
	gil->last_ns = max_u64(gil->last_ns, sample->time_ns);
	return share->lock ? add_wait(gil, process, node, sample, share)
			   : add_hold(gil, process, node, sample, share);
}

bool gil__is_full(const struct gil *gil)
{
	return blame__is_full(&gil->blame) || gil->on_cpu.len >= NODES_MAX || gil->threads.len >= THREADS_MAX;
}

/* The holder's stack below the waits; which process or container it is in is known there. */
static uint32_t copy_path(struct gil *gil, uint32_t node, uint32_t holder)
{
	struct trie *trie = &gil->profile->trie;
	VEC(uint32_t) path = {0};

	for (uint32_t id = holder; id != TRIE_ROOT; id = trie->nodes.items[id].parent) {
		uint32_t frame = trie->nodes.items[id].frame;
		enum frame_kind kind = frame_table__get(&gil->profile->frames, frame)->kind;
		const uint64_t *state = id == holder ? hmap__get(&gil->holder_frames, frame) : NULL;

		if (kind == FRAME_PROCESS || kind == FRAME_CONTAINER)
			continue;
		if (vec__push(&path, state ? (uint32_t)*state : frame)) {
			gil->err = -ENOMEM;
			break;
		}
	}
	while (path.len && node != TRIE_FULL)
		node = trie__child(trie, node, path.items[--path.len]);
	vec__free(&path);
	return node;
}

static uint32_t wait_node(struct gil *gil, uint32_t waiter, uint32_t holder)
{
	struct trie *trie = &gil->profile->trie;
	uint64_t key = (uint64_t)waiter << 32 | holder;
	const uint64_t *known = hmap__get(&gil->nodes, key);
	uint32_t node;

	if (known)
		return *known;
	node = waiter == gil->pruned ? TRIE_FULL : trie__child(trie, waiter, gil->waits_frame);
	node = holder == BLAME_NOBODY ? trie__child(trie, node, gil->unseen_frame)
				      : copy_path(gil, node, holder);
	node = node == TRIE_FULL ? gil->pruned : node;
	if (gil->nodes.len >= NODES_MAX)
		hmap__clear(&gil->nodes);
	hmap__set(&gil->nodes, key, node); /* a cache: it may fail */
	return node;
}

static void take_share(void *context, const struct blame_share *share)
{
	struct gil *gil = context;
	const struct gil_waiter *waiter = &gil->waiters.items[share->waiter];
	uint32_t node;

	if (!share->time_ns && !share->extra_ns)
		return;
	node = wait_node(gil, waiter->node, share->holder);
	trie__add(&gil->profile->trie, node, share->time_ns);
	if (share->extra_ns)
		estimate__add(gil->estimate, node, share->kind, share->extra_ns);
	if (gil->symbolizer)
		symbolizer__give_more(gil->symbolizer, thread_at(gil, waiter->thread), gil->last_ns, node,
				      share->time_ns, share->extra_ns, share->kind);
}

static void add_sums(struct gil_thread *sum, const struct gil_thread *thread)
{
	sum->on_weight += thread->on_weight;
	sum->off_ns += thread->off_ns;
	sum->off_extra_ns += thread->off_extra_ns;
	sum->waited_ns += thread->waited_ns;
	sum->waited_extra_ns += thread->waited_extra_ns;
}

static int last_seen_first(const void *left, const void *right)
{
	const struct gil_thread *a = left, *b = right;

	return (b->seen_ns > a->seen_ns) - (b->seen_ns < a->seen_ns);
}

/* Threads that have not been seen for longest make room for others. Nothing has their indexes now. */
static void make_room(struct gil *gil)
{
	if (gil->threads.len < THREADS_MAX)
		return;
	qsort(gil->threads.items, gil->threads.len, sizeof(struct gil_thread), last_seen_first);
	while (gil->threads.len > THREADS_MAX / 2)
		add_sums(&gil->others, &gil->threads.items[--gil->threads.len]);
	hmap__clear(&gil->thread_index);
	for (size_t i = 0; i < gil->threads.len; i++)
		if (hmap__set(&gil->thread_index, key_of(&gil->threads.items[i]), i))
			gil->err = -ENOMEM;
}

int gil__settle(struct gil *gil)
{
	int err;

	gil->blame.sample_ns = weigh_samples(gil);
	err = blame__settle(&gil->blame, take_share, gil);
	gil->waiters.len = 0;
	hmap__clear(&gil->waiter_index);
	make_room(gil);
	return gil->err ?: err;
}

/* --- what it comes to --- */

void gil__sums(const struct gil *gil, struct gil_sums *out)
{
	uint32_t *waits = profile__wait_nodes(gil->profile);
	const struct trie_node *nodes = gil->profile->trie.nodes.items;
	const uint64_t *on_cpu = hmap__get(&gil->frames, (uint64_t)WAIT_NONE << 32);

	*out = (struct gil_sums){0};
	for (size_t id = 1; waits && id < gil->profile->trie.nodes.len; id++) {
		uint32_t frame = waits[id] ? nodes[waits[id]].frame : UINT32_MAX;

		if (frame == UINT32_MAX)
			continue;
		*(frame == gil->waits_frame		  ? &out->waited_ns
		  : on_cpu && frame == *on_cpu		  ? &out->on_ns
		  : hmap__get(&gil->holder_frames, frame) ? &out->off_ns
							  : &out->paused_ns) += nodes[id].self;
		out->unseen_ns += nodes[id].frame == gil->unseen_frame ? nodes[id].self : 0;
	}
	free(waits);
}

static struct gil_thread sum_threads(const struct gil *gil)
{
	struct gil_thread sum = gil->others;

	for (size_t i = 0; i < gil->threads.len; i++)
		add_sums(&sum, &gil->threads.items[i]);
	return sum;
}

/* What estimates have come to when they were settled, each thread has by its part of them. */
static struct gil_sums share_of(const struct gil_thread *thread, const struct gil_thread *sum,
				const struct gil_sums *all)
{
	uint64_t off_extra_ns = all->off_ns - min_u64(all->off_ns, sum->off_ns);
	uint64_t waited_extra_ns = all->waited_ns - min_u64(all->waited_ns, sum->waited_ns);

	return (struct gil_sums){
		.on_ns = part_of(all->on_ns, thread->on_weight, sum->on_weight),
		.off_ns = thread->off_ns + part_of(off_extra_ns, thread->off_extra_ns, sum->off_extra_ns),
		.waited_ns = thread->waited_ns +
			     part_of(waited_extra_ns, thread->waited_extra_ns, sum->waited_extra_ns)};
}

static uint64_t time_of(const struct gil_row *row)
{
	return row->sums.on_ns + row->sums.off_ns + row->sums.waited_ns;
}

static int longest_first(const void *left, const void *right)
{
	const struct gil_row *a = left, *b = right;

	return (time_of(b) > time_of(a)) - (time_of(b) < time_of(a))
		       ?: (a->thread->tid > b->thread->tid) - (a->thread->tid < b->thread->tid);
}

int gil__rows(const struct gil *gil, const struct gil_sums *all, struct gil_rows *out)
{
	struct gil_thread sum = sum_threads(gil);
	struct gil_row others = {.sums = share_of(&gil->others, &sum, all)};
	int err = vec__reserve(&out->items, gil->threads.len + 1);

	for (size_t i = 0; i < gil->threads.len && !err; i++) {
		struct gil_row row = {&gil->threads.items[i], share_of(&gil->threads.items[i], &sum, all)};

		if (time_of(&row))
			out->items.items[out->items.len++] = row;
	}
	if (!err && out->items.len)
		qsort(out->items.items, out->items.len, sizeof(struct gil_row), longest_first);
	if (!err && time_of(&others))
		out->items.items[out->items.len++] = others;
	return err;
}

void gil__free(struct gil *gil)
{
	blame__free(&gil->blame);
	hmap__free(&gil->frames);
	hmap__free(&gil->holder_frames);
	hmap__free(&gil->nodes);
	hmap__free(&gil->waiter_index);
	vec__free(&gil->waiters);
	hmap__free(&gil->on_cpu);
	hmap__free(&gil->thread_index);
	vec__free(&gil->threads);
}
