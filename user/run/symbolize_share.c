/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See symbolize_parts.h. What a sample adds to the node of its stack: its time, below what was waited for;
 * what it stands for besides, which is settled later; or nothing, if it was not asked for, or is a wait for
 * work and these are left out.
 */
#include "run/symbolize_parts.h"

#include "run/gil.h"
#include "run/idle.h"

#include <string.h>

bool symbolize_leave_out(struct symbolizer *symbolizer, struct process *process,
			 const struct pbp_sample *sample, const struct named_thread *thread,
			 const struct sample_share *share)
{
	struct symbolize_counts *counts = &symbolizer->counts;
	bool of_thread = thread && !thread->wanted;
	bool no_exception =
		symbolizer->only_exceptions && !(sample->flags & (PBP_SAMPLE_HANDLING | PBP_SAMPLE_RAISING));

	if (!of_thread && !no_exception)
		return false;
	if (!share->counted) {
		counts->left_out_threads += of_thread;
		counts->left_out_exceptions += !of_thread;
		counts->left_out_waits += share->reason != WAIT_NONE;
	}
	counts->left_out_ns += share->time_ns;
	if (symbolizer->gil && share->reason == WAIT_NONE && share->extra_ns)
		gil__hide(symbolizer->gil, process, sample, ESTIMATE_LEFT_OUT);
	else if (share->extra_ns)
		estimate__add(&symbolizer->estimate, ESTIMATE_LEFT_OUT, share->kind, share->extra_ns);
	return true;
}

static enum idle idle_of(const struct symbolizer *symbolizer, const struct stack *stack)
{
	const struct frame_table *frames = &symbolizer->profile->frames;
	struct idle_frame innermost[IDLE_FRAMES];
	size_t count = 0;

	if (stack->leaf_code != PY_CODE_NONE) {
		const struct py_code *code = &stack->process->codes.codes.items[stack->leaf_code];

		innermost[count++] = (struct idle_frame){code->function, code->file};
	}
	for (uint32_t i = stack->path_len; i-- > 0 && count < IDLE_FRAMES;) {
		const struct frame *frame = frame_table__get(frames, stack->path[i]);

		innermost[count++] = (struct idle_frame){frame->function, frame->file};
	}
	return idle__of(symbolizer->profile->strings, innermost, count);
}

static bool is_hidden(const struct symbolizer *symbolizer, struct process *process, struct stack *stack,
		      const struct pbp_sample *sample, const struct sample_share *share)
{
	if (symbolizer->gil)
		return gil__part(process, sample, share) == GIL_NEITHER && share->reason != WAIT_WORLD;
	if (!symbolizer->hide_idle || !stack || share->reason == WAIT_NONE)
		return false;
	if (!stack->idle_known) {
		stack->idle = idle_of(symbolizer, stack);
		stack->idle_known = !stack->unreadable;
	}
	return idle__is(stack->idle, share->reason);
}

bool symbolize_hide(struct symbolizer *symbolizer, struct process *process, struct stack *stack,
		    const struct pbp_sample *sample, const struct sample_share *share)
{
	if (!is_hidden(symbolizer, process, stack, sample, share))
		return false;
	symbolizer->counts.hidden += share->reason == WAIT_NONE;
	symbolizer->counts.hidden_ns += share->time_ns;
	if (symbolizer->gil && share->reason == WAIT_NONE && share->extra_ns)
		gil__hide(symbolizer->gil, process, sample, ESTIMATE_HIDDEN);
	else if (share->extra_ns)
		estimate__add(&symbolizer->estimate, ESTIMATE_HIDDEN, share->kind, share->extra_ns);
	return true;
}

static uint32_t wait_frame(struct symbolizer *symbolizer, const struct sample_share *share)
{
	uint64_t key = (uint64_t)share->reason << 32 | (uint32_t)share->syscall;
	const uint64_t *known = hmap__get(&symbolizer->wait_frames, key);
	struct frame frame = {.kind = FRAME_SPECIAL, .wait = true};
	char text[64];
	uint32_t id;

	if (known)
		return *known;
	wait_text(share->reason, share->syscall, text, sizeof(text));
	frame.function = strtab__add(symbolizer->profile->strings, text, strlen(text));
	id = frame_table__add(&symbolizer->profile->frames, &frame);
	if (id == UINT32_MAX)
		return symbolizer->beyond;
	hmap__set(&symbolizer->wait_frames, key, id);
	return id;
}

uint32_t symbolize_add_share(struct symbolizer *symbolizer, struct process *process, uint32_t node,
			     const struct pbp_sample *sample, struct sample_share *share)
{
	struct trie *trie = &symbolizer->profile->trie;
	uint32_t leaf;

	if (symbolizer->gil && share->reason != WAIT_WORLD)
		return gil__add(symbolizer->gil, process, node, sample, share);
	leaf = share->reason ? trie__child(trie, node, wait_frame(symbolizer, share)) : node;
	if (leaf == TRIE_FULL) {
		symbolizer->counts.pruned += node != symbolizer->pruned;
		leaf = symbolizer->pruned;
	}
	trie__add(trie, leaf, share->time_ns);
	if (share->extra_ns)
		estimate__add(&symbolizer->estimate, leaf, share->kind, share->extra_ns);
	return leaf;
}

void symbolizer__settle(struct symbolizer *symbolizer, const uint64_t exact_ns[ESTIMATE_KINDS], bool last)
{
	struct trie *trie = &symbolizer->profile->trie;
	const struct estimate *estimate = &symbolizer->estimate;
	uint32_t rest = trie__child(trie, TRIE_ROOT, symbolizer->not_walked);
	uint64_t until_ns[ESTIMATE_KINDS];

	rest = symbolizer->gil ? ESTIMATE_HIDDEN : rest == TRIE_FULL ? symbolizer->pruned : rest;
	for (size_t kind = 0; kind < ESTIMATE_KINDS; kind++)
		until_ns[kind] = last || estimate->sums[kind] ? exact_ns[kind] : estimate->settled[kind];
	symbolize_give_settled(symbolizer, until_ns, rest);
	estimate__settle(&symbolizer->estimate, trie, until_ns, rest);
	symbolizer->counts.hidden_ns += symbolizer->estimate.hidden;
	symbolizer->counts.left_out_ns += symbolizer->estimate.left_out;
	symbolizer->estimate.hidden = symbolizer->estimate.left_out = 0;
}
