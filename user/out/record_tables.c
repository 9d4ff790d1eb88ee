/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_parts.h. What a file numbers, by its numbers: every reference is checked here, once.
 */
#include "out/record_parts.h"

#include "out/record.h"

#include <errno.h>
#include <string.h>

/* An entry of a table, `item`, under the next number. 0, -ENOMEM or -E2BIG. */
#define push(table, item, max) ((table)->len >= (max) ? -E2BIG : vec__push(table, item))

/* What a number is, which comes next; 0 if there is no such number. */
#define take_reference(bytes, table)                                                                         \
	({                                                                                                   \
		uint64_t number_ = record_take_number(bytes);                                                \
		(bytes)->bad |= number_ >= (table)->len;                                                     \
		number_ < (table)->len ? (table)->items[number_] : 0;                                        \
	})

/* The same, where it is said how many came after it. */
#define take_back(bytes, table)                                                                              \
	({                                                                                                   \
		uint64_t back_ = record_take_number(bytes);                                                  \
		(bytes)->bad |= back_ >= (table)->len;                                                       \
		back_ < (table)->len ? (table)->items[(table)->len - 1 - back_] : 0;                         \
	})

static int add_string(struct record_reader *reader, const char *text, size_t len, uint32_t *id)
{
	if (strtab__bytes(reader->profile->strings) > RECORD_STRINGS_MAX)
		return -E2BIG;
	*id = strtab__add(reader->profile->strings, text, len);
	return *id == UINT32_MAX ? -ENOMEM : 0;
}

static int take_string(struct record_reader *reader, struct record_bytes *bytes, uint32_t *id)
{
	size_t len;
	const char *text = record_take_text(bytes, &len);

	return add_string(reader, text, len, id);
}

static int take_frame(struct record_reader *reader, struct record_bytes *bytes)
{
	struct record_stream *stream = reader->stream;
	struct frame_table *table = &reader->profile->frames;
	uint8_t kind = record_take_byte(bytes);
	struct frame frame = {.kind = kind % RECORD_FRAME_APPROXIMATE,
			      .approximate = kind & RECORD_FRAME_APPROXIMATE,
			      .wait = kind & RECORD_FRAME_WAIT};
	uint64_t first_line;
	int64_t line;
	uint32_t id;

	frame.function = take_reference(bytes, &stream->strings);
	if (frame.kind == FRAME_PYTHON) {
		frame.file = take_reference(bytes, &stream->strings);
		first_line = record_take_number(bytes);
		line = record_take_signed(bytes);
		bytes->bad |= first_line > UINT32_MAX || line > UINT32_MAX || line < -(int64_t)UINT32_MAX ||
			      (int64_t)first_line + line < 0 || (int64_t)first_line + line > UINT32_MAX;
		frame.first_line = (uint32_t)first_line;
		frame.line = bytes->bad ? 0 : (uint32_t)((int64_t)first_line + line);
	}
	/* What stands above stacks is not in them. */
	bytes->bad |= kind >= RECORD_FRAME_WAIT << 1 || frame.kind >= FRAME_KINDS || frame__is_root(&frame);
	bytes->bad |= frame.wait && frame.kind != FRAME_SPECIAL;
	bytes->bad |= frame.approximate && frame.kind != FRAME_PYTHON;
	if (bytes->bad)
		return 0;
	if (table->frames.len >= RECORD_FRAMES_MAX)
		return -E2BIG;
	id = frame_table__add(table, &frame);
	return id == UINT32_MAX ? -ENOMEM : push(&stream->frames, id, RECORD_FRAMES_MAX);
}

static int take_node(struct record_reader *reader, struct record_bytes *bytes)
{
	struct record_stream *stream = reader->stream;
	uint32_t parent = take_back(bytes, &stream->nodes), frame = take_back(bytes, &stream->frames), node;

	if (bytes->bad)
		return 0;
	node = trie__child(&reader->stacks, parent, frame);
	return node == TRIE_FULL ? -E2BIG : push(&stream->nodes, node, RECORD_NODES_MAX);
}

static int take_stack(struct record_stream *stream, struct record_bytes *bytes)
{
	uint32_t node = take_back(bytes, &stream->nodes);

	return bytes->bad ? 0 : push(&stream->stacks, node, RECORD_NODES_MAX);
}

/* The same one again, as after a reset, has the index that it had. RECORD_NONE: it is new. */
static uint32_t find_known(const struct record_stream *stream, uint64_t *hash, const uint32_t *words,
			   size_t count)
{
	const uint64_t *known;

	*hash = hmap_seed() ^ count;
	for (size_t i = 0; i < count; i++)
		*hash = hmap_mix(*hash ^ words[i]);
	known = hmap__get(&stream->known, *hash);
	return known ? (uint32_t)*known : RECORD_NONE;
}

