/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See gecko.h. Stacks become rows of frames as they are met; a sample is 24 bytes until the end.
 *
 * A sample's category is that of the last frame of its stack: so what runs while garbage is collected, or in
 * the kernel, has a row of its own for the same frame there. Samples beyond the limits stand at the end of
 * their thread, under "[pruned]".
 */
#include "out/gecko_parts.h"

#include "base/util.h"
#include "out/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX 4000000u /* of all threads */
#define STACKS_MAX  2000000u
#define TEXTS_MAX   (64u << 20)

/* --- tables --- */

/* A text of the profile, as one of the file. */
static uint32_t copy_text(struct gecko *gecko, uint32_t id)
{
	const struct strtab *strings = gecko->profile->strings;

	return strtab__add(gecko->strings, strtab__get(strings, id), strtab__len(strings, id));
}

static uint32_t add_text(struct gecko *gecko, const char *text)
{
	return strtab__add(gecko->strings, text, strlen(text));
}

static uint32_t add_source(struct gecko *gecko, uint32_t text)
{
	uint32_t number = hmap__number(&gecko->source_index, text, gecko->sources.len);

	if (text == GECKO_NONE || (number == gecko->sources.len && vec__push(&gecko->sources, text)))
		return GECKO_NONE;
	return number;
}

static uint32_t add_function(struct gecko *gecko, const struct frame *frame)
{
	struct frame function = *frame;

	function.line = 0;
	function.approximate = false;
	function.function =
		frame->function ? copy_text(gecko, frame->function) : add_text(gecko, "[unnamed]");
	function.file = frame->kind == FRAME_PYTHON ? copy_text(gecko, frame->file) : 0;
	if (function.function == GECKO_NONE || function.file == GECKO_NONE ||
	    (frame->kind == FRAME_PYTHON && add_source(gecko, function.file) == GECKO_NONE))
		return GECKO_NONE;
	return frame_table__add(&gecko->functions, &function);
}

static uint32_t add_frame(struct gecko *gecko, uint32_t id, enum gecko_category category)
{
	uint64_t key = (uint64_t)id << 8 | category;
	const uint64_t *known = hmap__get(&gecko->frame_index, key);
	uint32_t function;

	if (known)
		return (uint32_t)*known;
	if (strtab__bytes(gecko->strings) > TEXTS_MAX)
		return GECKO_NONE;
	function = add_function(gecko, frame_table__get(&gecko->profile->frames, id));
	/* It has a number only if it is there. */
	if (function == GECKO_NONE || vec__reserve(&gecko->frames, 1) ||
	    hmap__set(&gecko->frame_index, key, gecko->frames.len))
		return GECKO_NONE;
	gecko->frames.items[gecko->frames.len] = (struct gecko_frame){id, function, category};
	return (uint32_t)gecko->frames.len++;
}

static bool is_text(const struct gecko *gecko, const struct frame *frame, const char *text)
{
	return !strcmp(strtab__get(gecko->profile->strings, frame->function), text);
}

/* "[holder: sleep]", "[holder not seen]": the end of the stack of one that waits for it. */
static bool is_holder(const struct gecko *gecko, const struct frame *frame)
{
	static const char begin[] = "[holder";

	return !strncmp(strtab__get(gecko->profile->strings, frame->function), begin, sizeof(begin) - 1);
}

/* Of a frame by itself. */
static enum gecko_category category_of(const struct gecko *gecko, uint32_t id)
{
	const struct frame *frame = frame_table__get(&gecko->profile->frames, id);

	/* With the GIL on the CPU. */
	if (frame->kind == FRAME_PYTHON || is_text(gecko, frame, "[holds the GIL]"))
		return GECKO_PYTHON;
	if (is_text(gecko, frame, "[GIL]") || is_text(gecko, frame, "[waits for the GIL]") ||
	    is_holder(gecko, frame))
		return GECKO_GIL;
	if (frame->wait)
		return GECKO_OFF_CPU;
	return is_text(gecko, frame, "[GC]") ? GECKO_GC : GECKO_OTHER;
}

