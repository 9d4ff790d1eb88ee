/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collapsed stacks: "outer (file.py:1);inner (file.py:7) 42", one line per distinct stack, the format that
 * flame graph tools have in common.
 *
 * Each frame's text is made once and interned. Stacks whose frames have the same texts are merged in a second
 * trie, by text id; since ';' inside a text is escaped, that leaves no two equal lines. A line is then a path
 * of text ids, which costs 4 bytes a frame until it is printed.
 */
#include "agg/view.h"
#include "out/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each line has all its names, so this format is the first to become unwieldy. */
static const struct view_size size = {
	.texts = TEXTS_IN_STACKS, .stack = 24, .stack_frame = 16, .max = 96u << 20};

/* What separates frames and lines, and so cannot be part of a frame. */
#define SEPARATORS ";\n"

struct line {
	uint64_t count;
	const uint32_t *path; /* text ids, outermost first */
	uint32_t depth;
};

struct folding {
	struct strtab *texts; /* of frames, escaped */
	struct trie stacks;   /* by text id */
	uint32_t *paths;      /* of all lines, one after another */
	VEC(struct line) lines;
};

static void free_folding(struct folding *folding)
{
	vec__free(&folding->lines);
	free(folding->paths);
	trie__free(&folding->stacks);
	strtab__free(folding->texts);
}

/*
 * "name (file.py:7)", "name (file.py:~7)" where the line is approximate, "name (file.py)" where it is
 * unknown, "[name]" for an annotation.
 */
static void add_frame(struct buf *buf, const struct strtab *strings, const struct frame *frame)
{
	const char *function = strtab__get(strings, frame->function);

	buf__add_escaped(buf, *function ? function : "[unnamed]", SEPARATORS);
	if (frame->kind != FRAME_PYTHON)
		return;
	buf__adds(buf, " (");
	buf__add_escaped(buf, strtab__get(strings, frame->file), SEPARATORS);
	if (frame->line)
		buf__addf(buf, frame->approximate ? ":~%u" : ":%u", frame->line);
	buf__addc(buf, ')');
}

/* The text id of each frame, as an array that the caller frees. */
static uint32_t *render_frames(struct folding *folding, const struct strtab *strings,
			       const struct frame_table *frames)
{
	uint32_t *texts = calloc(frames->frames.len ?: 1, sizeof(*texts));
	struct buf buf = {0};

	for (size_t id = 0; texts && id < frames->frames.len; id++) {
		buf.len = 0;
		add_frame(&buf, strings, frame_table__get(frames, (uint32_t)id));
		texts[id] = buf.err ? UINT32_MAX : strtab__add(folding->texts, buf.data, buf.len);
		if (texts[id] == UINT32_MAX) {
			free(texts);
			texts = NULL;
		}
	}
	buf__free(&buf);
	return texts;
}

/* Rebuild the trie by text: parents precede children, so one pass in order of ids does it. */
static int merge_stacks(struct folding *folding, const struct trie *trie, const uint32_t *texts)
{
	uint32_t *merged = calloc(trie->nodes.len, sizeof(*merged));
	int err = merged ? 0 : -ENOMEM;

	for (size_t id = 1; !err && id < trie->nodes.len; id++) {
		const struct trie_node *node = &trie->nodes.items[id];

		merged[id] = trie__child(&folding->stacks, merged[node->parent], texts[node->frame]);
		if (merged[id] == TRIE_FULL)
			err = -ENOMEM;
		else
			trie__add(&folding->stacks, merged[id], node->self);
	}
	free(merged);
	return err;
}

/* Write a node's path backwards, so that it ends before `end`. Returns its beginning. */
static const uint32_t *fill_path(const struct trie *stacks, uint32_t node, uint32_t *end)
{
	for (; node != TRIE_ROOT; node = stacks->nodes.items[node].parent)
		*--end = stacks->nodes.items[node].frame;
	return end;
}

