/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See symbolize_parts.h. Processes, containers and threads, as far as they are told apart: what stands above
 * the frames. Command lines may be any bytes, and whoever writes them escapes them.
 */
#include "run/symbolize_parts.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define ROOTS_MAX 65536 /* in the cache */

static uint32_t child_named(struct symbolizer *symbolizer, uint32_t parent, enum frame_kind kind,
			    const char *text)
{
	uint32_t frame;

	/* Each process and thread has a name of its own. */
	if (symbolizer->profile->frames.frames.len >= SYMBOLIZE_FRAMES_MAX)
		return TRIE_FULL;
	frame = symbolize_frame_named(symbolizer, kind, text);
	return frame == UINT32_MAX ? TRIE_FULL : trie__child(&symbolizer->profile->trie, parent, frame);
}

void symbolize_process_text(const struct process *process, char text[SYMBOLIZE_ROOT_TEXT])
{
	const struct container *container = process->container;
	char number[PIDNS_TEXT];

	snprintf(text, SYMBOLIZE_ROOT_TEXT, "process %s (%s%s%s)", process__number(process, number),
		 process->raw_command, container ? ", container " : "", container ? container->called : "");
}

void symbolize_container_text(const struct process *process, char text[SYMBOLIZE_ROOT_TEXT])
{
	const struct container *container = process->container;

	snprintf(text, SYMBOLIZE_ROOT_TEXT, "%s%s", container ? "container " : "[host]",
		 container ? container->raw_label : "");
}

void symbolize_thread_text(const struct symbolizer *symbolizer, const struct process *process,
			   const struct named_thread *thread, char text[SYMBOLIZE_ROOT_TEXT])
{
	pid_t inner_tid = process->inner_pid ? pidns__inner_tid(process->pid, thread->tid) : 0;
	char number[PIDNS_TEXT];

	snprintf(text, SYMBOLIZE_ROOT_TEXT, "thread %s (%s)", pidns__text(number, thread->tid, inner_tid),
		 strtab__get(symbolizer->profile->strings, thread->name));
	utf8_repair(text);
}

static uint32_t make_root(struct symbolizer *symbolizer, const struct process *process,
			  const struct named_thread *thread)
{
	uint32_t node = TRIE_ROOT;
	char text[SYMBOLIZE_ROOT_TEXT];

	if (symbolizer->by_container) {
		symbolize_container_text(process, text);
		node = child_named(symbolizer, node, FRAME_CONTAINER, text);
	} else if (symbolizer->by_process) {
		symbolize_process_text(process, text);
		node = child_named(symbolizer, node, FRAME_PROCESS, text);
	}
	if (symbolizer->by_thread && node != TRIE_FULL) {
		symbolize_thread_text(symbolizer, process, thread, text);
		node = child_named(symbolizer, node, FRAME_THREAD, text);
	}
	return node;
}

uint64_t symbolize_process_key(const struct process *process)
{
	bool is_named = process->container && process->container->name; /* it may come later */

	return (uint64_t)process->serial << 32 | (process->renamed << 1 | is_named);
}

/* The name too: tids are reused, and threads renamed. */
uint64_t symbolize_thread_key(const struct process *process, const struct named_thread *thread)
{
	uint64_t key = hmap_mix(symbolize_process_key(process) ^ hmap_seed());

	return hmap_mix(key ^ ((uint64_t)thread->name << 32 | (uint32_t)thread->tid));
}

uint32_t symbolize_root(struct symbolizer *symbolizer, const struct process *process,
			const struct named_thread *thread)
{
	const uint64_t *known;
	uint64_t key;
	uint32_t node;

	if (!symbolizer->by_process && !symbolizer->by_container && !symbolizer->by_thread)
		return TRIE_ROOT;
	key = symbolizer->by_thread ? symbolize_thread_key(process, thread) : symbolize_process_key(process);
	known = hmap__get(&symbolizer->roots, key);
	if (known)
		return *known;
	if (symbolizer->roots.len >= ROOTS_MAX)
		hmap__clear(&symbolizer->roots); /* a cache: the nodes stay */
	node = make_root(symbolizer, process, thread);
	hmap__set(&symbolizer->roots, key, node);
	return node;
}