/* A row, of whatever process and thread it is first. GECKO_NONE: it does not fit, or there is no memory.
 */
static uint32_t add_row(struct gecko *gecko, uint32_t prefix, uint32_t frame)
{
	uint64_t key = (uint64_t)prefix << 32 | frame;
	const uint64_t *known = hmap__get(&gecko->stack_index, key);

	if (known)
		return (uint32_t)*known;
	if (frame == GECKO_NONE || gecko->stacks.len >= STACKS_MAX ||
	    hmap__set(&gecko->stack_index, key, gecko->stacks.len) ||
	    vec__push(&gecko->stacks, ((struct gecko_stack){frame, prefix})))
		return GECKO_NONE;
	return (uint32_t)gecko->stacks.len - 1;
}

/* Row + 1 of a node, as it is by itself; 0: it has none yet. Borrowed until the next call. */
static uint32_t *row_of(struct gecko *gecko, uint32_t node)
{
	static uint32_t nowhere;
	size_t len = gecko->rows.len;

	if (node >= len) {
		if (vec__reserve(&gecko->rows, gecko->profile->trie.nodes.len - len)) {
			gecko->err = -ENOMEM;
			return &nowhere;
		}
		memset(gecko->rows.items + len, 0, (gecko->rows.cap - len) * sizeof(uint32_t));
		gecko->rows.len = gecko->rows.cap;
	}
	return &gecko->rows.items[node];
}

/* Which process and thread it is stands elsewhere in the file. */
static bool is_root(const struct gecko *gecko, uint32_t node)
{
	enum frame_kind kind;

	if (node == TRIE_ROOT)
		return true;
	kind = frame_table__get(&gecko->profile->frames, gecko->profile->trie.nodes.items[node].frame)->kind;
	return kind == FRAME_PROCESS || kind == FRAME_THREAD || kind == FRAME_CONTAINER;
}

/* The row of a path; GECKO_NONE: it is empty. False: it does not fit. */
static bool add_path(struct gecko *gecko, uint32_t node, uint32_t *row)
{
	const struct trie_node *nodes = gecko->profile->trie.nodes.items;
	uint32_t at = node;

	gecko->way.len = 0;
	for (; !is_root(gecko, at) && !*row_of(gecko, at); at = nodes[at].parent)
		if (vec__push(&gecko->way, at))
			return false;
	*row = is_root(gecko, at) ? GECKO_NONE : *row_of(gecko, at) - 1;
	while (gecko->way.len) {
		uint32_t below = gecko->way.items[--gecko->way.len], frame = nodes[below].frame;

		*row = add_row(gecko, *row, add_frame(gecko, frame, category_of(gecko, frame)));
		if (*row == GECKO_NONE)
			return false;
		*row_of(gecko, below) = *row + 1;
	}
	return true;
}

/* The row of a sample; false: it does not fit. */
static bool add_stack(struct gecko *gecko, const struct sink_sample *sample, uint32_t *row)
{
	const struct trie_node *node = &gecko->profile->trie.nodes.items[sample->node];
	enum gecko_category category = sample->state & SINK_WAIT     ? GECKO_OTHER
				       : sample->state & SINK_GC     ? GECKO_GC
				       : sample->state & SINK_KERNEL ? GECKO_KERNEL
								     : GECKO_OTHER;

	if (category == GECKO_OTHER || is_root(gecko, sample->node) ||
	    category_of(gecko, node->frame) != GECKO_PYTHON)
		return add_path(gecko, sample->node, row);
	if (!add_path(gecko, node->parent, row))
		return false;
	*row = add_row(gecko, *row, add_frame(gecko, node->frame, category));
	return *row != GECKO_NONE;
}

/* --- samples --- */

/* Off the CPU. What is told later than its samples, as for whom a wait was, has its stack only to tell. */
static bool is_wait(const struct gecko *gecko, const struct sink_sample *sample)
{
	enum gecko_category category;

	if (sample->state & SINK_WAIT || gecko->profile->unit != PROFILE_TIME || is_root(gecko, sample->node))
		return sample->state & SINK_WAIT;
	category = category_of(gecko, gecko->profile->trie.nodes.items[sample->node].frame);
	return category == GECKO_GIL || category == GECKO_OFF_CPU;
}