static int collect_lines(struct folding *folding, const struct profile *profile)
{
	const struct trie *stacks = &folding->stacks;
	uint32_t *depths = calloc(stacks->nodes.len, sizeof(*depths)), *end;
	size_t path_len = 0;
	int err = 0;

	for (size_t id = 1; depths && id < stacks->nodes.len; id++) {
		depths[id] = depths[stacks->nodes.items[id].parent] + 1;
		if (stacks->nodes.items[id].self)
			path_len += depths[id];
	}
	folding->paths = end = calloc(path_len ?: 1, sizeof(*end));
	if (!depths || !end)
		err = -ENOMEM;

	for (size_t id = 1; !err && id < stacks->nodes.len; id++) {
		struct line line = {.count = profile__value(profile, stacks->nodes.items[id].self)};

		if (!line.count)
			continue;
		line.depth = depths[id];
		end += line.depth;
		line.path = fill_path(stacks, (uint32_t)id, end);
		err = vec__push(&folding->lines, line);
	}
	free(depths);
	return err;
}

/* Compare the texts of two different frames as they stand in a line: followed by ';', or by nothing. */
static int compare_texts(const char *a, bool a_goes_on, const char *b, bool b_goes_on)
{
	unsigned char left, right;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	left = *a ? (unsigned char)*a : a_goes_on ? ';' : 0;
	right = *b ? (unsigned char)*b : b_goes_on ? ';' : 0;
	return (left > right) - (left < right);
}

/* Largest count first, then by text, byte for byte. No two lines are equal. */
static int compare_lines(const void *left, const void *right, void *texts)
{
	const struct line *a = left, *b = right;
	uint32_t i = 0;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	while (i < a->depth && i < b->depth && a->path[i] == b->path[i])
		i++;
	if (i == a->depth || i == b->depth)
		return (a->depth > b->depth) - (a->depth < b->depth);
	return compare_texts(strtab__get(texts, a->path[i]), i + 1 < a->depth, strtab__get(texts, b->path[i]),
			     i + 1 < b->depth);
}

static void add_line(struct buf *buf, const struct strtab *texts, const struct line *line)
{
	for (uint32_t i = 0; i < line->depth; i++) {
		if (i)
			buf__addc(buf, ';');
		buf__add(buf, strtab__get(texts, line->path[i]), strtab__len(texts, line->path[i]));
	}
	buf__addf(buf, " %llu\n", (unsigned long long)line->count);
}

static int fold(struct folding *folding, const struct profile *profile, enum group_by group)
{
	uint32_t *texts = NULL;
	struct view view;
	int err;

	err = view__init(&view, profile, group, &size);
	if (err)
		goto out;
	err = -ENOMEM;
	texts = render_frames(folding, profile->strings, &view.frames);
	if (!texts)
		goto out;
	err = merge_stacks(folding, &view.trie, texts);
	if (!err)
		err = collect_lines(folding, profile);
out:
	free(texts);
	view__free(&view);
	return err;
}

static int write_collapsed(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct folding folding = {0};
	int err;

	err = strtab__new(&folding.texts);
	if (!err)
		err = trie__init(&folding.stacks, TRIE_FULL);
	if (!err)
		err = fold(&folding, profile, group);
	if (!err && folding.lines.len)
		qsort_r(folding.lines.items, folding.lines.len, sizeof(struct line), compare_lines,
			folding.texts);
	for (size_t i = 0; !err && i < folding.lines.len; i++) {
		add_line(buf, folding.texts, &folding.lines.items[i]);
		err = buf->err;
	}
	free_folding(&folding);
	return err;
}

static const char *const suffixes[] = {".collapsed", ".folded", ".txt", NULL};

const struct writer collapsed_writer = {
	.name = "collapsed",
	.suffixes = suffixes,
	.help = "one line per stack, for flame graph tools",
	.write = write_collapsed,
};
