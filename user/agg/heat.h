/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The samples of a profile by files and their lines, whatever function a line is of.
 */
#pragma once

#include "agg/frame.h"
#include "agg/trie.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * self: weight of the samples that were executing there; total: of those that had it anywhere in the stack,
 * each once. What a line waited for is its own.
 */
struct heat_line {
	uint32_t line;	   /* 0: not known */
	uint32_t function; /* strtab id: the one with most of `self` */
	bool approximate;  /* some of it is of frames that are */
	uint64_t self, total;
};

struct heat_file {
	uint32_t name; /* strtab id */
	uint64_t self, total;
	size_t first_line, line_count; /* in lines, in order of their numbers */
};

/* Samples that were executing no line: an annotation was the end of their stack. */
struct heat_note {
	uint32_t text; /* strtab id */
	uint64_t self;
};

struct heat {
	VEC(struct heat_file) files; /* most self first, then total, then by name */
	VEC(struct heat_line) lines;
	VEC(struct heat_note) notes; /* most first */
};

/* 0 or -ENOMEM; free in either case. All `self` together is what the trie has. */
int heat__init(struct heat *heat, const struct trie *trie, const struct frame_table *frames,
	       const struct strtab *strings);
void heat__free(struct heat *heat);
