/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code objects of one process: names, file, first line and line table, taken once each, from what the kernel
 * side sent of them at the sample instant or, what it did not send, from the process. A code object is known
 * by its address and its identity at the sample instant (struct pbp_frame.ident), so an address that is used
 * again for another function is another entry, and one that was freed before it could be read stays
 * unresolved instead of being guessed; when one of the same identity is met again, it is looked for again,
 * some times.
 */
#pragma once

#include "base/hmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "py/copies.h"
#include "py/target.h"

#include <stdbool.h>
#include <stdint.h>

#define PY_CODE_NONE UINT32_MAX

/*
 * Of all strings of a run: with more of them new names are not kept. A target may make up new ones without
 * end.
 */
#define PY_NAMES_BYTES_MAX (64u << 20)

enum py_code_state {
	PY_CODE_OK,
	PY_CODE_GONE,	 /* freed, or its address reused, before it could be read */
	PY_CODE_INVALID, /* what lies there is no code object */
	PY_CODE_SHIM,	 /* CPython's own helper code around __init__ and entry frames: not a function of the
			    program */
};

struct py_code {
	py_addr address;
	uint32_t ident;
	enum py_code_state state;
	uint8_t looks;	   /* times that it was gone */
	uint32_t function; /* strtab id of the qualified name */
	uint32_t file;	   /* strtab id of co_filename */
	int32_t first_line;
	uint32_t code_bytes; /* length of the bytecode */
	uint8_t *table;	     /* line table; owned */
	uint32_t table_len;
	struct py_copies copies; /* of the bytecode, if a thread was seen on one */
	uint32_t copies_stamp;	 /* ... as of the cache's copies_stamp, 0 = never read */
	uint32_t copies_batch;	 /* ... and batch */
};

struct code_cache {
	struct strtab *strings; /* borrowed */
	VEC(struct py_code) codes;
	VEC(struct pbp_code) offers; /* sent by the kernel side, not taken in yet */
	struct hmap index;	     /* of (address, identity) -> index in codes */
	py_addr code_type;	     /* PyCode_Type of the process, once seen */
	size_t table_bytes;
	uint64_t copies_generation; /* py_copies__generation() ... */
	uint32_t copies_stamp;	    /* ... and how often it has changed; 0 = no copy was met */
	uint32_t batch;
};

void code_cache__init(struct code_cache *cache, struct strtab *strings);
void code_cache__clear(struct code_cache *cache);
void code_cache__free(struct code_cache *cache);

/* Take over a code object that the kernel side sent; the next load brings it into the cache. 0 or -ENOMEM. */
int code_cache__offer(struct code_cache *cache, const struct pbp_code *record);

/*
 * Make every offered code object and every (code, ident) of frames[0..count) known. What was not offered, or
 * not whole, is read in at most three system calls (a round of 340); not at all if the process's memory is no
 * longer `readable`. Frames that are known cost a look-up. 0, -ESRCH when the process is gone, -ENOMEM.
 */
int code_cache__load(struct code_cache *cache, struct py_target *target, const struct pbp_frame *frames,
		     size_t count, bool readable);

/* Index in codes of a loaded code object, PY_CODE_NONE when it was never asked for. */
uint32_t code_cache__find(const struct code_cache *cache, py_addr code, uint32_t ident);

/*
 * Offset of `instr` (as in struct pbp_frame) in the bytecode; -1 when it lies outside: the frame has not
 * started, or garbage.
 */
int64_t py_code__lasti(const struct py_code *code, const struct py_offsets *offsets, uint64_t instr);

/*
 * The same for the code object at `index`, where threads have copies of the bytecode: PY_LASTI_UNKNOWN when
 * it lies in none that is there (any more). Reads the process, if that may be, for what is not known yet; for
 * each code object once between two calls of code_cache__begin_batch().
 */
#define PY_LASTI_UNKNOWN -2 /* somewhere in the function */
int64_t code_cache__lasti(struct code_cache *cache, struct py_target *target, uint32_t index, uint64_t instr,
			  bool readable);
void code_cache__begin_batch(struct code_cache *cache, struct py_target *target, bool readable);

/* Line executing there: the first line for -1, 0 where the table has none, and for PY_LASTI_UNKNOWN. */
uint32_t py_code__line(const struct py_code *code, const struct py_offsets *offsets, int64_t lasti);
