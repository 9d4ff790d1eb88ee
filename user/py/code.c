/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See code.h. What is known of code objects, and what an instruction of one means. Those that are not known
 * yet are put on a list, which code_round.c reads.
 */
#include "py/code.h"

#include "py/code_parts.h"
#include "py/ident.h"
#include "py/linetable.h"

#include <errno.h>
#include <stdlib.h>

#define LOOKS_MAX 32 /* for a code object that was gone */

void code_cache__init(struct code_cache *cache, struct strtab *strings)
{
	*cache = (struct code_cache){.strings = strings};
}

void code_cache__clear(struct code_cache *cache)
{
	for (size_t i = 0; i < cache->codes.len; i++) {
		free(cache->codes.items[i].table);
		py_copies__free(&cache->codes.items[i].copies);
	}
	cache->codes.len = 0;
	cache->offers.len = 0;
	cache->table_bytes = 0;
	cache->code_type = 0;
	hmap__clear(&cache->index);
}

void code_cache__free(struct code_cache *cache)
{
	code_cache__clear(cache);
	vec__free(&cache->codes);
	vec__free(&cache->offers);
	hmap__free(&cache->index);
}

int code_cache__offer(struct code_cache *cache, const struct pbp_code *record)
{
	return vec__push(&cache->offers, *record);
}

static uint64_t index_key(py_addr code, uint32_t ident)
{
	return hmap_mix(code) ^ ident;
}

uint32_t code_cache__find(const struct code_cache *cache, py_addr code, uint32_t ident)
{
	const uint64_t *index = hmap__get(&cache->index, index_key(code, ident));
	const struct py_code *found;

	if (!index)
		return PY_CODE_NONE;
	found = &cache->codes.items[*index];
	return found->address == code && found->ident == ident ? *index : PY_CODE_NONE;
}

/* --- those that are not known yet --- */

static bool is_pending(const struct round *round, py_addr code, uint32_t ident)
{
	/* A handful in nearly every case: recursion repeats the newest. */
	for (size_t i = round->count; i-- > 0;)
		if (round->items[i].code.address == code && round->items[i].code.ident == ident)
			return true;
	return false;
}

/* One that was gone may have come again, unless its identity is a version, which no other one ever has. */
static bool is_known(const struct round *round, py_addr code, uint32_t ident)
{
	uint32_t index = code_cache__find(round->cache, code, ident);
	const struct py_code *known = index == PY_CODE_NONE ? NULL : &round->cache->codes.items[index];

	return known && (known->state != PY_CODE_GONE || known->looks >= LOOKS_MAX ||
			 py_ident__bytes(&round->target->layout) == sizeof(known->ident));
}

/* Put a code object on the round's list, if it is new. Runs the round when it is full. */
static int want_code(struct round *round, py_addr code, uint32_t ident, const struct pbp_code *offer)
{
	struct pending *item;

	if (is_known(round, code, ident) || is_pending(round, code, ident))
		return 0;
	if (!round->items)
		round->items = malloc(ROUND_CODES * sizeof(*round->items));
	if (!round->items)
		return -ENOMEM;
	item = &round->items[round->count++];
	*item = (struct pending){.offer = offer, .code = {.address = code, .ident = ident}};
	return round->count == ROUND_CODES ? code_load_round(round) : 0;
}

int code_cache__load(struct code_cache *cache, struct py_target *target, const struct pbp_frame *frames,
		     size_t count, bool readable)
{
	struct round round = {.cache = cache, .target = target, .readable = readable};
	int err = 0;

	if (!cache->code_type)
		cache->code_type = target->code_type; /* seen at attach */
	for (size_t i = 0; i < cache->offers.len && !err; i++) {
		const struct pbp_code *offer = &cache->offers.items[i];

		err = want_code(&round, offer->code, offer->ident, offer);
	}
	for (size_t i = 0; i < count && !err; i++)
		if (!(frames[i].flags & (PBP_FRAME_INTERP | PBP_FRAME_GC)))
			err = want_code(&round, frames[i].code, frames[i].ident, NULL);
	if (!err && round.count)
		err = code_load_round(&round);
	vec__free(&cache->offers); /* large, and rarely wanted once a program is known */
	free(round.items);
	vec__free(&round.segments);
	vec__free(&round.lengths);
	return err;
}

