/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See symbolize_parts.h. Samples one by one, for whoever wants them so (agg/sink.h). Nothing is done here
 * where nobody does.
 */
#include "run/symbolize_parts.h"

#include "base/util.h"
#include "run/gil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 65536 /* known at a time */

static void free_process(struct sink_process *process)
{
	if (!process)
		return;
	free((char *)process->command);
	free((char *)process->root);
	free((char *)process->container);
	free(process);
}

static void free_thread(struct sink_thread *thread)
{
	free((char *)thread->name);
	free((char *)thread->root);
}

void symbolize_forget_threads(struct symbolizer *symbolizer)
{
	for (size_t i = 0; i < symbolizer->threads.len; i++)
		free_thread(&symbolizer->threads.items[i]);
	for (size_t i = 0; i < symbolizer->sink_process_items.len; i++)
		free_process(symbolizer->sink_process_items.items[i]);
	symbolizer->threads.len = symbolizer->sink_process_items.len = 0;
	hmap__clear(&symbolizer->sink_threads);
	hmap__clear(&symbolizer->sink_processes);
}

static struct sink_process *make_process(const struct symbolizer *symbolizer, const struct process *process)
{
	struct sink_process *made = calloc(1, sizeof(*made));
	char root[SYMBOLIZE_ROOT_TEXT], container[SYMBOLIZE_ROOT_TEXT] = "";

	if (!made)
		return NULL;
	symbolize_process_text(process, root);
	if (symbolizer->knows_containers)
		symbolize_container_text(process, container);
	made->key = symbolize_process_key(process);
	made->pid = (uint32_t)process->pid;
	made->command = strdup(process->raw_command);
	made->root = strdup(root);
	made->container = strdup(container);
	if (made->command && made->root && made->container)
		return made;
	free_process(made);
	return NULL;
}

static const struct sink_process *find_process(struct symbolizer *symbolizer, const struct process *process)
{
	uint64_t key = symbolize_process_key(process);
	const uint64_t *known = hmap__get(&symbolizer->sink_processes, key);
	struct sink_process *made;

	if (known)
		return symbolizer->sink_process_items.items[*known];
	made = make_process(symbolizer, process);
	if (!made || vec__push(&symbolizer->sink_process_items, made)) {
		free_process(made);
		return NULL;
	}
	hmap__set(&symbolizer->sink_processes, key, symbolizer->sink_process_items.len - 1);
	return made;
}

/* NULL: out of memory. */
static const struct sink_thread *find_thread(struct symbolizer *symbolizer, const struct process *process,
					     const struct named_thread *named)
{
	uint64_t key = symbolize_thread_key(process, named);
	const uint64_t *known = hmap__get(&symbolizer->sink_threads, key);
	struct sink_thread thread = {.key = key, .tid = (uint32_t)named->tid};
	char root[SYMBOLIZE_ROOT_TEXT];

	if (known)
		return &symbolizer->threads.items[*known];
	if (symbolizer->threads.len >= THREADS_MAX)
		symbolize_forget_threads(symbolizer);
	thread.process = find_process(symbolizer, process);
	symbolize_thread_text(symbolizer, process, named, root);
	thread.root = strdup(root);
	thread.name = strndup(strtab__get(symbolizer->profile->strings, named->name), PY_THREAD_NAME_BYTES);
	if (!thread.process || !thread.root || !thread.name || vec__push(&symbolizer->threads, thread)) {
		free_thread(&thread);
		return NULL;
	}
	hmap__set(&symbolizer->sink_threads, key, symbolizer->threads.len - 1);
	return &symbolizer->threads.items[symbolizer->threads.len - 1];
}

