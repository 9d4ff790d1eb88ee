/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See code_parts.h. A round of reading takes three system calls, whatever the number of code objects: their
 * headers; the first part of the names and line tables that the headers point to; the rest of the long ones,
 * together with the identities once more. If an identity has changed by then, the object was freed meanwhile
 * and what was read is not used. Where names belong to an identity (to 3.11), they are read twice, too. What
 * the kernel side has sent of a code object stands for the first two calls; if it is whole, nothing is read.
 */
#include "base/buf.h"
#include "base/util.h"
#include "py/code_parts.h"
#include "py/ident.h"
#include "py/str.h"

#include <errno.h>
#include <stdlib.h>

#define OBJECT_MIN_BYTES 80 /* header of any string or bytes object: read even across a page border */
#define TABLE_MAX	 (64u << 20)
/* copies of long objects in one round: any number of code objects may share one */
#define ROUND_BYTES_MAX TABLE_MAX
#define PAGE_BYTES	4096u
#define BEYOND		"[name beyond the profile's size limit]"

/* *got is set by read_segments(). */
static int add_segment(struct round *round, py_addr addr, void *dest, size_t len, size_t *got)
{
	*got = 0;
	return vec__push(&round->lengths, got)
		       ?: vec__push(&round->segments,
				    ((struct remote_segment){.addr = addr, .dest = dest, .len = len}));
}

static int read_segments(struct round *round)
{
	int err = 0;

	if (round->readable && round->segments.len)
		err = remote__read_batch(&round->target->remote, round->segments.items, round->segments.len);
	if (err == -ESRCH) {
		/* It has ended: what the kernel side sent is all there will be. */
		round->readable = false;
		for (size_t i = 0; i < round->segments.len; i++)
			round->segments.items[i].got = 0;
		err = 0;
	}
	for (size_t i = 0; i < round->segments.len && !err; i++)
		*round->lengths.items[i] = round->segments.items[i].got;
	round->segments.len = 0;
	round->lengths.len = 0;
	return err;
}

/* --- first call: the code objects themselves --- */

static size_t header_bytes(const struct py_offsets *offsets)
{
	return min_u64(offsets->code_size,
		       HEADER_BYTES); /* more than layout.co_bytes, which is what is used of it */
}

/* Is the identity the sampled one, as far as the header tells? */
static bool has_own_identity(const struct round *round, const struct pending *item)
{
	const struct pbp_target *layout = &round->target->layout;
	struct py_ident_part header = {item->header, item->header_len};

	return py_ident__has_names(layout) || py_ident__matches(layout, item->code.ident, header, NULL);
}

static int read_headers(struct round *round)
{
	size_t bytes = header_bytes(&round->target->offsets);
	int err = 0;

	for (size_t i = 0; i < round->count && !err; i++) {
		struct pending *item = &round->items[i];

		if (!item->offer) {
			item->was_read = true;
			err = add_segment(round, item->code.address, item->header, bytes, &item->header_len);
			continue;
		}
		item->header_len = min_u64(item->offer->lens[0], PBP_CODE_BYTES);
		memcpy(item->header, item->offer->header, item->header_len);
	}
	err = err ?: read_segments(round);
	for (size_t i = 0; i < round->count && !err; i++) {
		struct pending *item = &round->items[i];

		if (item->header_len < round->target->layout.co_bytes || !has_own_identity(round, item))
			item->code.state = PY_CODE_GONE;
	}
	return err;
}

/* --- second call: what the headers point to --- */

static size_t first_part_bytes(py_addr addr, size_t most)
{
	/*
	 * Up to the end of the page, since the next one need not exist; but a whole object header in any
	 * case.
	 */
	return max_u64(OBJECT_MIN_BYTES, min_u64(most, PAGE_BYTES - addr % PAGE_BYTES));
}

static int add_part(struct round *round, struct part *part, py_addr addr, uint8_t *bytes, size_t most)
{
	*part = (struct part){.address = addr, .bytes = bytes};
	return add_segment(round, addr, bytes, first_part_bytes(addr, most), &part->len);
}

