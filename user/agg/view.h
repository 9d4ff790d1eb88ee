/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile as a file holds it: frames grouped as asked, and the stacks without their smallest branches if
 * they would make the file too large. No sample goes: those of the branches that are left out stand as
 * "[pruned]" where the branches were. So a file has an upper size, whatever was sampled.
 */
#pragma once

#include "agg/profile.h"

#define VIEW_PRUNED "[pruned]"

/* How often the name and the file of a frame stand in a file. */
enum view_texts {
	TEXTS_ONCE,	 /* each text */
	TEXTS_IN_FRAMES, /* ... in each frame that has it */
	TEXTS_IN_STACKS, /* ... in each frame of each stack */
};

/* What things take in a file, roughly, in bytes; 0 if they take nothing by themselves. */
struct view_size {
	enum view_texts texts; /* these take what they do when they are escaped */
	size_t frame;	       /* besides its texts */
	size_t node;	       /* of the trie */
	size_t stack;	       /* a node with samples of its own ... */
	size_t stack_frame;    /* ... and each frame of its path */
	size_t max;	       /* of the file; 0: any */
};

struct view {
	/*
	 * Frames that occur, in order of their first use. GROUP_LINE: as in the profile; GROUP_FUNCTION: the
	 * line is the first one.
	 */
	struct frame_table frames;
	struct trie trie; /* as in the profile, but without an index: not for trie__child */
	/* Of each node of the profile, or by function of what they are merged into: where its weight is. */
	uint32_t *node_of;
	/* What is not shown: */
	uint64_t pruned;	/* weight under "[pruned]" */
	uint64_t pruned_stacks; /* distinct ones */
	uint64_t threshold;	/* least total weight of a branch that is shown */
};

/* 0 or -ENOMEM; free in either case. */
int view__init(struct view *view, const struct profile *profile, enum group_by group,
	       const struct view_size *size);
void view__free(struct view *view);

/*
 * The stacks that have samples of their own, one after the other:
 *
 *	while (view_stacks__next(&stacks))
 *		... stacks.path[0 .. stacks.depth - 1], stacks.weight ...
 */
struct view_stacks {
	const struct view *view; /* borrowed */
	uint32_t node;
	const uint32_t *path; /* frames, outermost first; until the next one */
	uint32_t depth;	      /* at least 1 */
	uint64_t weight;
	uint32_t *room, deepest;
};

/* 0 or -ENOMEM; close in either case. */
int view_stacks__open(struct view_stacks *stacks, const struct view *view);
bool view_stacks__next(struct view_stacks *stacks);
void view_stacks__close(struct view_stacks *stacks);
