/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three steps: merge the trie by groups, find the least weight at which the rest fits, copy what is shown. A
 * branch weighs no more than the one that it hangs from, so what is shown hangs together.
 */
#include "agg/view.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#define NONE	    UINT32_MAX
#define REFINEMENTS 6

/* A trie by groups, on its way into the view. */
struct source {
	const struct profile *profile;
	const struct trie *trie;	  /* the profile's, or `merged` */
	const struct frame_table *frames; /* ... and what its nodes are */
	struct trie merged;
	struct frame_table functions;
	uint64_t *totals;
	uint32_t *depths;
};

/* Of each node, the root's being 0: an array that the caller frees. */
static uint32_t *count_depths(const struct trie *trie)
{
	uint32_t *depths = calloc(trie->nodes.len, sizeof(*depths));

	for (size_t id = 1; depths && id < trie->nodes.len; id++)
		depths[id] = depths[trie->nodes.items[id].parent] + 1;
	return depths;
}

/* --- groups --- */

/* The function of each frame, as an array that the caller frees. */
static uint32_t *group_functions(struct source *source)
{
	const struct frame_table *frames = &source->profile->frames;
	uint32_t *functions = calloc(frames->frames.len ?: 1, sizeof(*functions));

	for (size_t id = 0; functions && id < frames->frames.len; id++) {
		struct frame frame = *frame_table__get(frames, (uint32_t)id);

		frame.line = frame.first_line;
		frame.approximate = false;
		functions[id] = frame_table__add(&source->functions, &frame);
		if (functions[id] == NONE) {
			free(functions);
			functions = NULL;
		}
	}
	return functions;
}

static int merge_nodes(struct source *source, const uint32_t *functions)
{
	const struct trie *trie = &source->profile->trie;
	uint32_t *merged = calloc(trie->nodes.len, sizeof(*merged));
	int err = merged ? 0 : -ENOMEM;

	if (!err)
		trie__add(&source->merged, TRIE_ROOT, trie->nodes.items[TRIE_ROOT].self);
	for (size_t id = 1; !err && id < trie->nodes.len; id++) {
		const struct trie_node *node = &trie->nodes.items[id];

		merged[id] = trie__child(&source->merged, merged[node->parent], functions[node->frame]);
		if (merged[id] == TRIE_FULL)
			err = -ENOMEM;
		else
			trie__add(&source->merged, merged[id], node->self);
	}
	free(merged);
	return err;
}

static int open_source(struct source *source, const struct profile *profile, enum group_by group)
{
	uint32_t *functions = NULL;
	int err = 0;

	*source = (struct source){.profile = profile, .trie = &profile->trie, .frames = &profile->frames};
	if (group == GROUP_FUNCTION) {
		functions = group_functions(source);
		err = functions ? trie__init(&source->merged, TRIE_FULL) : -ENOMEM;
		if (!err)
			err = merge_nodes(source, functions);
		source->trie = &source->merged;
		source->frames = &source->functions;
	}
	free(functions);
	if (err)
		return err;
	source->totals = trie__totals(source->trie);
	source->depths = count_depths(source->trie);
	return source->totals && source->depths ? 0 : -ENOMEM;
}

static void close_source(struct source *source)
{
	trie__free(&source->merged);
	frame_table__free(&source->functions);
	free(source->totals);
	free(source->depths);
}

/* --- size --- */

struct sizing {
	uint32_t *texts;		    /* length of each text in a file */
	uint64_t *paths;		    /* of the texts of a node and those above it */
	uint32_t *frames, *strings, *folds; /* round in which they were counted */
	uint32_t round;
};