static int take_process(struct record_reader *reader, struct record_bytes *bytes)
{
	struct record_stream *stream = reader->stream;
	uint64_t pid = record_take_number(bytes), hash;
	struct record_process process = {.pid = (uint32_t)pid};
	int err = take_string(reader, bytes, &process.command)
			  ?: take_string(reader, bytes, &process.root)
			  ?: take_string(reader, bytes, &process.container);
	uint32_t index;

	bytes->bad |= pid > INT32_MAX;
	if (err || bytes->bad)
		return err;
	index = find_known(stream, &hash, (const uint32_t *)&process, sizeof(process) / sizeof(uint32_t));
	if (index == RECORD_NONE) {
		index = (uint32_t)reader->processes.len;
		err = push(&reader->processes, process, RECORD_OTHERS_MAX)
			      ?: hmap__set(&stream->known, hash, index);
	}
	return err ?: push(&stream->processes, index, RECORD_OTHERS_MAX);
}

static int take_thread(struct record_reader *reader, struct record_bytes *bytes)
{
	struct record_stream *stream = reader->stream;
	struct record_thread thread = {.process = take_reference(bytes, &stream->processes)};
	uint64_t tid = record_take_number(bytes), hash;
	int err = take_string(reader, bytes, &thread.name) ?: take_string(reader, bytes, &thread.root);
	uint32_t index;

	thread.tid = (uint32_t)tid;
	bytes->bad |= tid > INT32_MAX;
	if (err || bytes->bad)
		return err;
	/* One word more than its own, so that none is taken for a process. */
	index = find_known(stream, &hash,
			   (const uint32_t[]){thread.process, thread.tid, thread.name, thread.root, 0}, 5);
	if (index == RECORD_NONE) {
		index = (uint32_t)reader->threads.len;
		err = push(&reader->threads, thread, RECORD_OTHERS_MAX)
			      ?: hmap__set(&stream->known, hash, index);
	}
	return err ?: push(&stream->threads, index, RECORD_OTHERS_MAX)
	       ?: push(&stream->thread_times, 0, RECORD_OTHERS_MAX + 1);
}

static int take_context(struct record_stream *stream, struct record_bytes *bytes)
{
	uint64_t number = record_take_number(bytes), state = record_take_number(bytes);
	struct record_context context = {.thread = RECORD_NONE,
					 .number = (uint32_t)number,
					 .state = state & SINK_STATES, /* others are of newer versions */
					 .share = record_take_byte(bytes)};

	bytes->bad |= number > stream->threads.len || context.share > RECORD_SHARE_EXTRA;
	if (bytes->bad)
		return 0;
	if (number)
		context.thread = stream->threads.items[number - 1];
	return push(&stream->contexts, context, RECORD_OTHERS_MAX);
}

static int take_entry(struct record_reader *reader, struct record_bytes *bytes)
{
	struct record_stream *stream = reader->stream;
	uint32_t id = 0;
	int err;

	switch (record_take_byte(bytes)) {
	case RECORD_STRING:
		err = take_string(reader, bytes, &id);
		return err ?: push(&stream->strings, id, RECORD_NODES_MAX);
	case RECORD_FRAME:
		return take_frame(reader, bytes);
	case RECORD_NODE:
		return take_node(reader, bytes);
	case RECORD_STACK:
		return take_stack(stream, bytes);
	case RECORD_PROCESS:
		return take_process(reader, bytes);
	case RECORD_THREAD:
		return take_thread(reader, bytes);
	case RECORD_CONTEXT:
		return take_context(stream, bytes);
	}
	bytes->bad = true;
	return 0;
}

int record_take_tables(struct record_reader *reader, struct record_bytes *bytes)
{
	int err = 0;

	while (bytes->at < bytes->end && !bytes->bad && !err)
		err = take_entry(reader, bytes);
	return err;
}

void record_clear_tables(struct record_stream *stream)
{
	/* The first ones of some are not in the file: "", the root, the samples of no thread. */
	stream->strings.len = stream->nodes.len = stream->thread_times.len = 1;
	stream->strings.items[0] = 0;
	stream->nodes.items[0] = TRIE_ROOT;
	stream->thread_times.items[0] = 0;
	stream->frames.len = stream->stacks.len = stream->processes.len = 0;
	stream->threads.len = stream->contexts.len = 0;
}

int record_open_tables(struct record_stream *stream)
{
	if (vec__reserve(&stream->strings, 1) || vec__reserve(&stream->nodes, 1) ||
	    vec__reserve(&stream->thread_times, 1))
		return -ENOMEM;
	record_clear_tables(stream);
	return 0;
}

void record_close_tables(struct record_stream *stream)
{
	vec__free(&stream->strings);
	vec__free(&stream->frames);
	vec__free(&stream->nodes);
	vec__free(&stream->stacks);
	vec__free(&stream->processes);
	vec__free(&stream->threads);
	vec__free(&stream->contexts);
	vec__free(&stream->thread_times);
	hmap__free(&stream->known);
}
