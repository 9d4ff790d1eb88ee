/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See recorder_parts.h. What the profile has under an id is told the first time that a sample needs it, and
 * has a number of this file from then on.
 */
#include "base/utf8.h"
#include "out/protobuf.h"
#include "out/record.h"
#include "out/recorder_parts.h"

#include <errno.h>
#include <string.h>

#define TEXT_MAX   (128u << 10)		  /* what is longer is cut */
#define TABLES_MAX (RECORD_CHUNK_MAX / 2) /* of a chunk: one more entry fits */

static void add_text(struct buf *buf, const char *text, size_t len)
{
	len = utf8_fit_bytes(text, len, TEXT_MAX);
	protobuf__varint(buf, len);
	buf__add(buf, text, len);
}

void recorder_add_word(struct buf *buf, const char *text)
{
	add_text(buf, text ?: "", text ? strlen(text) : 0);
}

void recorder_add_tables(struct recorder *recorder)
{
	if (recorder->tables.len)
		recorder_add_chunk(recorder, RECORD_CHUNK_TABLES, &recorder->tables);
}

/* To write an entry into. */
static struct buf *entry(struct recorder *recorder, uint8_t kind)
{
	if (recorder->tables.len > TABLES_MAX)
		recorder_add_tables(recorder);
	buf__addc(&recorder->tables, (char)kind);
	return &recorder->tables;
}

/* Makes room for the numbers of ids up to this one. */
static uint32_t *number_of(struct recorder *recorder, struct recorder_numbers *numbers, uint32_t id)
{
	static uint32_t nowhere;
	size_t len = numbers->by_id.len;

	if (id >= len) {
		int err = vec__reserve(&numbers->by_id, id + 1 - len);

		recorder_fail(recorder, err);
		if (err)
			return &nowhere;
		memset(numbers->by_id.items + len, 0, (numbers->by_id.cap - len) * sizeof(uint32_t));
		numbers->by_id.len = numbers->by_id.cap;
	}
	return &numbers->by_id.items[id];
}

static uint32_t tell_string(struct recorder *recorder, uint32_t id)
{
	const struct strtab *strings = recorder->config.profile->strings;
	uint32_t *number = number_of(recorder, &recorder->strings, id);

	if (!id)
		return 0;
	if (!*number) {
		add_text(entry(recorder, RECORD_STRING), strtab__get(strings, id),
				  strtab__len(strings, id));
		*number = ++recorder->strings.count;
	}
	return *number;
}

static uint32_t tell_frame(struct recorder *recorder, uint32_t id)
{
	const struct frame *frame = frame_table__get(&recorder->config.profile->frames, id);
	uint32_t *number = number_of(recorder, &recorder->frames, id), function, file;
	struct buf *buf;

	if (*number)
		return *number - 1;
	function = tell_string(recorder, frame->function);
	file = tell_string(recorder, frame->file);
	buf = entry(recorder, RECORD_FRAME);
	buf__addc(buf, (char)(frame->kind | (frame->approximate ? RECORD_FRAME_APPROXIMATE : 0) |
			      (frame->wait ? RECORD_FRAME_WAIT : 0)));
	protobuf__varint(buf, function);
	if (frame->kind == FRAME_PYTHON) {
		protobuf__varint(buf, file);
		protobuf__varint(buf, frame->first_line);
		protobuf__varint(buf, recorder_fold((int64_t)frame->line - frame->first_line));
	}
	*number = ++recorder->frames.count;
	return *number - 1;
}

/* A frame below a node of `paths`. */
static uint32_t tell_node(struct recorder *recorder, uint32_t parent, uint32_t frame)
{
	size_t known = recorder->paths.nodes.len;
	uint32_t node = trie__child(&recorder->paths, parent, frame);
	struct buf *buf;

	if (node == TRIE_FULL)
		recorder_fail(recorder, -ENOMEM);
	if (node == TRIE_FULL || node < known)
		return node;
	frame = tell_frame(recorder, frame);
	buf = entry(recorder, RECORD_NODE);
	protobuf__varint(buf, node - 1 - parent);
	protobuf__varint(buf, recorder->frames.count - 1 - frame);
	return node;
}

