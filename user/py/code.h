/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code objects of one process: names, file, first line and line table, taken once each, from what the kernel
 * side sent of them at the sample instant or, what it did not send, from the process. A code object is known
 * by its address and its identity at the sample instant (struct pbp_frame.ident), so an address that is used
 * again for another function is another entry, and one that was freed before it could be read stays
 * unresolved instead of being guessed.
 */
#pragma once

#include "base/hmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "py/target.h"

#include <stdbool.h>
#include <stdint.h>

#define PY_CODE_NONE UINT32_MAX

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
	uint32_t function; /* strtab id of the qualified name */
	uint32_t file;	   /* strtab id of co_filename */
	int32_t first_line;
	uint32_t code_bytes; /* length of the bytecode */
	uint8_t *table;	     /* line table; owned */
	uint32_t table_len;
};

struct code_cache {
	struct strtab *strings; /* borrowed */
	VEC(struct py_code) codes;
	VEC(struct pbp_code) offers; /* sent by the kernel side, not taken in yet */
	struct hmap index;	     /* of (address, identity) -> index in codes */
	py_addr code_type;	     /* PyCode_Type of the process, once seen */
	size_t table_bytes;
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
/* Line executing there: the first line for -1, 0 where the table has none. */
uint32_t py_code__line(const struct py_code *code, const struct py_offsets *offsets, int64_t lasti);
