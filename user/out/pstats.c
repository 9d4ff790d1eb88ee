/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Python's pstats.Stats loads: a marshalled dictionary
 *
 *	(file, line of the def, name): (cc, nc, tt, ct, {caller: (nc, cc, tt, ct)})
 *
 * where a profiler that counts calls has primitive calls, calls, seconds in the function itself, seconds in
 * it and what it called. Here cc are the samples in which the function was executing and nc those in which it
 * was anywhere on the stack, each once, however deep the recursion; the primitive calls of a file add up to
 * its samples. The format knows functions only, so the grouping does not matter. Annotations and roots are
 * ("~", 0, text), as built-in functions are for Python. A second object behind the first, which pstats does
 * not read, is the metadata: JSON in a str.
 *
 * The format of marshal: Python/marshal.c of any CPython since 3.4, little-endian.
 */
#include "base/hmap.h"
#include "out/words.h"
#include "out/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARSHAL_NULL   '0' /* ends a dictionary */
#define MARSHAL_DICT   '{'
#define MARSHAL_TUPLE  '('
#define MARSHAL_INT    'i'
#define MARSHAL_LONG   'l'
#define MARSHAL_FLOAT  'g'
#define MARSHAL_STRING 'u' /* UTF-8 */
#define MARSHAL_REF    'r'
#define MARSHAL_FLAG   0x80 /* what follows gets the next number for MARSHAL_REF */

#define LONG_BITS 15 /* in a digit of a MARSHAL_LONG */

#define NO_EDGE UINT32_MAX

/* A node is an edge at most. */
static const struct view_size size = {.texts = TEXTS_IN_FRAMES, .frame = 80, .node = 40, .max = 128u << 20};

/* Weight of a function, or of an edge from a caller to it. */
struct weight {
	uint64_t self, total;
};

struct edge {
	uint32_t caller, callee, next; /* of the same callee; NO_EDGE: none */
	struct weight weight;
};

struct graph {
	struct view view;
	/* Functions, by what stands in the file, so that none overwrites another one there. */
	struct frame_table keys;
	uint32_t *key_of; /* frame of the view -> function */
	struct weight *functions;
	uint32_t *edges_of; /* a function's first edge, by callee */
	VEC(struct edge) edges;
	uint32_t *numbers; /* of a function's key, for MARSHAL_REF; UINT32_MAX: not written yet */
	uint32_t written;
};

/* --- functions --- */

