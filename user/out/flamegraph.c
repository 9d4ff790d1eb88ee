/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flame graph as one HTML file that needs nothing else: the page of user/out/viewer (START there:
 * flamegraph.html), put together when the program is built, with the profile as JSON in it. Its parts are
 * arrays, since objects would be several times as long:
 *
 *	metadata	words.h
 *	unit		name of what readers count, the weight of one, and the nanoseconds of CPU time that
 *			it stands for
 *	group		"line" or "function": what is shown first
 *	texts		names and files
 *	functions	name, file: indices in texts; line: of the def, 0 where not known; kind: enum
 *			frame_kind
 *	frames		function; line: executing, 0 where not known, negative if it is approximate
 *	nodes		of the stack trie, without the root, which is number 0: frame; back: how far before it
 *			its parent stands; self: weight
 *	diff		of two profiles that are compared: sides, base and new, with their metadata; base,
 *			new: weights of each node. `self` is the sum of their shares then
 *
 * Texts of the target are data there, never markup: no "<" of theirs reaches the page, which puts them into
 * text nodes and canvases only.
 */
#include "base/json.h"
#include "out/diff.h"
#include "out/page.h"
#include "out/words.h"
#include "out/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char page[] = {
#include "flamegraph_page.inc"
};

/* A browser opens it at once, and a mail can carry it. */
static const struct view_size size = {.frame = 40, .node = 10, .stack = 4, .max = 17u << 20};

/* ... with the weights of both. */
static const struct view_size diff_size = {.frame = 40, .node = 25, .stack = 4, .max = 17u << 20};

struct lists {
	struct frame_table functions; /* frames without their lines */
	uint32_t *function_of;	      /* by frame */
	uint32_t *text_of;	      /* by string; 0: not there yet */
	VEC(uint32_t) texts;	      /* strings */
};

static int make_lists(struct lists *lists, const struct view *view, const struct strtab *strings)
{
	size_t len = view->frames.frames.len;
	int err = 0;

	lists->function_of = calloc(len ?: 1, sizeof(*lists->function_of));
	lists->text_of = calloc(strtab__count(strings), sizeof(*lists->text_of));
	if (!lists->function_of || !lists->text_of)
		return -ENOMEM;
	for (size_t id = 0; id < len && !err; id++) {
		struct frame function = *frame_table__get(&view->frames, (uint32_t)id);

		function.line = 0;
		function.approximate = false;
		lists->function_of[id] = frame_table__add(&lists->functions, &function);
		err = lists->function_of[id] == UINT32_MAX ? -ENOMEM : 0;
		for (int i = 0; i < 2 && !err; i++) {
			uint32_t string = i ? function.file : function.function;

			if (lists->text_of[string])
				continue;
			err = vec__push(&lists->texts, string);
			lists->text_of[string] = (uint32_t)lists->texts.len;
		}
	}
	return err;
}

static void free_lists(struct lists *lists)
{
	frame_table__free(&lists->functions);
	free(lists->function_of);
	free(lists->text_of);
	vec__free(&lists->texts);
}

static void add_texts(struct buf *json, const struct lists *lists, const struct strtab *strings)
{
	buf__adds(json, ",\n\"texts\":[");
	for (size_t i = 0; i < lists->texts.len; i++) {
		buf__adds(json, i ? ",\n" : "");
		words__json_text(json, strings, lists->texts.items[i]);
	}
	buf__addc(json, ']');
}

/* One array: "name": [1, 2]; `number` gives an item. */
static void add_array(struct buf *json, const char *name, size_t from, size_t to,
		      int64_t (*number)(const struct lists *lists, const struct view *view, size_t i),
		      const struct lists *lists, const struct view *view)
{
	buf__addf(json, "\"%s\":[", name);
	for (size_t i = from; i < to; i++) {
		int64_t value = number(lists, view, i);

		if (i > from)
			buf__addc(json, ',');
		if (value < 0)
			buf__addc(json, '-');
		buf__add_number(json, value < 0 ? (uint64_t)-value : (uint64_t)value);
	}
	buf__addc(json, ']');
}

static int64_t function_name(const struct lists *lists, const struct view *view, size_t i)
{
	return lists->text_of[lists->functions.frames.items[i].function] - 1;
}

static int64_t function_file(const struct lists *lists, const struct view *view, size_t i)
{
	return lists->text_of[lists->functions.frames.items[i].file] - 1;
}

static int64_t function_line(const struct lists *lists, const struct view *view, size_t i)
{
	return lists->functions.frames.items[i].first_line;
}

static int64_t function_kind(const struct lists *lists, const struct view *view, size_t i)
{
	return lists->functions.frames.items[i].kind;
}

static int64_t frame_function(const struct lists *lists, const struct view *view, size_t i)
{
	return lists->function_of[i];
}

static int64_t frame_line(const struct lists *lists, const struct view *view, size_t i)
{
	const struct frame *frame = frame_table__get(&view->frames, (uint32_t)i);

	return frame->approximate ? -(int64_t)frame->line : frame->line;
}

static int64_t node_frame(const struct lists *lists, const struct view *view, size_t i)
{
	return view->trie.nodes.items[i].frame;
}

static int64_t node_back(const struct lists *lists, const struct view *view, size_t i)
{
	return (int64_t)(i - view->trie.nodes.items[i].parent);
}

