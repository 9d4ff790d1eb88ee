/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In the steady state a sample costs three hash look-ups: its stack, the leaf's line, the leaf's node.
 * Everything else happens once per new stack, code object or line.
 */
#include "run/symbolize.h"

#include "base/utf8.h"
#include "base/util.h"
#include "os/proc.h"
#include "run/containers.h"
#include "run/symbolize_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caches are emptied beyond these; the profile itself stays. */
#define STACKS_MAX	  32768
#define FRAMES_MAX	  (1u << 20) /* of the profile: distinct functions and lines */
#define TAIL_NODES_MAX	  65536
#define TAILS_NS	  60000000ull /* CPU time for the tails of one batch */
#define ROOTS_MAX	  65536
#define STORED_FRAMES_MAX (4u << 20)
#define TABLE_BYTES_MAX	  (32u << 20)
#define CODES_MAX	  32768
#define LOOKS_MAX	  32 /* at a stack with a code object that was gone */
#define PRIMED_MAX	  64 /* threads looked at before the first sample */

static uint32_t frame_named(struct symbolizer *symbolizer, enum frame_kind kind, const char *text)
{
	struct frame frame = {.kind = kind,
			      .function = strtab__add(symbolizer->profile->strings, text, strlen(text))};

	return frame_table__add(&symbolizer->profile->frames, &frame);
}

static uint32_t special_frame(struct symbolizer *symbolizer, const char *text)
{
	return frame_named(symbolizer, FRAME_SPECIAL, text);
}

