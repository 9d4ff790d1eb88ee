/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In the steady state a sample costs three hash look-ups: its stack, the leaf's line, the leaf's node.
 * Everything else happens once per new stack, code object or line.
 */
#include "run/symbolize_parts.h"

#include "base/util.h"
#include "os/proc.h"
#include "run/gil.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caches are emptied beyond these; the profile itself stays. */
#define STACKS_MAX	  32768
#define TAIL_NODES_MAX	  65536
#define STORED_FRAMES_MAX (4u << 20)

uint32_t symbolize_frame_named(struct symbolizer *symbolizer, enum frame_kind kind, const char *text)
{
	struct frame frame = {.kind = kind,
			      .function = strtab__add(symbolizer->profile->strings, text, strlen(text))};

	return frame_table__add(&symbolizer->profile->frames, &frame);
}

uint32_t symbolize_special(struct symbolizer *symbolizer, const char *text)
{
	return symbolize_frame_named(symbolizer, FRAME_SPECIAL, text);
}

/* 0 or -ENOMEM. */
static int make_special_frames(struct symbolizer *symbolizer)
{
	struct profile *profile = symbolizer->profile;

	symbolizer->no_python = symbolize_special(symbolizer, "[no Python frames]");
	symbolizer->unverified = symbolize_special(symbolizer, "[callers not verified]");
	symbolizer->truncated = symbolize_special(symbolizer, "[truncated]");
	symbolizer->unreadable = symbolize_special(symbolizer, "[code freed before it was read]");
	symbolizer->exited = symbolize_special(symbolizer, "[exited]");
	symbolizer->not_walked = symbolize_special(symbolizer, "[stack not taken]");
	symbolizer->gc = symbolize_special(symbolizer, "[GC]");
	/* Made first, so that it is there when the trie has become full. */
	symbolizer->beyond = symbolize_special(symbolizer, "[beyond the profile's size limit]");
	symbolizer->pruned = trie__child(&profile->trie, TRIE_ROOT, symbolizer->beyond);
	return symbolizer->beyond == UINT32_MAX || symbolizer->pruned == TRIE_FULL ? -ENOMEM : 0;
}

int symbolizer__init(struct symbolizer *symbolizer, struct profile *profile, struct processes *processes,
		     bool by_process, bool by_thread)
{
	*symbolizer = (struct symbolizer){
		.profile = profile, .processes = processes, .by_process = by_process, .by_thread = by_thread};
	thread_namer__init(&symbolizer->namer, profile->strings, NULL);
	return make_special_frames(symbolizer);
}

static struct stack *find_stack(const struct symbolizer *symbolizer, uint64_t id)
{
	const uint64_t *index = hmap__get(&symbolizer->stack_index, id);

	return index ? &symbolizer->stacks.items[*index] : NULL;
}

bool symbolizer__has_stack(const struct symbolizer *symbolizer, uint64_t id)
{
	return find_stack(symbolizer, id);
}

/* --- taking records --- */

static int keep_raw(struct stack *stack, const struct pbp_stack *record)
{
	size_t bytes = record->count * sizeof(struct pbp_frame);

	stack->raw = malloc(bytes);
	if (!stack->raw)
		return -ENOMEM;
	memcpy(stack->raw, record + 1, bytes);
	return 0;
}

static int retake_stack(struct symbolizer *symbolizer, struct stack *stack, const struct pbp_stack *record)
{
	if (!stack->unreadable || stack->raw || stack->count != record->count)
		return 0; /* sent twice: the engine's memory of what it sent is a cache */
	return keep_raw(stack, record) ?: vec__push(&symbolizer->reread, stack - symbolizer->stacks.items);
}

static int take_stack(struct symbolizer *symbolizer, const struct pbp_stack *record, size_t size)
{
	struct stack stack = {.id = record->id,
			      .count = record->count,
			      .truncated = record->flags & PBP_STACK_TRUNCATED,
			      .root = UINT32_MAX,
			      .leaf_code = PY_CODE_NONE};
	struct stack *known = find_stack(symbolizer, record->id);
	int err;

	if (!record->count || record->count > STACK_FRAMES_MAX ||
	    size < sizeof(*record) + record->count * sizeof(struct pbp_frame))
		return -EINVAL;
	if (known)
		return retake_stack(symbolizer, known, record);
	stack.process = processes__find(symbolizer->processes, record->tgid);
	if (!stack.process)
		return 0;
	err = keep_raw(&stack, record);
	if (err)
		return err;
	stack.last = stack.raw[record->count - 1];
	err = vec__push(&symbolizer->stacks, stack);
	if (!err)
		err = hmap__set(&symbolizer->stack_index, stack.id, symbolizer->stacks.len - 1);
	else
		free(stack.raw);
	symbolizer->stored_frames += stack.count;
	stack.process->stacks++;
	return err;
}

