/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See symbolize_parts.h. Processes, containers and threads, as far as they are told apart: what stands above
 * the frames.
 */
#include "run/symbolize_parts.h"

#include "base/utf8.h"
#include "run/containers.h"

#include <stdio.h>
#include <string.h>

#define ROOTS_MAX 65536 /* in the cache */

/* Names that the kernel has may be any bytes. */
static uint32_t child_named(struct symbolizer *symbolizer, uint32_t parent, enum frame_kind kind, char *text)
{
	uint32_t frame;

	/* Each process and thread has a name of its own. */
	if (symbolizer->profile->frames.frames.len >= SYMBOLIZE_FRAMES_MAX)
		return TRIE_FULL;
	utf8_repair(text);
	frame = symbolize_frame_named(symbolizer, kind, text);
	return frame == UINT32_MAX ? TRIE_FULL : trie__child(&symbolizer->profile->trie, parent, frame);
}

static uint32_t thread_node(struct symbolizer *symbolizer, uint32_t parent, const struct process *process,
			    const struct named_thread *thread)
{
	pid_t inner_tid = process->inner_pid ? pidns__inner_tid(process->pid, thread->tid) : 0;
	struct buf text = {0};
	char number[PIDNS_TEXT];
	uint32_t node;

	buf__addf(&text, "thread %s (%s)", pidns__text(number, thread->tid, inner_tid),
		  strtab__get(symbolizer->profile->strings, thread->name));
	buf__addc(&text, '\0');
	node = text.err ? TRIE_FULL : child_named(symbolizer, parent, FRAME_THREAD, text.data);
	buf__free(&text);
	return node;
}

static uint32_t make_root(struct symbolizer *symbolizer, const struct process *process,
			  const struct named_thread *thread)
{
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
	if (symbolizer->by_thread && node != TRIE_FULL)
		node = thread_node(symbolizer, node, process, thread);
	return node;
}

static uint64_t root_key(const struct symbolizer *symbolizer, const struct process *process,
			 const struct named_thread *thread)
{
	bool is_named = process->container && process->container->name; /* it may come later */
	uint64_t key = (uint64_t)process->serial << 32 | (process->renamed << 1 | is_named);

	if (!symbolizer->by_thread)
		return key;
	/* The name too: tids are reused, and threads renamed. */
	return hmap_mix(hmap_mix(key ^ hmap_seed()) ^ ((uint64_t)thread->name << 32 | (uint32_t)thread->tid));
}

uint32_t symbolize_root(struct symbolizer *symbolizer, const struct process *process,
			const struct pbp_sample *sample, const struct named_thread *thread)
{
	const uint64_t *known;
	uint64_t key;
	uint32_t node;

	if (!symbolizer->by_process && !symbolizer->by_container && !symbolizer->by_thread)
		return TRIE_ROOT;
	key = root_key(symbolizer, process, thread);
	known = hmap__get(&symbolizer->roots, key);
	if (known)
		return *known;
	if (symbolizer->roots.len >= ROOTS_MAX)
		hmap__clear(&symbolizer->roots); /* a cache: the nodes stay */
	node = make_root(symbolizer, process, thread);
	hmap__set(&symbolizer->roots, key, node);
	return node;
}