/* Keep what was found out, also that nothing was. */
int code_store_round(struct round *round)
{
	struct code_cache *cache = round->cache;
	int err = 0;

	for (size_t i = 0; i < round->count && !err; i++) {
		struct pending *item = &round->items[i];
		uint32_t index = code_cache__find(cache, item->code.address, item->code.ident);

		item->code.looks = item->code.state == PY_CODE_GONE;
		if (index != PY_CODE_NONE) {
			item->code.looks += cache->codes.items[index].looks;
			cache->codes.items[index] = item->code; /* one that is gone owns nothing */
			continue;
		}
		err = vec__push(&cache->codes, item->code);
		if (err)
			free(item->code.table);
		else
			err = hmap__set(&cache->index, index_key(item->code.address, item->code.ident),
					cache->codes.len - 1);
	}
	return err;
}

/* --- instructions and lines --- */

static enum linetable_kind table_kind(const struct py_offsets *offsets)
{
	uint32_t minor = py_version_minor(offsets->version);

	return minor >= 11 ? LINETABLE_LOCATIONS : minor == 10 ? LINETABLE_RANGES : LINETABLE_LNOTAB;
}

int64_t py_code__lasti(const struct py_code *code, const struct py_offsets *offsets, uint64_t instr)
{
	uint64_t lasti = instr - (code->address + offsets->code_adaptive);

	if (offsets->lasti_unit)
		return (int32_t)instr < 0 ? -1 : (int64_t)(int32_t)instr * offsets->lasti_unit;
	return lasti < code->code_bytes ? (int64_t)lasti : -1;
}

uint32_t py_code__line(const struct py_code *code, const struct py_offsets *offsets, int64_t lasti)
{
	if (lasti == PY_LASTI_UNKNOWN)
		return 0;
	if (lasti < 0)
		return code->first_line > 0 ? (uint32_t)code->first_line : 0;
	return linetable__line(table_kind(offsets), code->table, code->table_len, code->first_line, lasti);
}

/* --- where threads have copies of the bytecode --- */

void code_cache__begin_batch(struct code_cache *cache, struct py_target *target, bool readable)
{
	uint64_t generation;

	cache->batch++;
	if (!cache->copies_stamp || !readable)
		return;
	generation = py_copies__generation(&target->remote, &target->offsets, target->runtime);
	cache->copies_stamp += generation != cache->copies_generation;
	cache->copies_generation = generation;
}

static void read_copies(struct code_cache *cache, struct py_target *target, struct py_code *code)
{
	uint32_t ident;

	if (!cache->copies_stamp) {
		cache->copies_generation =
			py_copies__generation(&target->remote, &target->offsets, target->runtime);
		cache->copies_stamp = 1;
	}
	code->copies_stamp = cache->copies_stamp;
	code->copies_batch = cache->batch;
	py_copies__read(&code->copies, &target->remote, &target->offsets, code->address);
	/* If another code object lies there now, they are its own. */
	if (target->layout.co_ident_bytes == sizeof(ident) &&
	    !remote__read(&target->remote, code->address + target->layout.co_ident, &ident, sizeof(ident)) &&
	    ident != code->ident)
		code->copies.starts.len = 0;
}

int64_t code_cache__lasti(struct code_cache *cache, struct py_target *target, uint32_t index, uint64_t instr,
			  bool readable)
{
	struct py_code *code = &cache->codes.items[index];
	int64_t lasti = py_code__lasti(code, &target->offsets, instr);
	bool was_read;

	if (lasti >= 0 || !py_copies__exist(&target->offsets))
		return lasti;
	if (code->copies_stamp == cache->copies_stamp || !readable)
		lasti = py_copies__lasti(&code->copies, code->code_bytes, instr);
	was_read = code->copies_stamp && code->copies_batch == cache->batch;
	if (lasti < 0 && readable && !was_read) {
		read_copies(cache, target, code);
		lasti = py_copies__lasti(&code->copies, code->code_bytes, instr);
	}
	return lasti < 0 ? PY_LASTI_UNKNOWN : lasti;
}