static int take_code(struct symbolizer *symbolizer, const struct pbp_code *record)
{
	struct process *process = processes__find(symbolizer->processes, record->tgid);

	return process ? code_cache__offer(&process->codes, record) : 0;
}

static struct sample_share on_cpu(const struct symbolizer *symbolizer)
{
	uint64_t period_ns = symbolizer->profile->period_ns ?: 1;

	if (symbolizer->cpu_is_known)
		return (struct sample_share){.extra_ns = period_ns, .kind = SYMBOLIZE_CPU_KIND};
	return (struct sample_share){.time_ns = period_ns};
}

int symbolizer__take(struct symbolizer *symbolizer, const void *record, size_t size)
{
	uint32_t type;

	if (size < sizeof(type))
		return -EINVAL;
	memcpy(&type, record, sizeof(type));
	if (type == PBP_STACK && size >= sizeof(struct pbp_stack))
		return take_stack(symbolizer, record, size);
	if (type == PBP_CODE && size >= sizeof(struct pbp_code))
		return take_code(symbolizer, record);
	if (type == PBP_SAMPLE && size >= PBP_SAMPLE_SHORT) {
		struct shared_sample taken = {.share = on_cpu(symbolizer)};

		memcpy(&taken.sample, record, min_u64(size, sizeof(taken.sample)));
		return vec__push(&symbolizer->samples, taken);
	}
	return -EINVAL;
}

int symbolizer__take_share(struct symbolizer *symbolizer, const struct pbp_sample *sample,
			   const struct sample_share *share)
{
	struct shared_sample taken = {.sample = *sample, .share = *share};

	return vec__push(&symbolizer->samples, taken);
}

/* --- samples --- */

static uint32_t node_of_path(struct symbolizer *symbolizer, struct stack *stack, uint32_t root)
{
	uint32_t node = root;

	if (stack->root == root)
		return stack->node;
	for (uint32_t i = 0; i < stack->path_len && node != TRIE_FULL; i++)
		node = trie__child(&symbolizer->profile->trie, node, stack->path[i]);
	if (node != TRIE_FULL) {
		stack->root = root;
		stack->node = node;
	}
	return node;
}

static void count_state(struct symbolize_counts *counts, const struct pbp_sample *sample, bool waits)
{
	counts->samples++;
	counts->waits += waits;
	if (sample->status < PBP_STATUS_COUNT)
		counts->status[sample->status]++;
	if (waits)
		return;
	counts->attached += !!(sample->flags & PBP_SAMPLE_ATTACHED);
	counts->collecting += !!(sample->flags & PBP_SAMPLE_GC);
	counts->raising += !!(sample->flags & PBP_SAMPLE_RAISING);
	counts->handling += !!(sample->flags & PBP_SAMPLE_HANDLING);
	counts->in_kernel += !!(sample->flags & PBP_SAMPLE_KERNEL);
}

static uint32_t leaf_frame(struct symbolizer *symbolizer, const struct stack *stack,
			   const struct pbp_sample *sample)
{
	bool jit = sample->flags & PBP_SAMPLE_JIT;
	uint32_t id =
		symbolize_frame_at(symbolizer, stack->process, stack->leaf_code, sample->leaf_instr, jit);

	if (jit && id != UINT32_MAX)
		symbolizer->counts.approximate +=
			frame_table__get(&symbolizer->profile->frames, id)->approximate;
	return id;
}

static uint32_t node_of_sample(struct symbolizer *symbolizer, struct stack *stack,
			       const struct pbp_sample *sample, uint32_t root)
{
	struct trie *trie = &symbolizer->profile->trie;
	uint32_t node = root;

	if (sample->tail_frame)
		node = stack ? symbolize_tail(symbolizer, stack, sample, root)
			     : trie__child(trie, root, symbolizer->unverified);
	if (!stack) {
		symbolizer->counts.unverified += !!sample->tail_frame;
		if (node == TRIE_FULL || sample->tail_frame)
			return node;
		return trie__child(trie, node,
				   sample->status == PBP_STATUS_NOT_WALKED ? symbolizer->not_walked
									   : symbolizer->no_python);
	}
	symbolizer->counts.unreadable += stack->unreadable;
	symbolizer->counts.exited += stack->exited;
	symbolizer->counts.truncated += stack->truncated;
	if (node != TRIE_FULL && stack->truncated)
		node = trie__child(trie, node, symbolizer->truncated);
	if (node != TRIE_FULL)
		node = node_of_path(symbolizer, stack, node);
	if (node != TRIE_FULL && stack->leaf_code != PY_CODE_NONE)
		node = trie__child(trie, node, leaf_frame(symbolizer, stack, sample));
	/* Where it began is known from 3.15 on. Before, what runs inside of it is not told from that. */
	if (node != TRIE_FULL && sample->flags & PBP_SAMPLE_GC && !stack->has_gc && !symbolizer->hide_gc)
		node = trie__child(trie, node, symbolizer->gc);
	return node;
}