/*
 * One of the parts of an offer, or, where the kernel side could not read enough to say how long it is, as any
 * other.
 */
static int take_part(struct round *round, struct pending *item, struct part *part, py_addr addr,
		     const uint8_t *sent, size_t len, uint8_t *bytes, size_t most)
{
	if (!item->offer || len < OBJECT_MIN_BYTES) {
		item->was_read = true;
		return add_part(round, part, addr, bytes, most);
	}
	*part = (struct part){.address = addr, .bytes = bytes, .len = min_u64(len, most)};
	part->offered = part->len;
	memcpy(bytes, sent, part->len);
	return 0;
}

static int take_parts(struct round *round, struct pending *item)
{
	const struct pbp_target *layout = &round->target->layout;
	const struct pbp_code *offer = item->offer;

	return take_part(round, item, &item->name, load_u64(item->header + layout->co_name),
			 offer ? offer->name : NULL, offer ? offer->lens[1] : 0, item->name_bytes,
			 STRING_BYTES) ?:
	       take_part(round, item, &item->file, load_u64(item->header + layout->co_filename),
			 offer ? offer->file : NULL, offer ? offer->lens[2] : 0, item->file_bytes,
			 STRING_BYTES) ?:
	       take_part(round, item, &item->table, load_u64(item->header + layout->co_linetable),
			 offer ? offer->table : NULL, offer ? offer->lens[3] : 0, item->table_bytes,
			 TABLE_BYTES);
}

static void decode_header(struct round *round, struct pending *item)
{
	const struct py_offsets *offsets = &round->target->offsets;
	const uint8_t *header = item->header;
	uint64_t units = load_u64(header + offsets->var_object_size);

	item->type = load_u64(header + offsets->object_type);
	item->code.first_line = (int32_t)load_u32(header + offsets->code_firstlineno);
	item->code.code_bytes = units < UINT32_MAX / 2 ? units * 2 : 0;
}

/*
 * The type that most of the round's objects have, by majority vote: a stray that is no code object must not
 * decide.
 */
static py_addr common_type(const struct round *round)
{
	py_addr type = 0;
	size_t votes = 0;

	for (size_t i = 0; i < round->count; i++) {
		const struct pending *item = &round->items[i];

		if (item->code.state != PY_CODE_OK)
			continue;
		if (!votes)
			type = item->type;
		votes += item->type == type ? 1 : -1;
	}
	return type;
}

static int read_first_parts(struct round *round)
{
	int err = 0;

	for (size_t i = 0; i < round->count && !err; i++) {
		struct pending *item = &round->items[i];

		if (item->code.state != PY_CODE_OK)
			continue;
		decode_header(round, item);
		err = take_parts(round, item);
	}
	round->type = round->cache->code_type ? 0 : common_type(round);
	if (!err && round->type)
		err = add_segment(round, round->type + round->target->offsets.type_name,
				  round->type_name_pointer, 8, &round->type_len);
	return err ?: read_segments(round);
}

/* --- third call: the rest of what is long, and the identities again --- */

static int add_rest(struct round *round, struct pending *item, struct part *part)
{
	if (part->want <= part->len)
		return 0;
	if (part->want > ROUND_BYTES_MAX - round->rest_bytes) {
		item->code.state = PY_CODE_INVALID;
		return 0;
	}
	round->rest_bytes += part->want;
	item->was_read = true;
	part->rest = malloc(part->want);
	if (!part->rest)
		return -ENOMEM;
	memcpy(part->rest, part->bytes, part->len);
	part->bytes = part->rest;
	return add_segment(round, part->address + part->len, part->rest + part->len, part->want - part->len,
			   &part->rest_len);
}