static uint32_t add_process(struct gecko *gecko, const struct sink_process *process)
{
	uint32_t number = hmap__number(&gecko->process_index, process->key, gecko->processes.len);
	struct gecko_process added = {.pid = process->pid};
	const uint64_t *lives = hmap__get(&gecko->lives, process->pid);

	if (number != gecko->processes.len)
		return number;
	added.command = add_text(gecko, *process->command ? process->command : process->root);
	added.lives = lives ? (uint32_t)*lives : 0;
	return added.command == GECKO_NONE || hmap__set(&gecko->lives, process->pid, added.lives + 1) ||
			       vec__push(&gecko->processes, added)
		       ? GECKO_NONE
		       : number;
}

/* NULL: out of memory. */
static struct gecko_thread *thread_of(struct gecko *gecko, const struct sink_thread *thread)
{
	struct gecko_thread added = {.process = GECKO_NONE};
	uint32_t number =
		hmap__number(&gecko->thread_index, thread ? thread->key + 1 : 0, gecko->threads.len);

	if (number == GECKO_NONE)
		return NULL;
	if (number != gecko->threads.len)
		return &gecko->threads.items[number];
	if (thread) {
		added.process = add_process(gecko, thread->process);
		added.tid = thread->tid;
		added.name = add_text(gecko, *thread->name ? thread->name : thread->root);
	}
	if ((thread && added.process == GECKO_NONE) || added.name == GECKO_NONE ||
	    vec__push(&gecko->threads, added))
		return NULL;
	return &gecko->threads.items[number];
}

static int add_sample(struct gecko *gecko, const struct sink_sample *sample)
{
	struct gecko_thread *thread = thread_of(gecko, sample->thread);
	struct gecko_sample taken = {.time_ns = sample->time_ns,
				     .weight_ns = sample->weight_ns,
				     .waits = is_wait(gecko, sample)};

	if (!thread)
		return -ENOMEM;
	thread->weight_ns += sample->weight_ns;
	if (gecko->samples >= SAMPLES_MAX || !add_stack(gecko, sample, &taken.stack)) {
		thread->pruned_ns += sample->weight_ns;
		gecko->pruned_ns += sample->weight_ns;
		return 0;
	}
	if (thread->samples.len)
		thread->out_of_order |=
			taken.time_ns < thread->samples.items[thread->samples.len - 1].time_ns;
	gecko->samples++;
	return vec__push(&thread->samples, taken);
}

static void take(struct sink *sink, const struct sink_sample *sample)
{
	struct gecko *gecko = (struct gecko *)sink;

	gecko->err = gecko->err ?: add_sample(gecko, sample);
}

/* Nothing is to be settled, or kept, before the end. */
static void settle(struct sink *sink, const uint64_t extra_ns[ESTIMATE_KINDS],
		   const uint64_t exact_ns[ESTIMATE_KINDS])
{
}

static void flush(struct sink *sink) {}

/* --- the end --- */