/* May turn out to be Python, or not. */
static bool is_unknown(const struct process *process)
{
	return !process->python;
}

/* The node of its stack. */
static uint32_t place(struct symbolizer *symbolizer, struct process *process, struct stack *stack,
		      const struct pbp_sample *sample, const struct named_thread *thread)
{
	uint32_t node;

	symbolize_begin(symbolizer, process);
	node = symbolize_root(symbolizer, process, thread);
	if (node != TRIE_FULL)
		node = node_of_sample(symbolizer, stack, sample, node);
	if (node != TRIE_FULL)
		return node;
	symbolizer->counts.pruned++;
	return symbolizer->pruned;
}

/* It is left out, but others may wait for its GIL. */
static void note_holder(struct symbolizer *symbolizer, struct process *process, struct stack *stack,
			const struct pbp_sample *sample, const struct named_thread *thread,
			const struct sample_share *share)
{
	const struct symbolize_counts before = symbolizer->counts;

	if (!symbolizer->gil || gil__part(process, sample, share) != GIL_HOLDS)
		return;
	gil__note_holder(symbolizer->gil, process, place(symbolizer, process, stack, sample, thread), sample,
			 share);
	symbolizer->counts = before;
}

static bool wants_threads(const struct symbolizer *symbolizer)
{
	return symbolizer->by_thread || symbolizer->namer.filter || symbolizer->sink || symbolizer->gil;
}

static void add_sample(struct symbolizer *symbolizer, const struct pbp_sample *sample,
		       const struct sample_share *share)
{
	struct process *process = processes__find(symbolizer->processes, sample->tgid);
	struct stack *stack = sample->stack_id ? find_stack(symbolizer, sample->stack_id) : NULL;
	const struct symbolize_counts before = symbolizer->counts;
	const struct named_thread *thread = NULL;
	struct sample_share given = *share;
	uint32_t node;

	if (!process)
		return; /* not asked for */
	if (is_unknown(process) && sample->status == PBP_STATUS_NO_TARGET) {
		process->skipped++;
		symbolizer->counts.skipped++;
		return;
	}
	if (sample->stack_id && (!stack || stack->process != process)) {
		symbolizer->counts.unknown_stack++;
		return;
	}
	if (wants_threads(symbolizer)) {
		thread = thread_namer__of(&symbolizer->namer, process, sample);
		if (!thread) {
			symbolizer->counts.unknown_stack++;
			return;
		}
	}
	if (symbolize_leave_out(symbolizer, process, sample, thread, share)) {
		note_holder(symbolizer, process, stack, sample, thread, share);
		return;
	}
	if (symbolize_hide(symbolizer, process, stack, sample, share))
		return;
	count_state(&symbolizer->counts, sample, share->reason != WAIT_NONE);
	if (!process->samples)
		process__look_for_name(process);
	node = place(symbolizer, process, stack, sample, thread);
	if (symbolizer->gil && thread)
		gil__name(symbolizer->gil, process, sample, thread->name);
	node = symbolize_add_share(symbolizer, process, node, sample, &given);
	symbolize_give(symbolizer, process, thread, sample, &given, node, &before);
	if (share->counted)
		symbolizer->counts = before; /* it has been, with its first share */
	symbolizer->profile->samples += !share->counted;
	process->samples += !share->counted;
}

void symbolizer__admit(struct symbolizer *symbolizer, struct process *process)
{
	struct pbp_sample sample = {
		.tgid = process->pid, .tid = process->pid, .status = PBP_STATUS_NO_TARGET};
	struct sample_share share = on_cpu(symbolizer);
	char comm[64];

	if (wants_threads(symbolizer) && process->skipped &&
	    !proc__task_comm(process->pid, process->pid, comm, sizeof(comm)))
		memcpy(sample.comm, comm, strnlen(comm, sizeof(sample.comm)));
	symbolizer->counts.skipped -= process->skipped;
	for (; process->skipped; process->skipped--)
		add_sample(symbolizer, &sample, &share);
}

