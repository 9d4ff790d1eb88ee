/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both sides fold the same words (include/pybpfprof.h). What the kernel side could not read it takes for
 * zero, so that is done here too.
 */
#include "py/ident.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

#define HEAD_BYTES offsetof(struct pbp_string, tail)
#define NAMES	   PY_IDENT_NAMES

struct ident {
	__u64 words[PBP_IDENT_BYTES / 8];
	struct pbp_string names[NAMES]; /* of the function, of the file */
};

uint32_t py_ident__fold(const struct pbp_target *layout, const __u64 *words, const struct pbp_string *names)
{
	__u64 hash;

	if (py_ident__bytes(layout) == 4)
		return (uint32_t)words[0];
	hash = pbp_fold(0, words, PBP_IDENT_WORDS);
	if (py_ident__has_names(layout))
		for (size_t i = 0; i < PY_IDENT_NAMES; i++)
			hash = pbp_fold_string(hash, &names[i]);
	return (uint32_t)(hash >> 32);
}

/* The end of a string, which with a short one is part of its header, too; with the hash as in `out`. */
static void load_tail(const struct pbp_target *layout, struct pbp_string *out, const uint8_t *bytes,
		      uint64_t end)
{
	uint64_t hash_at = layout->st_length + offsetof(struct pbp_string, hash);
	uint8_t *tail = (uint8_t *)out->tail;

	for (uint64_t i = 0, at = end - PBP_STRING_TAIL; i < PBP_STRING_TAIL; i++, at++)
		tail[i] =
			at - hash_at < sizeof(out->hash) ? ((uint8_t *)&out->hash)[at - hash_at] : bytes[at];
}

static void load_name(const struct pbp_target *layout, struct pbp_string *out, struct py_ident_part part,
		      bool without_hash)
{
	uint64_t end;

	if (part.len < layout->st_length + HEAD_BYTES)
		return;
	memcpy(out, part.bytes + layout->st_length, HEAD_BYTES);
	if (without_hash)
		out->hash = PBP_STRING_NO_HASH;
	end = pbp_string_end(layout, out);
	if (out->hash == PBP_STRING_NO_HASH && end >= PBP_STRING_TAIL && end <= part.len)
		load_tail(layout, out, part.bytes, end);
}

/* Bit i of `without_hash`: as it was before name i had a hash. */
static uint32_t ident_of(const struct pbp_target *layout, struct py_ident_part header,
			 const struct py_ident_part *names, unsigned int without_hash)
{
	struct ident ident = {};
	size_t bytes = py_ident__bytes(layout);

	if (!bytes || layout->co_ident + bytes > header.len)
		return 0;
	memcpy(ident.words, header.bytes + layout->co_ident, bytes);
	for (size_t i = 0; py_ident__has_names(layout) && i < NAMES; i++)
		load_name(layout, &ident.names[i], names[i], without_hash >> i & 1);
	return py_ident__fold(layout, ident.words, ident.names);
}

bool py_ident__matches(const struct pbp_target *layout, uint32_t ident, struct py_ident_part header,
		       const struct py_ident_part *names)
{
	unsigned int last = py_ident__has_names(layout) ? (1 << NAMES) - 1 : 0;

	for (unsigned int without_hash = 0; without_hash <= last; without_hash++)
		if (ident_of(layout, header, names, without_hash) == ident)
			return true;
	return false;
}

/* ---- from the process ---- */

struct reading {
	struct remote *remote;
	const struct pbp_target *layout;
	struct ident *idents;
	size_t count;
	struct remote_segment *segments; /* room for NAMES of each, and one more */
};

/* Read `count` segments and behind them *last, unless it is NULL. */
static int read_segments(struct reading *reading, size_t count, struct remote_segment *last)
{
	int err;

	if (last)
		reading->segments[count] = *last;
	err = remote__read_batch(reading->remote, reading->segments, count + (last != NULL));
	if (last)
		*last = reading->segments[count];
	return err;
}

static int read_words(struct reading *reading, const uint64_t *codes, struct remote_segment *last)
{
	size_t bytes = py_ident__bytes(reading->layout), count = bytes ? reading->count : 0;
	int err;

	for (size_t i = 0; i < count; i++)
		reading->segments[i] = (struct remote_segment){.addr = codes[i] + reading->layout->co_ident,
							       .dest = reading->idents[i].words,
							       .len = bytes};
	err = read_segments(reading, count, last);
	for (size_t i = 0; i < count && !err; i++)
		err = reading->segments[i].got < bytes ? -EFAULT : 0;
	return err;
}

/* Where a name is, by the pointer in the code object. */
static py_addr name_address(const struct pbp_target *layout, const __u64 *words, size_t which)
{
	size_t at = (which ? layout->co_filename : layout->co_name) - layout->co_ident;

	return at <= PBP_IDENT_BYTES - 8 ? load_u64((const uint8_t *)words + at) : 0;
}

struct remote_segment py_ident__head(const struct pbp_target *layout, const __u64 *words, size_t which,
				     struct pbp_string *name)
{
	return (struct remote_segment){.addr = name_address(layout, words, which) + layout->st_length,
				       .dest = name,
				       .len = HEAD_BYTES};
}

struct remote_segment py_ident__tail(const struct pbp_target *layout, const __u64 *words, size_t which,
				     const struct pbp_string *head, struct pbp_string *name)
{
	return (struct remote_segment){
		.addr = name_address(layout, words, which) + pbp_string_end(layout, head) - PBP_STRING_TAIL,
		.dest = name->tail,
		.len = head->hash == PBP_STRING_NO_HASH ? PBP_STRING_TAIL : 0};
}

static int read_heads(struct reading *reading)
{
	for (size_t i = 0; i < NAMES * reading->count; i++) {
		struct ident *ident = &reading->idents[i / NAMES];

		reading->segments[i] =
			py_ident__head(reading->layout, ident->words, i % NAMES, &ident->names[i % NAMES]);
	}
	return read_segments(reading, NAMES * reading->count, NULL);
}

static int read_tails(struct reading *reading, struct remote_segment *last)
{
	size_t wanted = 0;

	for (size_t i = 0; i < NAMES * reading->count; i++) {
		struct ident *ident = &reading->idents[i / NAMES];
		struct pbp_string *name = &ident->names[i % NAMES];

		reading->segments[wanted] =
			py_ident__tail(reading->layout, ident->words, i % NAMES, name, name);
		wanted += reading->segments[wanted].len > 0;
	}
	return read_segments(reading, wanted, last);
}

int py_idents__read(struct remote *remote, const struct pbp_target *layout, const uint64_t *codes,
		    size_t count, uint32_t *idents, struct remote_segment *last)
{
	struct reading reading = {
		.remote = remote,
		.layout = layout,
		.idents = calloc(count + 1, sizeof(*reading.idents)),
		.count = count,
		.segments = calloc(NAMES * count + 1, sizeof(*reading.segments)),
	};
	bool has_names = py_ident__has_names(layout);
	int err = reading.idents && reading.segments ? 0 : -ENOMEM;

	if (!err)
		err = read_words(&reading, codes, has_names ? NULL : last);
	if (!err && has_names)
		err = read_heads(&reading) ?: read_tails(&reading, last);
	for (size_t i = 0; i < count && !err; i++)
		idents[i] = py_ident__bytes(layout)
				    ? py_ident__fold(layout, reading.idents[i].words, reading.idents[i].names)
				    : 0;
	free(reading.segments);
	free(reading.idents);
	return err;
}