static int compare_samples(const void *left, const void *right)
{
	const struct gecko_sample *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* What was pruned stands at the end of its thread. */
static int finish_thread(struct gecko *gecko, struct gecko_thread *thread)
{
	struct gecko_sample rest = {.stack = gecko->pruned, .weight_ns = thread->pruned_ns};

	if (thread->out_of_order)
		qsort(thread->samples.items, thread->samples.len, sizeof(*thread->samples.items),
		      compare_samples);
	if (!thread->pruned_ns)
		return 0;
	if (thread->samples.len)
		rest.time_ns = thread->samples.items[thread->samples.len - 1].time_ns;
	thread->pruned_ns = 0;
	return vec__push(&thread->samples, rest);
}

static bool is_main(const struct gecko *gecko, const struct gecko_thread *thread)
{
	return thread->process != GECKO_NONE && gecko->processes.items[thread->process].pid == thread->tid;
}

/* By process, in each the main thread first; those of none at the end. */
static int compare_threads(const void *left, const void *right, void *context)
{
	uint32_t m = *(const uint32_t *)left, n = *(const uint32_t *)right;
	const struct gecko *gecko = context;
	const struct gecko_thread *a = &gecko->threads.items[m], *b = &gecko->threads.items[n];

	return compare_u64(a->process, b->process)
	       ?: compare_u64(is_main(gecko, b), is_main(gecko, a))
	       ?: compare_u64(a->tid, b->tid) ?: compare_u64(m, n);
}

static int finish(struct gecko *gecko)
{
	int err = 0;

	gecko->order.len = 0;
	for (uint32_t i = 0; i < gecko->threads.len && !err; i++) {
		err = finish_thread(gecko, &gecko->threads.items[i]);
		if (!err && gecko->threads.items[i].samples.len)
			err = vec__push(&gecko->order, i);
	}
	if (!err && gecko->order.len)
		qsort_r(gecko->order.items, gecko->order.len, sizeof(uint32_t), compare_threads, gecko);
	return err;
}

/* The row of what does not fit. */
static int add_pruned(struct gecko *gecko)
{
	struct frame pruned = {.kind = FRAME_SPECIAL, .function = add_text(gecko, "[pruned]")};
	uint32_t function = frame_table__add(&gecko->functions, &pruned);

	if (pruned.function == GECKO_NONE || function == GECKO_NONE ||
	    vec__push(&gecko->frames, ((struct gecko_frame){GECKO_NONE, function, GECKO_OTHER})))
		return -ENOMEM;
	gecko->pruned = add_row(gecko, GECKO_NONE, 0);
	return gecko->pruned == GECKO_NONE ? -ENOMEM : 0;
}

int gecko__new(struct gecko **out, const struct profile *profile, enum group_by group)
{
	struct gecko *gecko = calloc(1, sizeof(*gecko));
	int err;

	*out = NULL;
	if (!gecko)
		return -ENOMEM;
	gecko->sink = (struct sink){.take = take, .settle = settle, .flush = flush};
	gecko->profile = profile;
	gecko->group = group;
	err = strtab__new(&gecko->strings) ?: add_pruned(gecko);
	if (err)
		gecko__free(gecko);
	else
		*out = gecko;
	return err;
}

struct sink *gecko__sink(struct gecko *gecko)
{
	return &gecko->sink;
}

int gecko__write(struct gecko *gecko, struct buf *buf)
{
	int err = gecko->err ?: finish(gecko);

	if (!err)
		gecko_add_file(buf, gecko);
	return err ?: buf->err;
}

void gecko__free(struct gecko *gecko)
{
	if (!gecko)
		return;
	for (size_t i = 0; i < gecko->threads.len; i++)
		vec__free(&gecko->threads.items[i].samples);
	vec__free(&gecko->processes);
	vec__free(&gecko->threads);
	vec__free(&gecko->order);
	frame_table__free(&gecko->functions);
	vec__free(&gecko->frames);
	vec__free(&gecko->stacks);
	vec__free(&gecko->rows);
	vec__free(&gecko->way);
	strtab__free(gecko->strings);
	vec__free(&gecko->sources);
	hmap__free(&gecko->process_index);
	hmap__free(&gecko->lives);
	hmap__free(&gecko->thread_index);
	hmap__free(&gecko->frame_index);
	hmap__free(&gecko->stack_index);
	hmap__free(&gecko->source_index);
	free(gecko);
}

/* --- the format --- */

static int write_gecko(const struct profile *profile, enum group_by group, struct buf *buf)
{
	return replay__profile(profile, group, buf);
}

static const char *const suffixes[] = {".gecko.json", NULL};

const struct writer gecko_writer = {
	.name = "gecko",
	.suffixes = suffixes,
	.help = "for the Firefox Profiler, each sample with its time",
	.replays = true,
	.write = write_gecko,
};