static int64_t node_self(const struct lists *lists, const struct view *view, size_t i)
{
	return (int64_t)view->trie.nodes.items[i].self;
}

static void add_lists(struct buf *json, const struct lists *lists, const struct view *view)
{
	size_t functions = lists->functions.frames.len, frames = view->frames.frames.len;
	size_t nodes = view->trie.nodes.len;

	buf__adds(json, ",\n\"functions\":{");
	add_array(json, "name", 0, functions, function_name, lists, view);
	buf__adds(json, ",\n");
	add_array(json, "file", 0, functions, function_file, lists, view);
	buf__adds(json, ",\n");
	add_array(json, "line", 0, functions, function_line, lists, view);
	buf__adds(json, ",\n");
	add_array(json, "kind", 0, functions, function_kind, lists, view);
	buf__adds(json, "},\n\"frames\":{");
	add_array(json, "function", 0, frames, frame_function, lists, view);
	buf__adds(json, ",\n");
	add_array(json, "line", 0, frames, frame_line, lists, view);
	buf__adds(json, "},\n\"nodes\":{");
	add_array(json, "frame", 1, nodes, node_frame, lists, view);
	buf__adds(json, ",\n");
	add_array(json, "back", 1, nodes, node_back, lists, view);
	buf__adds(json, ",\n");
	add_array(json, "self", 1, nodes, node_self, lists, view);
	buf__adds(json, "}");
}

/* Texts are of `strings`, all else that is said of the run is of `profile`. */
static int add_profile(struct buf *json, const struct profile *profile, const struct strtab *strings,
		       enum group_by group, const struct view *view)
{
	struct lists lists = {0};
	int err = make_lists(&lists, view, strings);

	if (!err) {
		buf__adds(json, "{\"metadata\":");
		words__metadata(json, profile, view);
		words__unit(json, profile);
		buf__addf(json, ",\n\"group\":\"%s\"", group == GROUP_LINE ? "line" : "function");
		add_texts(json, &lists, strings);
		add_lists(json, &lists, view);
		err = json->err;
	}
	free_lists(&lists);
	return err;
}

static int write_flamegraph(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct buf json = {0};
	struct view view;
	int err;

	/* Lines always: the page can leave them out. */
	err = view__init(&view, profile, GROUP_LINE, &size);
	if (!err)
		err = add_profile(&json, profile, profile->strings, group, &view);
	buf__addc(&json, '}');
	view__free(&view);
	if (!err)
		err = page__write(buf, page, sizeof(page), &json);
	buf__free(&json);
	return err;
}

/* --- of two profiles --- */

/* What one side weighs at each node of the view. */
static int add_side(struct buf *json, const struct compare *compare, int side, const struct view *view)
{
	uint64_t *weights = calloc(view->trie.nodes.len, sizeof(*weights));
	static const char *const names[COMPARE_SIDES] = {"base", "new"};

	if (!weights)
		return -ENOMEM;
	for (size_t id = 0; id < compare->self[side].len; id++)
		if (compare->self[side].items[id])
			weights[view->node_of[id]] += compare->self[side].items[id];
	buf__addf(json, "\"%s\":[", names[side]);
	for (size_t id = 1; id < view->trie.nodes.len; id++) {
		if (id > 1)
			buf__addc(json, ',');
		buf__add_number(json, weights[id]);
	}
	buf__adds(json, "]");
	free(weights);
	return 0;
}

static int add_diff(struct buf *json, const struct diff_side sides[COMPARE_SIDES],
		    const struct compare *compare, const struct view *view)
{
	int err = 0;

	buf__adds(json, ",\n\"diff\":{\"sides\":[");
	for (int i = 0; i < COMPARE_SIDES; i++) {
		struct buf name = {0};

		buf__add_escaped(&name, sides[i].name, NULL);
		buf__adds(json, i ? ",\n{\"name\":" : "\n{\"name\":");
		json__string(json, name.data ?: "", name.len);
		buf__adds(json, ",\"total\":");
		buf__add_number(json, compare->total[i]);
		buf__addf(json, ",\"ms_per_second\":%.6f,\"metadata\":",
			  compare__per_second(compare, i, compare->total[i]));
		words__metadata(json, sides[i].profile, NULL);
		buf__addc(json, '}');
		buf__free(&name);
	}
	buf__adds(json, "],\n");
	for (int i = 0; i < COMPARE_SIDES && !err; i++) {
		buf__adds(json, i ? ",\n" : "");
		err = add_side(json, compare, i, view);
	}
	buf__adds(json, "}}");
	return err;
}

int diff__page(const struct diff_side sides[COMPARE_SIDES], const struct compare *compare, struct buf *out)
{
	const struct profile *new = sides[COMPARE_NEW].profile;
	struct buf json = {0};
	struct view view;
	int err = view__init(&view, &compare->both, GROUP_LINE, &diff_size);

	err = err ?: add_profile(&json, new, compare->both.strings, GROUP_FUNCTION, &view);
	err = err ?: add_diff(&json, sides, compare, &view);
	view__free(&view);
	err = err ?: page__write(out, page, sizeof(page), &json);
	buf__free(&json);
	return err;
}

static const char *const suffixes[] = {".html", NULL};

const struct writer flamegraph_writer = {
	.name = "flamegraph",
	.suffixes = suffixes,
	.help = "flame graph with tables, one page for a browser",
	.write = write_flamegraph,
};