static struct py_str_layout string_layout(const struct py_offsets *offsets)
{
	return (struct py_str_layout){
		.length = offsets->unicode_length,
		.state = offsets->unicode_state,
		.ascii_size = offsets->unicode_ascii_size,
		.compact_size = offsets->unicode_compact_size,
		.wide_interned = offsets->wide_interned,
	};
}

static bool string_extent(const struct py_offsets *offsets, struct part *part)
{
	struct py_str_layout layout = string_layout(offsets);
	struct py_str_info info;

	if (py_str__header(&layout, part->bytes, part->len, &info) || !info.compact)
		return false;
	part->want = info.data_offset + info.data_bytes;
	return true;
}

static bool table_extent(const struct py_offsets *offsets, struct part *part)
{
	uint64_t size;

	if (part->len < offsets->bytes_data)
		return false;
	size = load_u64(part->bytes + offsets->bytes_size);
	if (size > TABLE_MAX)
		return false;
	part->want = offsets->bytes_data + size;
	return true;
}

static bool extents_are_sane(const struct py_offsets *offsets, struct pending *item)
{
	return string_extent(offsets, &item->name) && string_extent(offsets, &item->file) &&
	       table_extent(offsets, &item->table);
}

/* The part of a name that was read first, once more. */
static int add_again(struct round *round, struct part *part, uint8_t *again)
{
	return add_segment(round, part->address, again, min_u64(part->len, STRING_BYTES), &part->again_len);
}

static int add_item_rest(struct round *round, struct pending *item)
{
	const struct pbp_target *layout = &round->target->layout;
	int err = 0;

	if (item->code.state == PY_CODE_OK)
		err = add_rest(round, item, &item->name) ?:
		      add_rest(round, item, &item->file) ?:
		      add_rest(round, item, &item->table);
	if (err || !item->was_read || layout->co_ident == PBP_NONE)
		return err;
	err = add_segment(round, item->code.address + layout->co_ident, item->ident_again,
			  py_ident__bytes(layout), &item->ident_len);
	if (!err && py_ident__has_names(layout))
		err = add_again(round, &item->name, item->name_again)
			      ?: add_again(round, &item->file, item->file_again);
	return err;
}

static int read_rest(struct round *round)
{
	int err = 0;

	for (size_t i = 0; i < round->count && !err; i++) {
		struct pending *item = &round->items[i];

		if (item->code.state == PY_CODE_GONE)
			continue;
		if (!extents_are_sane(&round->target->offsets, item))
			item->code.state = PY_CODE_INVALID;
		err = add_item_rest(round, item);
	}
	if (!err && round->type)
		err = add_segment(round, load_u64(round->type_name_pointer), round->type_name,
				  sizeof(round->type_name), &round->type_len);
	return err ?: read_segments(round);
}

/* --- and what it all means --- */

static bool is_whole(const struct part *part)
{
	return part->len + part->rest_len >= part->want;
}

/* From the length on: the reference count before it may change, and what lies behind the end is another's. */
static bool is_same_string(const struct pbp_target *layout, const struct part *part, const uint8_t *again)
{
	size_t from = layout->st_length, end = min_u64(part->want, min_u64(part->len, STRING_BYTES));

	return part->again_len >= end && end > from && !memcmp(part->bytes + from, again + from, end - from);
}

/* Was the object still the one that was sampled when the last byte had been read? */
static bool is_same_still(const struct round *round, const struct pending *item)
{
	const struct pbp_target *layout = &round->target->layout;
	size_t bytes = py_ident__bytes(layout);

	if (!item->was_read || layout->co_ident == PBP_NONE)
		return true;
	if (item->ident_len != bytes || memcmp(item->ident_again, item->header + layout->co_ident, bytes))
		return false;
	return !py_ident__has_names(layout) || (is_same_string(layout, &item->name, item->name_again) &&
						is_same_string(layout, &item->file, item->file_again));
}