static int make_keys(struct graph *graph, const struct profile *profile)
{
	size_t len = graph->view.frames.frames.len;
	uint32_t no_file = strtab__add(profile->strings, "~", 1);
	uint32_t no_name = strtab__add(profile->strings, "[unnamed]", strlen("[unnamed]"));

	graph->key_of = calloc(len ?: 1, sizeof(*graph->key_of));
	if (!graph->key_of || no_file == UINT32_MAX || no_name == UINT32_MAX)
		return -ENOMEM;
	for (size_t id = 0; id < len; id++) {
		const struct frame *frame = frame_table__get(&graph->view.frames, (uint32_t)id);
		bool python = frame->kind == FRAME_PYTHON;
		struct frame key = {.function = frame->function ?: no_name,
				    .file = python ? frame->file : no_file,
				    .line = python ? frame->first_line : 0};

		graph->key_of[id] = frame_table__add(&graph->keys, &key);
		if (graph->key_of[id] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

/* --- counting --- */

static void put_edges(struct graph *graph)
{
	for (size_t i = graph->edges.len; i-- > 0;) {
		struct edge *edge = &graph->edges.items[i];

		edge->next = graph->edges_of[edge->callee];
		graph->edges_of[edge->callee] = (uint32_t)i;
	}
}

/* The edge that leads to each node, as an array that the caller frees. */
static uint32_t *find_edges(struct graph *graph)
{
	const struct trie *trie = &graph->view.trie;
	uint32_t *edges = malloc(trie->nodes.len * sizeof(*edges));
	struct hmap index = {0};
	int err = edges ? 0 : -ENOMEM;

	for (size_t id = 0; id < trie->nodes.len && !err; id++) {
		const struct trie_node *node = &trie->nodes.items[id];
		struct edge edge = {0};
		const uint64_t *known;
		uint64_t key;

		edges[id] = NO_EDGE;
		if (node->parent == TRIE_ROOT)
			continue;
		edge.callee = graph->key_of[node->frame];
		edge.caller = graph->key_of[trie->nodes.items[node->parent].frame];
		key = (uint64_t)edge.caller << 32 | edge.callee;
		known = hmap__get(&index, key);
		edges[id] = known ? (uint32_t)*known : (uint32_t)graph->edges.len;
		if (!known)
			err = hmap__set(&index, key, graph->edges.len) ?: vec__push(&graph->edges, edge);
	}
	hmap__free(&index);
	if (!err)
		return edges;
	free(edges);
	return NULL;
}

/* A weight's total grows by a whole branch exactly when it enters the current path. */
static void enter(struct weight *weight, uint32_t *on_path, uint64_t self, uint64_t total)
{
	weight->self += self;
	if ((*on_path)++ == 0)
		weight->total += total;
}

static int count(struct graph *graph)
{
	const struct trie *trie = &graph->view.trie;
	uint32_t *edges = find_edges(graph);
	uint64_t *totals = trie__totals(trie);
	uint32_t *functions_on = calloc(graph->keys.frames.len + 1, sizeof(*functions_on));
	uint32_t *edges_on = calloc(graph->edges.len + 1, sizeof(*edges_on));
	struct trie_walk walk = {0};
	int err = edges && totals && functions_on && edges_on ? trie_walk__open(&walk, trie) : -ENOMEM;

	while (!err && trie_walk__next(&walk)) {
		const struct trie_node *node = &trie->nodes.items[walk.node];
		uint32_t edge = edges[walk.node], function = graph->key_of[node->frame];

		if (walk.entering) {
			enter(&graph->functions[function], &functions_on[function], node->self,
			      totals[walk.node]);
			if (edge != NO_EDGE)
				enter(&graph->edges.items[edge].weight, &edges_on[edge], node->self,
				      totals[walk.node]);
		} else {
			functions_on[function]--;
			if (edge != NO_EDGE)
				edges_on[edge]--;
		}
	}
	trie_walk__close(&walk);
	free(edges);
	free(totals);
	free(functions_on);
	free(edges_on);
	return err;
}

static int open_graph(struct graph *graph, const struct profile *profile)
{
	int err = view__init(&graph->view, profile, GROUP_FUNCTION, &size);
	size_t len;

	if (!err)
		err = make_keys(graph, profile);
	if (err)
		return err;
	len = graph->keys.frames.len;
	graph->functions = calloc(len ?: 1, sizeof(*graph->functions));
	graph->edges_of = malloc((len ?: 1) * sizeof(*graph->edges_of));
	graph->numbers = malloc((len ?: 1) * sizeof(*graph->numbers));
	if (!graph->functions || !graph->edges_of || !graph->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		graph->edges_of[i] = graph->numbers[i] = UINT32_MAX;
	err = count(graph);
	if (!err)
		put_edges(graph);
	return err;
}

static void close_graph(struct graph *graph)
{
	view__free(&graph->view);
	frame_table__free(&graph->keys);
	free(graph->key_of);
	free(graph->functions);
	free(graph->edges_of);
	free(graph->numbers);
	vec__free(&graph->edges);
}

/* --- marshal --- */

static void add_u32(struct buf *buf, uint32_t value)
{
	unsigned char bytes[4] = {value, value >> 8, value >> 16, value >> 24};

	buf__add(buf, bytes, sizeof(bytes));
}

static void add_int(struct buf *buf, uint64_t value)
{
	uint32_t digits = 0;

	if (value <= INT32_MAX) {
		buf__addc(buf, MARSHAL_INT);
		add_u32(buf, (uint32_t)value);
		return;
	}
	for (uint64_t rest = value; rest; rest >>= LONG_BITS)
		digits++;
	buf__addc(buf, MARSHAL_LONG);
	add_u32(buf, digits);
	for (; value; value >>= LONG_BITS) {
		uint16_t digit = value & ((1 << LONG_BITS) - 1);

		buf__addc(buf, (char)(digit & 0xff));
		buf__addc(buf, (char)(digit >> 8));
	}
}

static void add_seconds(struct buf *buf, uint64_t ns)
{
	double seconds = (double)ns / 1e9;

	buf__addc(buf, MARSHAL_FLOAT);
	buf__add(buf, &seconds, sizeof(seconds));
}

static void add_tuple(struct buf *buf, uint32_t len)
{
	buf__addc(buf, MARSHAL_TUPLE);
	add_u32(buf, len);
}

static void add_string(struct buf *buf, const struct buf *text)
{
	buf__addc(buf, MARSHAL_STRING);
	add_u32(buf, (uint32_t)text->len);
	buf__add(buf, text->data, text->len);
	buf->err = buf->err ?: text->err;
}

/* (file, line, name); written once, then by number. */
static void add_key(struct buf *buf, struct graph *graph, const struct profile *profile, uint32_t function)
{
	const struct frame *key = frame_table__get(&graph->keys, function);
	struct buf file = {0}, name = {0};

	if (graph->numbers[function] != UINT32_MAX) {
		buf__addc(buf, MARSHAL_REF);
		add_u32(buf, graph->numbers[function]);
		return;
	}
	graph->numbers[function] = graph->written++;
	words__text(&file, profile->strings, key->file);
	words__text(&name, profile->strings, key->function);
	buf__addc(buf, (char)(MARSHAL_TUPLE | MARSHAL_FLAG));
	add_u32(buf, 3);
	add_string(buf, &file);
	add_int(buf, key->line);
	add_string(buf, &name);
	buf__free(&file);
	buf__free(&name);
}

static void add_callers(struct buf *buf, struct graph *graph, const struct profile *profile,
			uint32_t function)
{
	buf__addc(buf, MARSHAL_DICT);
	for (uint32_t i = graph->edges_of[function]; i != NO_EDGE; i = graph->edges.items[i].next) {
		const struct edge *edge = &graph->edges.items[i];

		add_key(buf, graph, profile, edge->caller);
		add_tuple(buf, 4);
		add_int(buf, profile__value(profile, edge->weight.total));
		add_int(buf, profile__value(profile, edge->weight.self));
		add_seconds(buf, profile__ns(profile, edge->weight.self));
		add_seconds(buf, profile__ns(profile, edge->weight.total));
	}
	buf__addc(buf, MARSHAL_NULL);
}

static void add_function(struct buf *buf, struct graph *graph, const struct profile *profile,
			 uint32_t function)
{
	const struct weight *weight = &graph->functions[function];

	add_key(buf, graph, profile, function);
	add_tuple(buf, 5);
	add_int(buf, profile__value(profile, weight->self));
	add_int(buf, profile__value(profile, weight->total));
	add_seconds(buf, profile__ns(profile, weight->self));
	add_seconds(buf, profile__ns(profile, weight->total));
	add_callers(buf, graph, profile, function);
}

static int write_pstats(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct graph graph = {0};
	struct buf metadata = {0};
	int err = open_graph(&graph, profile);

	if (!err) {
		buf__addc(buf, MARSHAL_DICT);
		for (size_t i = 0; i < graph.keys.frames.len && !buf->err; i++)
			add_function(buf, &graph, profile, (uint32_t)i);
		buf__addc(buf, MARSHAL_NULL);
		words__metadata(&metadata, profile, &graph.view);
		add_string(buf, &metadata);
		err = buf->err;
	}
	buf__free(&metadata);
	close_graph(&graph);
	return err;
}

static const char *const suffixes[] = {".pstats", NULL};

const struct writer pstats_writer = {
	.name = "pstats",
	.suffixes = suffixes,
	.help = "for Python's pstats and what reads its files; by function",
	.binary = true,
	.write = write_pstats,
};