/* As JSON in a page has it, or a collapsed stack: no format has it longer. */
static uint32_t written_size(struct buf *buf, const char *text)
{
	size_t size;

	buf->len = 0;
	buf__add_escaped(buf, text, ";\n");
	size = buf->len;
	for (size_t i = 0; i < buf->len; i++)
		size += buf->data[i] == '<' ? 5 : buf->data[i] == '"' || buf->data[i] == '\\';
	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static int measure_texts(struct sizing *sizing, const struct strtab *strings)
{
	uint32_t count = strtab__count(strings);
	struct buf buf = {0};
	int err;

	sizing->texts = calloc(count, sizeof(*sizing->texts));
	if (!sizing->texts)
		return -ENOMEM;
	for (uint32_t id = 0; id < count; id++)
		sizing->texts[id] = written_size(&buf, strtab__get(strings, id));
	err = buf.err;
	buf__free(&buf);
	return err;
}

static uint64_t frame_texts(const struct source *source, const struct sizing *sizing, uint32_t id)
{
	const struct frame *frame = frame_table__get(source->frames, id);

	return (uint64_t)sizing->texts[frame->function] + sizing->texts[frame->file];
}

static int measure_paths(struct sizing *sizing, const struct source *source)
{
	const struct trie *trie = source->trie;

	sizing->paths = calloc(trie->nodes.len, sizeof(*sizing->paths));
	for (size_t id = 1; sizing->paths && id < trie->nodes.len; id++)
		sizing->paths[id] = sizing->paths[trie->nodes.items[id].parent] +
				    frame_texts(source, sizing, trie->nodes.items[id].frame);
	return sizing->paths ? 0 : -ENOMEM;
}

static int open_sizing(struct sizing *sizing, const struct source *source, const struct view_size *size)
{
	int err = measure_texts(sizing, source->profile->strings);

	if (!err && size->texts == TEXTS_IN_STACKS)
		err = measure_paths(sizing, source);
	sizing->frames = calloc(source->frames->frames.len ?: 1, sizeof(*sizing->frames));
	sizing->strings = calloc(strtab__count(source->profile->strings), sizeof(*sizing->strings));
	sizing->folds = calloc(source->trie->nodes.len, sizeof(*sizing->folds));
	return err ?: sizing->frames && sizing->strings && sizing->folds ? 0 : -ENOMEM;
}

static void close_sizing(struct sizing *sizing)
{
	free(sizing->texts);
	free(sizing->paths);
	free(sizing->frames);
	free(sizing->strings);
	free(sizing->folds);
}

static bool is_first(uint32_t *seen, uint32_t id, uint32_t round)
{
	bool first = seen[id] != round;

	seen[id] = round;
	return first;
}

static uint64_t text_size(struct sizing *sizing, uint32_t id)
{
	return is_first(sizing->strings, id, sizing->round) ? sizing->texts[id] : 0;
}

static uint64_t frame_size(const struct source *source, struct sizing *sizing, const struct view_size *size,
			   uint32_t id)
{
	const struct frame *frame = frame_table__get(source->frames, id);

	if (!is_first(sizing->frames, id, sizing->round))
		return 0;
	if (size->texts == TEXTS_IN_FRAMES)
		return size->frame + frame_texts(source, sizing, id);
	return size->frame + text_size(sizing, frame->function) + text_size(sizing, frame->file);
}

/* A stack of its own: of the frames down to this node. */
static uint64_t stack_size(const struct source *source, const struct sizing *sizing,
			   const struct view_size *size, size_t id)
{
	uint64_t texts = size->texts == TEXTS_IN_STACKS ? sizing->paths[id] : 0;

	return size->stack + (uint64_t)source->depths[id] * size->stack_frame + texts;
}

/* Does what is left at this threshold fit? */
static bool fits(const struct source *source, struct sizing *sizing, const struct view_size *size,
		 uint64_t threshold)
{
	const struct trie *trie = source->trie;
	uint64_t sum = 0;

	sizing->round++;
	for (size_t id = 1; id < trie->nodes.len && sum <= size->max; id++) {
		const struct trie_node *node = &trie->nodes.items[id];
		bool shown = source->totals[id] >= threshold;

		if (!shown && (!source->totals[id] || source->totals[node->parent] < threshold ||
			       !is_first(sizing->folds, node->parent, sizing->round)))
			continue;
		sum += size->node;
		if (shown)
			sum += frame_size(source, sizing, size, node->frame);
		if (node->self || !shown)
			sum += stack_size(source, sizing, size, id);
	}
	return sum <= size->max;
}

/* Between one that is too low and one that fits. */
static uint64_t refine_threshold(const struct source *source, struct sizing *sizing,
				 const struct view_size *size, uint64_t threshold)
{
	uint64_t low = threshold / 2;

	for (int i = 0; i < REFINEMENTS && threshold - low > 1; i++) {
		uint64_t middle = low + (threshold - low) / 2;

		if (fits(source, sizing, size, middle))
			threshold = middle;
		else
			low = middle;
	}
	return threshold;
}

/* The least threshold at which the rest fits, or not much more. 0: out of memory. */
static uint64_t find_threshold(const struct source *source, const struct view_size *size)
{
	struct sizing sizing = {0};
	uint64_t threshold = 1;

	if (!size->max)
		return threshold;
	if (open_sizing(&sizing, source, size))
		threshold = 0;
	while (threshold && threshold <= source->totals[TRIE_ROOT] && !fits(source, &sizing, size, threshold))
		threshold *= 2;
	if (threshold > 1)
		threshold = refine_threshold(source, &sizing, size, threshold);
	close_sizing(&sizing);
	return threshold;
}

/* --- copy --- */

struct copy {
	const struct source *source;
	struct view *view;
	uint32_t *frames; /* of the source -> of the view; NONE: not there yet */
	uint32_t *nodes;  /* where their weight is: the view's node_of; NONE: they have none */
	uint32_t *folds;  /* "[pruned]" below a node of the source; 0: none */
};

/* Id of a new node, 0 when out of memory. */
static uint32_t add_node(struct view *view, uint32_t frame, uint32_t parent, uint64_t self)
{
	const struct trie_node node = {.frame = frame, .parent = parent, .self = self};

	if (frame == NONE || vec__push(&view->trie.nodes, node))
		return 0;
	return (uint32_t)view->trie.nodes.len - 1;
}

static uint32_t special_frame(struct copy *copy, const char *text)
{
	struct frame frame = {.kind = FRAME_SPECIAL,
			      .function = strtab__add(copy->source->profile->strings, text, strlen(text))};

	return frame.function == NONE ? NONE : frame_table__add(&copy->view->frames, &frame);
}

static int show_node(struct copy *copy, uint32_t id)
{
	const struct trie_node *node = &copy->source->trie->nodes.items[id];
	uint32_t *frame = &copy->frames[node->frame];

	if (*frame == NONE)
		*frame = frame_table__add(&copy->view->frames,
					  frame_table__get(copy->source->frames, node->frame));
	copy->nodes[id] = add_node(copy->view, *frame, copy->nodes[node->parent], node->self);
	return copy->nodes[id] ? 0 : -ENOMEM;
}

static bool is_shown(const struct copy *copy, uint32_t id)
{
	return id == TRIE_ROOT || copy->source->totals[id] >= copy->view->threshold;
}

/* A branch that is not shown; those on top of it may not be, either. */
static int fold_branch(struct copy *copy, uint32_t id)
{
	uint32_t parent = copy->source->trie->nodes.items[id].parent, *fold = &copy->folds[parent];

	if (!is_shown(copy, parent)) {
		copy->nodes[id] = copy->nodes[parent];
		return 0;
	}
	if (!*fold)
		*fold = add_node(copy->view, special_frame(copy, VIEW_PRUNED), copy->nodes[parent], 0);
	if (!*fold)
		return -ENOMEM;
	trie__add(&copy->view->trie, *fold, copy->source->totals[id]);
	copy->view->pruned += copy->source->totals[id];
	copy->nodes[id] = *fold;
	return 0;
}

static int copy_nodes(struct copy *copy)
{
	const struct source *source = copy->source;
	const struct trie *trie = source->trie;
	uint64_t rootless = trie->nodes.items[TRIE_ROOT].self;
	int err = 0;

	copy->nodes[TRIE_ROOT] = TRIE_ROOT;
	if (rootless && !add_node(copy->view, special_frame(copy, "[no stack]"), TRIE_ROOT, rootless))
		err = -ENOMEM;
	for (size_t id = 1; id < trie->nodes.len && !err; id++) {
		const struct trie_node *node = &trie->nodes.items[id];

		copy->nodes[id] = NONE;
		if (!source->totals[id])
			continue;
		if (is_shown(copy, (uint32_t)id)) {
			err = show_node(copy, (uint32_t)id);
			continue;
		}
		copy->view->pruned_stacks += node->self != 0;
		err = fold_branch(copy, (uint32_t)id);
	}
	return err;
}

static int copy_shown(struct view *view, const struct source *source)
{
	size_t frames = source->frames->frames.len, nodes = source->trie->nodes.len;
	struct copy copy = {
		.source = source,
		.view = view,
		.frames = malloc((frames ?: 1) * sizeof(uint32_t)),
		.nodes = malloc(nodes * sizeof(uint32_t)),
		.folds = calloc(nodes, sizeof(uint32_t)),
	};
	int err = copy.frames && copy.nodes && copy.folds ? trie__init(&view->trie, TRIE_FULL) : -ENOMEM;

	if (!err) {
		memset(copy.frames, 0xff, frames * sizeof(uint32_t));
		err = copy_nodes(&copy);
	}
	view->node_of = copy.nodes;
	free(copy.frames);
	free(copy.folds);
	return err;
}

int view__init(struct view *view, const struct profile *profile, enum group_by group,
	       const struct view_size *size)
{
	struct source source;
	int err;

	*view = (struct view){0};
	err = open_source(&source, profile, group);
	if (!err) {
		view->threshold = find_threshold(&source, size);
		err = view->threshold ? copy_shown(view, &source) : -ENOMEM;
	}
	close_source(&source);
	return err;
}

void view__free(struct view *view)
{
	if (!view)
		return;
	frame_table__free(&view->frames);
	trie__free(&view->trie);
	free(view->node_of);
	view->node_of = NULL;
}

/* --- stacks --- */

int view_stacks__open(struct view_stacks *stacks, const struct view *view)
{
	uint32_t *depths = count_depths(&view->trie);

	*stacks = (struct view_stacks){.view = view};
	for (size_t id = 0; depths && id < view->trie.nodes.len; id++)
		if (depths[id] > stacks->deepest)
			stacks->deepest = depths[id];
	free(depths);
	stacks->room = malloc((stacks->deepest + 1) * sizeof(*stacks->room));
	return depths && stacks->room ? 0 : -ENOMEM;
}

bool view_stacks__next(struct view_stacks *stacks)
{
	const struct trie_node *nodes = stacks->view->trie.nodes.items;
	uint32_t *end = stacks->room + stacks->deepest, *from = end;

	do {
		if (++stacks->node >= stacks->view->trie.nodes.len)
			return false;
	} while (!nodes[stacks->node].self);
	for (uint32_t id = stacks->node; id != TRIE_ROOT; id = nodes[id].parent)
		*--from = nodes[id].frame;
	stacks->path = from;
	stacks->depth = (uint32_t)(end - from);
	stacks->weight = nodes[stacks->node].self;
	return true;
}

void view_stacks__close(struct view_stacks *stacks)
{
	if (!stacks)
		return;
	free(stacks->room);
	stacks->room = NULL;
}