/* Where names belong to the identity: do those that were read belong to the sampled one? */
static bool has_sampled_names(const struct round *round, const struct pending *item)
{
	const struct pbp_target *layout = &round->target->layout;
	struct py_ident_part header = {item->header, item->header_len};
	struct py_ident_part names[] = {{item->name.bytes, item->name.want},
					{item->file.bytes, item->file.want}};

	return !py_ident__has_names(layout) || py_ident__matches(layout, item->code.ident, header, names);
}

static uint32_t intern_string(struct round *round, const struct part *part)
{
	struct py_str_layout layout = string_layout(&round->target->offsets);
	struct py_str_info info;
	struct buf text = {0};
	uint32_t id = 0;

	if (strtab__bytes(round->cache->strings) > PY_NAMES_BYTES_MAX)
		return strtab__add(round->cache->strings, BEYOND, strlen(BEYOND));
	if (!py_str__header(&layout, part->bytes, part->want, &info)) {
		py_str__to_bytes(info.kind, part->bytes + info.data_offset, info.length, &text);
		if (!text.err)
			id = strtab__add(round->cache->strings, text.data ? text.data : "", text.len);
	}
	buf__free(&text);
	return id == UINT32_MAX ? 0 : id;
}

static bool is_shim(struct round *round, const struct py_code *code)
{
	const char *function = strtab__get(round->cache->strings, code->function);
	const char *file = strtab__get(round->cache->strings, code->file);

	/* The specialised call of a class pushes a helper frame; 3.12 has a named entry trampoline. */
	return (!strcmp(function, "__init__") && !strcmp(file, "__init__")) ||
	       (!strcmp(function, "<interpreter trampoline>") && !strcmp(file, "<shim>"));
}

/*
 * Freed meanwhile: what the kernel side sent must do. A line table may be cut, then lines beyond are unknown.
 */
static bool falls_back_on_offer(struct round *round, struct pending *item)
{
	uint32_t data = round->target->offsets.bytes_data;

	if (item->name.offered < item->name.want || item->file.offered < item->file.want ||
	    item->table.offered < data)
		return false;
	item->table.want = min_u64(item->table.want, item->table.offered);
	return true;
}

static void finish_item(struct round *round, struct pending *item)
{
	uint32_t data = round->target->offsets.bytes_data;
	struct py_code *code = &item->code;

	if (code->state == PY_CODE_OK && !is_same_still(round, item) && !falls_back_on_offer(round, item))
		code->state = PY_CODE_GONE;
	if (code->state != PY_CODE_OK)
		return;
	if (item->type != round->cache->code_type || !is_whole(&item->name) || !is_whole(&item->file) ||
	    !is_whole(&item->table)) {
		code->state = PY_CODE_INVALID;
		return;
	}
	if (!has_sampled_names(round, item)) {
		code->state = PY_CODE_GONE;
		return;
	}
	code->function = intern_string(round, &item->name);
	code->file = intern_string(round, &item->file);
	code->table_len = item->table.want - data;
	code->table = malloc(code->table_len + 1);
	if (!code->table) {
		code->state = PY_CODE_INVALID;
		return;
	}
	memcpy(code->table, item->table.bytes + data, code->table_len);
	round->cache->table_bytes += code->table_len;
	if (is_shim(round, code))
		code->state = PY_CODE_SHIM;
}

static void finish_round(struct round *round)
{
	if (round->type && round->type_len == sizeof(round->type_name) &&
	    !memcmp(round->type_name, "code", sizeof("code")))
		round->cache->code_type = round->type;
	for (size_t i = 0; i < round->count; i++)
		if (round->items[i].code.state != PY_CODE_GONE)
			finish_item(round, &round->items[i]);
}

int code_load_round(struct round *round)
{
	int err = read_headers(round) ?: read_first_parts(round) ?: read_rest(round);

	if (!err) {
		finish_round(round);
		err = code_store_round(round);
	}
	for (size_t i = 0; i < round->count; i++) {
		free(round->items[i].name.rest);
		free(round->items[i].file.rest);
		free(round->items[i].table.rest);
	}
	round->count = 0;
	round->rest_bytes = 0;
	return err;
}
