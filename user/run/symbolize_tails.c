/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See symbolize_parts.h. Stacks deeper than the kernel side walks: the rest of one is read and checked once
 * for all samples of a batch that hang from it (py/tail.h).
 */
#include "run/symbolize_parts.h"

#include "base/util.h"
#include "os/proc.h"

#include <string.h>

#define TAILS_NS   60000000ull /* CPU time for the tails of one batch */
#define PRIMED_MAX 64 /* threads looked at before the first sample */

static uint32_t tail_path(struct symbolizer *symbolizer, struct process *process,
			  const struct tail_reader *reader, enum tail_result result, uint32_t node)
{
	struct trie *trie = &symbolizer->profile->trie;
	uint32_t code_index, id;

	if (result == TAIL_TRUNCATED)
		node = trie__child(trie, node, symbolizer->truncated);
	for (size_t i = reader->frames.len; i-- > 0 && node != TRIE_FULL;) {
		id = symbolize_raw_frame(symbolizer, process, &reader->frames.items[i], &code_index);
		if (id != UINT32_MAX)
			node = trie__child(trie, node, id);
	}
	return node;
}

static void resolve_tail(struct symbolizer *symbolizer, struct tail_use *use)
{
	struct process *process = use->process;
	const struct pbp_sample *sample = use->sample;
	struct tail_reader *reader = process__tail_reader(process, sample->tstate);
	const uint64_t *known;
	uint32_t version;
	uint64_t key;

	use->result = TAIL_UNVERIFIED;
	/* Whether its callers in other interpreters are the same still, nobody has looked. */
	if (sample->flags & PBP_SAMPLE_NESTED)
		return;
	/* A batch of many different deep stacks must not keep the loop from its other duties. */
	if (symbolizer->tails.len && proc__own_cpu_ns() - symbolizer->batch_start_ns > TAILS_NS)
		return;
	if (!reader || !sample->link_frame || !process->attached)
		return;
	if (reader->batch != symbolizer->batch) {
		reader->batch = symbolizer->batch;
		reader->readable = !tail_reader__snapshot(reader, &process->target, sample->tstate);
	}
	if (!reader->readable)
		return;
	version = reader->witnesses.version;
	use->result = tail_reader__follow(reader, &process->target, sample, &use->expected);
	if (reader->witnesses.version != version)
		sampler__set_witnesses(symbolizer->sampler, process->pid, sample->tstate, &reader->witnesses);
	if (use->result == TAIL_UNVERIFIED)
		return;
	key = reader->hash ^ hmap_mix(use->root ^ (uint64_t)process->epoch << 32) ^
	      (use->result == TAIL_TRUNCATED);
	known = hmap__get(&symbolizer->tail_nodes, key);
	if (known) {
		use->node = *known;
		return;
	}
	code_cache__load(&process->codes, &process->target, reader->frames.items, reader->frames.len, true);
	use->node = tail_path(symbolizer, process, reader, use->result, use->root);
	if (use->node != TRIE_FULL)
		hmap__set(&symbolizer->tail_nodes, key, use->node);
}

static bool same_tail(const struct tail_use *a, const struct tail_use *b)
{
	const struct pbp_sample *x = a->sample, *y = b->sample;

	return a->process == b->process && x->tstate == y->tstate && x->link_frame == y->link_frame &&
	       x->tail_frame == y->tail_frame && x->witness_version == y->witness_version &&
	       !memcmp(x->witnesses, y->witnesses, sizeof(x->witnesses)) &&
	       a->expected.code == b->expected.code && a->expected.instr == b->expected.instr &&
	       a->expected.ident == b->expected.ident && a->root == b->root;
}

uint32_t symbolize_tail(struct symbolizer *symbolizer, const struct stack *stack,
			     const struct pbp_sample *sample, uint32_t root)
{
	struct tail_use use = {
		.process = stack->process, .sample = sample, .expected = stack->last, .root = root};
	const struct tail_use *found = NULL;

	if (stack->count == 1)
		use.expected.instr = sample->leaf_instr;
	for (size_t i = symbolizer->tails.len; i-- > 0 && !found;)
		if (same_tail(&symbolizer->tails.items[i], &use))
			found = &symbolizer->tails.items[i];
	if (!found) {
		resolve_tail(symbolizer, &use);
		vec__push(&symbolizer->tails, use);
		found = &use;
	}
	switch (found->result) {
	case TAIL_COMPLETE:
		symbolizer->counts.tails_completed++;
		return found->node;
	case TAIL_TRUNCATED:
		symbolizer->counts.truncated++;
		return found->node;
	case TAIL_UNVERIFIED:
		break;
	}
	symbolizer->counts.unverified++;
	return trie__child(&symbolizer->profile->trie, root, symbolizer->unverified);
}

void symbolizer__prime_tails(struct symbolizer *symbolizer, struct process *process)
{
	struct py_thread threads[256];
	int count = py_target__threads(&process->target, threads, ARRAY_SIZE(threads));

	/* Oldest first. */
	for (int i = count - 1, used = 0; i >= 0 && used < PRIMED_MAX; i--) {
		struct tail_reader *reader = process__tail_reader(process, threads[i].tstate);

		used++;
		if (!reader)
			continue;
		if (tail_reader__prime(reader, &process->target, threads[i].tstate,
				       sampler__max_frames(symbolizer->sampler)))
			sampler__set_witnesses(symbolizer->sampler, process->pid, threads[i].tstate,
					       &reader->witnesses);
		else
			process__drop_tail_reader(process, threads[i].tstate);
	}
}