/* What has been counted of it, and what else is known. */
static uint32_t state_of(const struct symbolize_counts *before, const struct symbolize_counts *counts,
			 const struct sample_share *share)
{
	uint32_t state = share->counted ? SINK_CONTINUED : 0;

	for (int status = PBP_STATUS_NO_TARGET; status <= PBP_STATUS_NO_FRAMES; status++)
		state |= counts->status[status] != before->status[status] ? SINK_WITHOUT_PYTHON : 0;
#define NOTE(field, flag) state |= counts->field != before->field ? (flag) : 0;
	NOTE(waits, SINK_WAIT)
	NOTE(attached, SINK_ATTACHED)
	NOTE(collecting, SINK_GC)
	NOTE(raising, SINK_RAISING)
	NOTE(in_kernel, SINK_KERNEL)
	NOTE(truncated, SINK_TRUNCATED)
	NOTE(unverified, SINK_UNVERIFIED)
	NOTE(unreadable, SINK_CODE_FREED)
	NOTE(exited, SINK_EXITED)
	NOTE(approximate, SINK_LINE_APPROXIMATE)
	NOTE(pruned, SINK_BEYOND_SIZE_LIMIT)
#undef NOTE
	return state;
}

static void take_all(const struct symbolizer *symbolizer, const struct sink_sample *sample)
{
	for (struct sink *sink = symbolizer->sink; sink; sink = sink->next)
		sink->take(sink, sample);
}

void symbolize_give(struct symbolizer *symbolizer, const struct process *process,
		    const struct named_thread *thread, const struct pbp_sample *sample,
		    const struct sample_share *share, uint32_t node, const struct symbolize_counts *before)
{
	struct sink_sample out = {.time_ns = sample->time_ns,
				  .node = node,
				  .weight_ns = share->time_ns,
				  .extra_ns = share->extra_ns,
				  .kind = share->kind};

	if (!symbolizer->sink)
		return;
	if (symbolizer->sampler && out.time_ns)
		out.time_ns = sampler__local_ns(symbolizer->sampler, out.time_ns);
	out.state = state_of(before, &symbolizer->counts, share);
	out.thread = find_thread(symbolizer, process, thread);
	take_all(symbolizer, &out);
}

void symbolizer__give_more(struct symbolizer *symbolizer, const struct gil_thread *of, uint64_t time_ns,
			   uint32_t node, uint64_t weight_ns, uint64_t extra_ns, uint32_t kind)
{
	const struct process *process = processes__find(symbolizer->processes, of->pid);
	/* As it was called when its samples came. */
	const struct named_thread thread = {.tid = of->tid, .name = of->name};
	struct sink_sample out = {.time_ns = time_ns,
				  .node = node,
				  .state = SINK_CONTINUED,
				  .weight_ns = weight_ns,
				  .extra_ns = extra_ns,
				  .kind = kind};

	if (!symbolizer->sink)
		return;
	if (symbolizer->sampler && out.time_ns)
		out.time_ns = sampler__local_ns(symbolizer->sampler, out.time_ns);
	if (process && process->serial == of->serial)
		out.thread = find_thread(symbolizer, process, &thread);
	take_all(symbolizer, &out);
}

void symbolize_give_settled(struct symbolizer *symbolizer, const uint64_t exact_ns[ESTIMATE_KINDS],
			    uint32_t rest)
{
	const struct estimate *estimate = &symbolizer->estimate;
	uint64_t due_ns[ESTIMATE_KINDS];

	for (size_t kind = 0; kind < ESTIMATE_KINDS; kind++)
		due_ns[kind] = exact_ns[kind] - min_u64(exact_ns[kind], estimate->settled[kind]);
	for (struct sink *sink = symbolizer->sink; sink; sink = sink->next)
		sink->settle(sink, estimate->sums, due_ns);
	for (size_t kind = 0; kind < ESTIMATE_KINDS; kind++) {
		struct sink_sample sample = {
			.node = rest, .state = SINK_CONTINUED, .weight_ns = due_ns[kind]};

		if (due_ns[kind] && !estimate->sums[kind] && rest != ESTIMATE_HIDDEN)
			take_all(symbolizer, &sample);
	}
}