/* The node of `paths` for one of the profile's. */
static uint32_t tell_path(struct recorder *recorder, uint32_t id)
{
	const struct profile *profile = recorder->config.profile;
	uint32_t node = TRIE_ROOT;

	recorder->way.len = 0;
	for (; id != TRIE_ROOT && !*number_of(recorder, &recorder->nodes, id) && !recorder->err;
	     id = profile->trie.nodes.items[id].parent)
		recorder_fail(recorder, vec__push(&recorder->way, id));
	if (id != TRIE_ROOT)
		node = *number_of(recorder, &recorder->nodes, id) - 1;
	while (recorder->way.len && !recorder->err) {
		uint32_t frame;

		id = recorder->way.items[--recorder->way.len];
		frame = profile->trie.nodes.items[id].frame;
		if (!frame__is_root(frame_table__get(&profile->frames, frame)))
			node = tell_node(recorder, node, frame);
		*number_of(recorder, &recorder->nodes, id) = node + 1;
	}
	return node;
}

uint32_t recorder_tell_stack(struct recorder *recorder, uint32_t id)
{
	uint32_t node = tell_path(recorder, id), *number;

	if (recorder->err)
		return 0;
	number = number_of(recorder, &recorder->stacks, node);
	if (!*number) {
		protobuf__varint(entry(recorder, RECORD_STACK), recorder->paths.nodes.len - 1 - node);
		*number = ++recorder->stacks.count;
	}
	return *number - 1;
}

/* The number that a key has, or gets now. */
static uint32_t keep(struct recorder *recorder, struct hmap *map, uint64_t key, bool *is_new)
{
	const uint64_t *known = hmap__get(map, key);

	*is_new = !known;
	if (known)
		return (uint32_t)*known;
	recorder_fail(recorder, hmap__set(map, key, map->len));
	return (uint32_t)map->len - 1;
}

static uint32_t tell_process(struct recorder *recorder, const struct sink_process *process)
{
	bool is_new;
	uint32_t number = keep(recorder, &recorder->processes, process->key, &is_new);
	struct buf *buf;

	if (is_new) {
		buf = entry(recorder, RECORD_PROCESS);
		protobuf__varint(buf, process->pid);
		recorder_add_word(buf, process->command);
		recorder_add_word(buf, process->root);
		recorder_add_word(buf, process->container);
	}
	return number;
}

uint32_t recorder_tell_thread(struct recorder *recorder, const struct sink_thread *thread)
{
	const uint64_t *known = hmap__get(&recorder->threads, thread->key);
	uint32_t process;
	struct buf *buf;

	if (known)
		return (uint32_t)*known;
	process = tell_process(recorder, thread->process);
	buf = entry(recorder, RECORD_THREAD);
	protobuf__varint(buf, process);
	protobuf__varint(buf, thread->tid);
	recorder_add_word(buf, thread->name);
	recorder_add_word(buf, thread->root);
	recorder_fail(recorder, hmap__set(&recorder->threads, thread->key, recorder->threads.len));
	recorder_fail(recorder, vec__push(&recorder->thread_times, 0));
	return (uint32_t)recorder->threads.len - 1;
}

uint32_t recorder_tell_context(struct recorder *recorder, uint32_t thread, uint32_t state, uint8_t share)
{
	bool is_new;
	uint32_t number =
		keep(recorder, &recorder->contexts, (uint64_t)thread << 32 | state << 8 | share, &is_new);
	struct buf *buf;

	if (is_new) {
		buf = entry(recorder, RECORD_CONTEXT);
		protobuf__varint(buf, thread);
		protobuf__varint(buf, state);
		buf__addc(buf, (char)share);
	}
	return number;
}

static void clear_numbers(struct recorder_numbers *numbers)
{
	vec__free(&numbers->by_id);
	numbers->count = 0;
}

void recorder_clear_tables(struct recorder *recorder)
{
	clear_numbers(&recorder->strings);
	clear_numbers(&recorder->frames);
	clear_numbers(&recorder->nodes);
	clear_numbers(&recorder->stacks);
	trie__free(&recorder->paths);
	recorder_fail(recorder, trie__init(&recorder->paths, TRIE_FULL));
	hmap__clear(&recorder->processes);
	hmap__clear(&recorder->threads);
	hmap__clear(&recorder->contexts);
	recorder->thread_times.len = 0;
	recorder_fail(recorder, vec__push(&recorder->thread_times, 0));
}

void recorder_free_tables(struct recorder *recorder)
{
	clear_numbers(&recorder->strings);
	clear_numbers(&recorder->frames);
	clear_numbers(&recorder->nodes);
	clear_numbers(&recorder->stacks);
	trie__free(&recorder->paths);
	hmap__free(&recorder->processes);
	hmap__free(&recorder->threads);
	hmap__free(&recorder->contexts);
	vec__free(&recorder->thread_times);
	vec__free(&recorder->way);
	buf__free(&recorder->tables);
}
