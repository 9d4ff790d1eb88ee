/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frame table: each distinct (function, file, line) has a u32 id. Ids index a dense array.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* The numbers are in recordings (out/record.h): append only. */
enum frame_kind {
	FRAME_PYTHON,	 /* a Python function at a line */
	FRAME_SPECIAL,	 /* an annotation such as "[truncated]"; no file, as with the others: */
	FRAME_PROCESS,	 /* the root of a process's stacks */
	FRAME_THREAD,	 /* ... of a thread's */
	FRAME_CONTAINER, /* ... of a container's, or of those that are in none */
	FRAME_KINDS
};

struct frame {
	uint32_t function;   /* strtab id of the qualified name */
	uint32_t file;	     /* strtab id of co_filename; 0 but for FRAME_PYTHON */
	uint32_t line;	     /* executing line; 0 = unknown */
	uint32_t first_line; /* line of the def; 0 = unknown; tells two functions of one name apart */
	enum frame_kind kind;
	bool approximate; /* the line is where the function last said that it was: code made by a JIT */
	bool wait;	  /* FRAME_SPECIAL: what the thread waited for in the function above, "[sleep]" */
};

/* Does it stand above stacks, rather than in them? */
static inline bool frame__is_root(const struct frame *frame)
{
	return frame->kind == FRAME_PROCESS || frame->kind == FRAME_THREAD || frame->kind == FRAME_CONTAINER;
}

struct frame_table {
	VEC(struct frame) frames;
	struct hmap index;  /* hash of the frame -> first id + 1 of a chain */
	VEC(uint32_t) next; /* chain of equal hashes: next id + 1, or 0 */
};

/* Id of an equal frame, added if new; UINT32_MAX when out of memory. */
uint32_t frame_table__add(struct frame_table *table, const struct frame *frame);
/* Borrowed until the next add. */
const struct frame *frame_table__get(const struct frame_table *table, uint32_t id);
void frame_table__free(struct frame_table *table);