int symbolizer__flush_batch(struct symbolizer *symbolizer)
{
	int err;

	if (!symbolizer->samples.len && !symbolize_unresolved(symbolizer, 0))
		return 0;
	symbolizer->batch++;
	err = symbolize_stacks(symbolizer);
	symbolizer->batch_start_ns = proc__own_cpu_ns();
	symbolizer->tails.len = 0;
	thread_namer__begin(&symbolizer->namer);
	for (size_t i = 0; i < symbolizer->samples.len && !err; i++)
		add_sample(symbolizer, &symbolizer->samples.items[i].sample,
			   &symbolizer->samples.items[i].share);
	symbolizer->samples.len = 0;
	return err;
}

/* --- bounds --- */

bool symbolizer__is_full(const struct symbolizer *symbolizer)
{
	return symbolizer->stacks.len > STACKS_MAX || symbolizer->stored_frames > STORED_FRAMES_MAX ||
	       symbolizer->tail_nodes.len > TAIL_NODES_MAX || symbolizer->codes_full;
}

static void free_stack(struct symbolizer *symbolizer, struct stack *stack)
{
	symbolizer->stored_frames -= stack->count;
	stack->process->stacks--;
	free(stack->raw);
	free(stack->path);
}

/* Those of all processes, or of one (NULL: none) and of those that are over. */
static void forget_stacks(struct symbolizer *symbolizer, bool all, const struct process *only)
{
	size_t kept = 0;

	hmap__clear(&symbolizer->stack_index);
	hmap__clear(&symbolizer->tail_nodes);
	symbolizer->reread.len = symbolizer->wanted.len = 0;
	for (size_t i = 0; i < symbolizer->stacks.len; i++) {
		struct stack *stack = &symbolizer->stacks.items[i];

		if (all || stack->process == only || stack->process->over) {
			free_stack(symbolizer, stack);
			continue;
		}
		symbolizer->stacks.items[kept] = *stack;
		hmap__set(&symbolizer->stack_index, stack->id, kept++);
	}
	symbolizer->stacks.len = symbolizer->resolved = kept;
}

void symbolizer__forget(struct symbolizer *symbolizer, const struct process *only)
{
	if (only && !only->stacks)
		return;
	symbolizer->codes_full &= only != NULL;
	forget_stacks(symbolizer, !only, only);
}

bool symbolizer__is_profile_full(const struct symbolizer *symbolizer)
{
	const struct profile *profile = symbolizer->profile;

	return profile->trie.nodes.len > profile->trie.max_nodes / 4 * 3 ||
	       profile->frames.frames.len > SYMBOLIZE_FRAMES_MAX / 4 * 3 ||
	       strtab__bytes(profile->strings) > PY_NAMES_BYTES_MAX / 4 * 3;
}

int symbolizer__renew(struct symbolizer *symbolizer)
{
	struct profile *profile = symbolizer->profile;
	uint32_t max_nodes = profile->trie.max_nodes;
	int err;

	hmap__clear(&symbolizer->roots);
	hmap__clear(&symbolizer->wait_frames);
	/* Which one a thread is, is told by the id of its name. */
	symbolize_forget_threads(symbolizer);
	thread_namer__forget(&symbolizer->namer);
	strtab__clear(profile->strings);
	frame_table__free(&profile->frames);
	profile->frames = (struct frame_table){0};
	trie__free(&profile->trie);
	err = trie__init(&profile->trie, max_nodes) ?: make_special_frames(symbolizer);
	for (struct sink *sink = symbolizer->sink; sink; sink = sink->next)
		sink->renew(sink);
	return err;
}

void symbolizer__forget_over(struct symbolizer *symbolizer)
{
	bool any = false;

	for (size_t i = 0; i < symbolizer->processes->items.len && !any; i++)
		any = symbolizer->processes->items.items[i]->over &&
		      symbolizer->processes->items.items[i]->stacks;
	if (any)
		forget_stacks(symbolizer, false, NULL);
}

void symbolizer__free(struct symbolizer *symbolizer)
{
	symbolizer__forget(symbolizer, NULL);
	vec__free(&symbolizer->stacks);
	vec__free(&symbolizer->reread);
	vec__free(&symbolizer->wanted);
	vec__free(&symbolizer->samples);
	vec__free(&symbolizer->tails);
	hmap__free(&symbolizer->stack_index);
	hmap__free(&symbolizer->wait_frames);
	estimate__free(&symbolizer->estimate);
	thread_namer__free(&symbolizer->namer);
	hmap__free(&symbolizer->roots);
	hmap__free(&symbolizer->tail_nodes);
	symbolize_forget_threads(symbolizer);
	vec__free(&symbolizer->threads);
	vec__free(&symbolizer->sink_process_items);
	hmap__free(&symbolizer->sink_threads);
	hmap__free(&symbolizer->sink_processes);
}