int symbolizer__init(struct symbolizer *symbolizer, struct profile *profile, struct processes *processes,
		     bool by_process, bool by_thread)
{
	*symbolizer = (struct symbolizer){
		.profile = profile, .processes = processes, .by_process = by_process, .by_thread = by_thread};
	symbolizer->no_python = special_frame(symbolizer, "[no Python frames]");
	symbolizer->unverified = special_frame(symbolizer, "[callers not verified]");
	symbolizer->truncated = special_frame(symbolizer, "[truncated]");
	symbolizer->unreadable = special_frame(symbolizer, "[code freed before it was read]");
	symbolizer->exited = special_frame(symbolizer, "[exited]");
	symbolizer->not_walked = special_frame(symbolizer, "[stack not taken]");
	/* Made first, so that it is there when the trie has become full. */
	symbolizer->beyond = special_frame(symbolizer, "[beyond the profile's size limit]");
	symbolizer->pruned = trie__child(&profile->trie, TRIE_ROOT, symbolizer->beyond);
	return symbolizer->beyond == UINT32_MAX || symbolizer->pruned == TRIE_FULL ? -ENOMEM : 0;
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
	struct stack stack = {
		.id = record->id,
		.count = record->count,
		.truncated = record->flags & PBP_STACK_TRUNCATED,
		.root = UINT32_MAX, .leaf_code = PY_CODE_NONE};
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

/* --- stacks --- */

#define APPROXIMATE (1ull << 63) /* in a key of process->lines; an index of a code object has fewer bits */

/* Frame id of a code object at an offset in its bytecode; `approximate`: where it was at some time before. */
static uint32_t frame_of(struct symbolizer *symbolizer, struct process *process, uint32_t code_index,
			 int64_t lasti, bool approximate)
{
	const struct py_code *code = &process->codes.codes.items[code_index];
	uint64_t key = (uint64_t)code_index << 32 | (uint32_t)lasti | (approximate ? APPROXIMATE : 0);
	const uint64_t *known = hmap__get(&process->lines, key);
	struct frame frame;
	uint32_t id;

	if (known)
		return *known;
	if (symbolizer->profile->frames.frames.len >= FRAMES_MAX)
		return symbolizer->beyond;
	frame = (struct frame){
		.kind = FRAME_PYTHON,
		.function = code->function,
		.file = code->file,
		.line = py_code__line(code, &process->target.offsets, lasti),
		.first_line = code->first_line > 0 ? code->first_line : 0,
	};
	frame.approximate = approximate && frame.line;
	id = frame_table__add(&symbolizer->profile->frames, &frame);
	if (id != UINT32_MAX)
		hmap__set(&process->lines, key, id);
	return id;
}

/* ... and at an instruction. */
static uint32_t frame_at(struct symbolizer *symbolizer, struct process *process, uint32_t code_index,
			 uint64_t instr, bool approximate)
{
	int64_t lasti = code_cache__lasti(&process->codes, &process->target, code_index, instr, process->attached);

	return frame_of(symbolizer, process, code_index, lasti, approximate);
}

static uint32_t interp_frame(struct symbolizer *symbolizer, uint64_t id)
{
	char text[40];

	if (symbolizer->profile->frames.frames.len >= FRAMES_MAX)
		return symbolizer->beyond;
	snprintf(text, sizeof(text), "[interpreter %lld]", (long long)id);
	return special_frame(symbolizer, text);
}

/* Nothing more is to be read of the program that was sampled. */
static bool is_over(const struct process *process)
{
	return process->exited || process->gone || !process->attached;
}

/* Frame id of a raw frame; UINT32_MAX for one that is not to be shown. */
static uint32_t raw_frame_id(struct symbolizer *symbolizer, struct process *process,
			     const struct pbp_frame *raw, uint32_t *code_index)
{
	enum py_code_state state;
	uint32_t index;

	*code_index = PY_CODE_NONE;
	if (raw->flags & PBP_FRAME_INTERP)
		return interp_frame(symbolizer, raw->instr);
	index = code_cache__find(&process->codes, raw->code, raw->ident);
	state = index == PY_CODE_NONE ? PY_CODE_GONE : process->codes.codes.items[index].state;
	if (state == PY_CODE_SHIM)
		return UINT32_MAX;
	if (state != PY_CODE_OK)
		return is_over(process) ? symbolizer->exited : symbolizer->unreadable;
	*code_index = index;
	return raw->flags & PBP_FRAME_MOVED ? frame_of(symbolizer, process, index, PY_LASTI_UNKNOWN, false)
					    : frame_at(symbolizer, process, index, raw->instr, false);
}

static int resolve_stack(struct symbolizer *symbolizer, struct stack *stack)
{
	uint32_t *path = stack->path ?: malloc(stack->count * sizeof(*path));
	uint32_t code_index, id;

	if (!path)
		return -ENOMEM;
	stack->path = path;
	stack->path_len = 0;
	stack->root = UINT32_MAX;
	stack->unreadable = stack->exited = stack->idle_known = false;
	for (uint32_t i = stack->count; i-- > 0;) {
		id = raw_frame_id(symbolizer, stack->process, &stack->raw[i], &code_index);
		if (id == symbolizer->unreadable)
			stack->unreadable = true;
		if (id == symbolizer->exited)
			stack->exited = true;
		if (i == 0 && code_index != PY_CODE_NONE)
			stack->leaf_code = code_index;
		else if (id != UINT32_MAX)
			path[stack->path_len++] = id;
	}
	free(stack->raw);
	stack->raw = NULL;
	if (!stack->unreadable || stack->looks >= LOOKS_MAX)
		return 0;
	stack->looks++;
	return vec__push(&symbolizer->wanted, stack->id);
}

/* The stacks that are to be resolved: first those that have come once more. NULL: no more. */
static struct stack *unresolved_stack(const struct symbolizer *symbolizer, size_t number)
{
	size_t again = symbolizer->reread.len, fresh = symbolizer->stacks.len - symbolizer->resolved;

	if (number < again)
		return &symbolizer->stacks.items[symbolizer->reread.items[number]];
	return number - again < fresh ? &symbolizer->stacks.items[symbolizer->resolved + number - again] : NULL;
}

/* Read all code objects of one process's new stacks in one go. */
static int load_codes(struct symbolizer *symbolizer, struct process *process)
{
	VEC(struct pbp_frame) frames = {0};
	const struct stack *stack;
	int err = 0;

	for (size_t i = 0; (stack = unresolved_stack(symbolizer, i)) && !err; i++) {
		if (stack->process != process)
			continue;
		err = vec__reserve(&frames, stack->count);
		if (err)
			break;
		memcpy(frames.items + frames.len, stack->raw, stack->count * sizeof(*stack->raw));
		frames.len += stack->count;
	}
	if (!err)
		err = code_cache__load(&process->codes, &process->target, frames.items, frames.len,
				       process->attached && !process->exited);
	symbolizer->codes_full |=
		process->codes.codes.len > CODES_MAX || process->codes.table_bytes > TABLE_BYTES_MAX;
	process->gone |= err == -ESRCH;
	vec__free(&frames);
	/* A process that is gone leaves its unknown code objects unreadable, which is counted. */
	return err == -ENOMEM ? err : 0;
}

/* The first use of a process in a batch. */
static void begin(struct symbolizer *symbolizer, struct process *process)
{
	if (process->begun == symbolizer->batch)
		return;
	process->begun = symbolizer->batch;
	code_cache__begin_batch(&process->codes, &process->target, process->attached && !process->exited);
}

static int resolve_stacks(struct symbolizer *symbolizer)
{
	struct stack *stack;
	int err = 0;

	if (!unresolved_stack(symbolizer, 0))
		return 0;
	for (size_t i = 0; (stack = unresolved_stack(symbolizer, i)) && !err; i++) {
		if (stack->process->batch == symbolizer->batch)
			continue;
		stack->process->batch = symbolizer->batch;
		begin(symbolizer, stack->process);
		err = load_codes(symbolizer, stack->process);
	}
	for (size_t i = 0; (stack = unresolved_stack(symbolizer, i)) && !err; i++)
		err = resolve_stack(symbolizer, stack);
	symbolizer->resolved = symbolizer->stacks.len;
	symbolizer->reread.len = 0;
	return err;
}

/* --- roots --- */

/* Names that the kernel has may be any bytes. */
static uint32_t child_named(struct symbolizer *symbolizer, uint32_t parent, enum frame_kind kind, char *text)
{
	uint32_t frame;

	/* Each process and thread has a name of its own. */
	if (symbolizer->profile->frames.frames.len >= FRAMES_MAX)
		return TRIE_FULL;
	utf8_repair(text);
	frame = frame_named(symbolizer, kind, text);
	return frame == UINT32_MAX ? TRIE_FULL : trie__child(&symbolizer->profile->trie, parent, frame);
}

static uint32_t make_root(struct symbolizer *symbolizer, const struct process *process,
			  const struct pbp_sample *sample)
{
	pid_t inner_tid = process->inner_pid ? pidns__inner_tid(process->pid, sample->tid) : 0;
	const struct container *container = process->container;
	uint32_t node = TRIE_ROOT;
	/* All that a name has in it: none is cut. */
	char text[sizeof(process->raw_command) + CONTAINER_CALLED_BYTES + PIDNS_TEXT + 32], number[PIDNS_TEXT];

	if (symbolizer->by_container) {
		snprintf(text, sizeof(text), "%s%s", container ? "container " : "[host]",
			 container ? container->raw_label : "");
		node = child_named(symbolizer, node, FRAME_CONTAINER, text);
	} else if (symbolizer->by_process) {
		snprintf(text, sizeof(text), "process %s (%s%s%s)", process__number(process, number),
			 process->raw_command, container ? ", container " : "",
			 container ? container->called : "");
		node = child_named(symbolizer, node, FRAME_PROCESS, text);
	}
	if (symbolizer->by_thread && node != TRIE_FULL) {
		snprintf(text, sizeof(text), "thread %s (%.16s)", pidns__text(number, sample->tid, inner_tid),
			 sample->comm);
		node = child_named(symbolizer, node, FRAME_THREAD, text);
	}
	return node;
}

static uint64_t root_key(const struct symbolizer *symbolizer, const struct process *process,
			 const struct pbp_sample *sample)
{
	bool is_named = process->container && process->container->name; /* it may come later */
	uint64_t key = (uint64_t)process->serial << 32 | (process->renamed << 1 | is_named), name[2];

	if (!symbolizer->by_thread)
		return key;
	/* The name too: tids are reused, and threads renamed. */
	memcpy(name, sample->comm, sizeof(name));
	key = hmap_mix(hmap_mix(key ^ hmap_seed()) ^ sample->tid);
	return hmap_mix(hmap_mix(key ^ name[0]) ^ name[1]);
}

static uint32_t root_of(struct symbolizer *symbolizer, const struct process *process,
			const struct pbp_sample *sample)
{
	const uint64_t *known;
	uint64_t key;
	uint32_t node;

	if (!symbolizer->by_process && !symbolizer->by_container && !symbolizer->by_thread)
		return TRIE_ROOT;
	key = root_key(symbolizer, process, sample);
	known = hmap__get(&symbolizer->roots, key);
	if (known)
		return *known;
	if (symbolizer->roots.len >= ROOTS_MAX)
		hmap__clear(&symbolizer->roots); /* a cache: the nodes stay */
	node = make_root(symbolizer, process, sample);
	hmap__set(&symbolizer->roots, key, node);
	return node;
}

/* --- tails --- */

static uint32_t tail_path(struct symbolizer *symbolizer, struct process *process,
			  const struct tail_reader *reader, enum tail_result result, uint32_t node)
{
	struct trie *trie = &symbolizer->profile->trie;
	uint32_t code_index, id;

	if (result == TAIL_TRUNCATED)
		node = trie__child(trie, node, symbolizer->truncated);
	for (size_t i = reader->frames.len; i-- > 0 && node != TRIE_FULL;) {
		id = raw_frame_id(symbolizer, process, &reader->frames.items[i], &code_index);
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

/* The node that the frames of a deep stack hang from. */
static uint32_t node_of_tail(struct symbolizer *symbolizer, const struct stack *stack,
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
	counts->in_kernel += !!(sample->flags & PBP_SAMPLE_KERNEL);
}

static uint32_t leaf_frame(struct symbolizer *symbolizer, const struct stack *stack,
			   const struct pbp_sample *sample)
{
	bool jit = sample->flags & PBP_SAMPLE_JIT;
	uint32_t id = frame_at(symbolizer, stack->process, stack->leaf_code, sample->leaf_instr, jit);

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
		node = stack ? node_of_tail(symbolizer, stack, sample, root)
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
	return node;
}

/* May turn out to be Python, or not. */
static bool is_unknown(const struct process *process)
{
	return !process->python;
}

static void add_sample(struct symbolizer *symbolizer, const struct pbp_sample *sample,
		       const struct sample_share *share)
{
	struct process *process = processes__find(symbolizer->processes, sample->tgid);
	struct stack *stack = sample->stack_id ? find_stack(symbolizer, sample->stack_id) : NULL;
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
	if (symbolize_is_hidden(symbolizer, stack, share)) {
		symbolizer->counts.hidden_ns += share->time_ns;
		if (share->extra_ns)
			estimate__add(&symbolizer->estimate, ESTIMATE_HIDDEN, share->kind, share->extra_ns);
		return;
	}
	begin(symbolizer, process);
	if (!share->counted)
		count_state(&symbolizer->counts, sample, share->reason != WAIT_NONE);
	node = root_of(symbolizer, process, sample);
	if (node != TRIE_FULL)
		node = node_of_sample(symbolizer, stack, sample, node);
	if (node == TRIE_FULL) {
		node = symbolizer->pruned;
		symbolizer->counts.pruned++;
	}
	symbolize_add_share(symbolizer, node, share);
	symbolizer->profile->samples += !share->counted;
	process->samples += !share->counted;
}

void symbolizer__admit(struct symbolizer *symbolizer, struct process *process)
{
	struct pbp_sample sample = {
		.tgid = process->pid, .tid = process->pid, .status = PBP_STATUS_NO_TARGET};
	struct sample_share share = on_cpu(symbolizer);
	char comm[64];

	if (symbolizer->by_thread && process->skipped &&
	    !proc__task_comm(process->pid, process->pid, comm, sizeof(comm)))
		memcpy(sample.comm, comm, strnlen(comm, sizeof(sample.comm)));
	symbolizer->counts.skipped -= process->skipped;
	for (; process->skipped; process->skipped--)
		add_sample(symbolizer, &sample, &share);
}

int symbolizer__flush_batch(struct symbolizer *symbolizer)
{
	int err;

	if (!symbolizer->samples.len && !unresolved_stack(symbolizer, 0))
		return 0;
	symbolizer->batch++;
	err = resolve_stacks(symbolizer);
	symbolizer->batch_start_ns = proc__own_cpu_ns();
	symbolizer->tails.len = 0;
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

void symbolizer__forget_over(struct symbolizer *symbolizer)
{
	bool any = false;

	for (size_t i = 0; i < symbolizer->processes->items.len && !any; i++)
		any = symbolizer->processes->items.items[i]->over && symbolizer->processes->items.items[i]->stacks;
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
	hmap__free(&symbolizer->roots);
	hmap__free(&symbolizer->tail_nodes);
}
