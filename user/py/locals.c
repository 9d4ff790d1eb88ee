/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame's first words behind its header are its variables, arguments first, in the order of
 * co_localsplusnames (Include/internal/pycore_frame.h). A variable that an inner function uses is in a cell,
 * once the function has begun; those of an outer function always are. From 3.14 on they are tagged references
 * (pycore_stackref.h): 1 in the low bits is a reference that is not counted, 3 an int without an object, and
 * no reference at all is a tag alone.
 */
#include "py/locals.h"

#include "base/util.h"
#include "py/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Kinds of names, Include/internal/pycore_code.h. */
#define KIND_CELL 0x40
#define KIND_FREE 0x80

/* What lies around co_argcount, and flags, Include/cpython/code.h. */
#define FLAGS_BEFORE	4
#define KEYWORDS_BEHIND 8
#define FLAG_ARGS	4
#define FLAG_KWARGS	8

#define TAG_BITS   3
#define TAG_INT	   3
#define NAME_CHARS 200
#define CODES_MAX  65536

void py_locals__init(struct py_locals *locals, struct py_objects *objects, struct strtab *strings)
{
	*locals = (struct py_locals){.objects = objects, .strings = strings};
}

void py_locals__free(struct py_locals *locals)
{
	for (size_t i = 0; i < locals->codes.len; i++) {
		free(locals->codes.items[i].names);
		free(locals->codes.items[i].kinds);
	}
	vec__free(&locals->codes);
	hmap__free(&locals->index);
}

/* --- names --- */

static uint32_t read_name(struct py_locals *locals, py_addr object)
{
	struct buf text = {0};
	uint32_t id = 0;

	if (!py_text__add(locals->objects, object, NAME_CHARS, &text))
		id = strtab__add(locals->strings, text.data ? text.data : "", text.len);
	buf__free(&text);
	return id == UINT32_MAX ? 0 : id;
}

/* {flags, argcount, posonlyargcount, kwonlyargcount}; *args and **kwargs come behind the others. */
static uint32_t count_arguments(const uint8_t bytes[16])
{
	uint32_t flags = load_u32(bytes), positional = load_u32(bytes + FLAGS_BEFORE),
		 keywords = load_u32(bytes + FLAGS_BEFORE + KEYWORDS_BEHIND);

	return min_u64((uint64_t)positional + keywords + !!(flags & FLAG_ARGS) + !!(flags & FLAG_KWARGS),
		       UINT32_MAX);
}

static int read_variables(struct py_locals *locals, struct py_variables *variables)
{
	struct py_objects *objects = locals->objects;
	const struct py_offsets *offsets = &objects->target->offsets;
	py_addr names = 0, kinds = 0, items = 0;
	uint8_t counts[16];
	uint64_t count = 0, size = 0;
	int err = py_objects__read(objects, variables->code + offsets->code_localsplusnames, &names, 8) ?:
		  py_objects__read(objects, variables->code + offsets->code_localspluskinds, &kinds, 8) ?:
		  py_objects__read(objects, variables->code + offsets->code_argcount - FLAGS_BEFORE, counts,
				   sizeof(counts)) ?:
		  py_sequence__open(objects, names, PY_KIND_TUPLE, &items, &count);

	if (err)
		return err;
	count = min_u64(count, LOCALS_MAX);
	variables->names = calloc(count + 1, sizeof(*variables->names));
	variables->kinds = calloc(count + 1, 1);
	if (!variables->names || !variables->kinds)
		return -ENOMEM;
	err = py_bytes__read(objects, kinds, variables->kinds, count, &size);
	for (uint64_t i = 0; i < count && !err; i++) {
		py_addr name = 0;

		err = py_objects__read(objects, items + 8 * i, &name, 8);
		variables->names[i] = read_name(locals, name);
	}
	variables->count = err || size < count ? 0 : count;
	variables->arguments = count_arguments(counts);
	variables->readable = !err && size >= count;
	return err;
}

/* Looked up once for each code object. NULL: out of memory. */
static const struct py_variables *find_variables(struct py_locals *locals, const struct pbp_frame *code)
{
	struct py_variables variables = {.code = code->code, .ident = code->ident};
	uint64_t key = hmap_mix(code->code) ^ code->ident;
	const uint64_t *known = hmap__get(&locals->index, key);

	if (known && locals->codes.items[*known].code == code->code &&
	    locals->codes.items[*known].ident == code->ident)
		return &locals->codes.items[*known];
	if (locals->codes.len >= CODES_MAX)
		return NULL;
	read_variables(locals, &variables);
	if (vec__push(&locals->codes, variables)) {
		free(variables.names);
		free(variables.kinds);
		return NULL;
	}
	hmap__set(&locals->index, key, locals->codes.len - 1);
	return &locals->codes.items[locals->codes.len - 1];
}

/* --- values --- */

/* 0: the variable has no value. */
static py_addr untag(const struct py_locals *locals, uint64_t word)
{
	return locals->objects->target->offsets.tagged_frames ? word & ~(uint64_t)TAG_BITS : word;
}

static bool is_tagged_int(const struct py_locals *locals, uint64_t word)
{
	return locals->objects->target->offsets.tagged_frames && (word & TAG_BITS) == TAG_INT;
}

static py_addr open_cell(struct py_locals *locals, py_addr object, uint8_t kind)
{
	const struct py_type *type =
		kind & (KIND_CELL | KIND_FREE) ? py_object__type(locals->objects, object) : NULL;
	py_addr value = 0;

	if (!type || type->kind != PY_KIND_CELL)
		return object;
	return py_cell__read(locals->objects, object, &value) ? 0 : value;
}

/* The id of its description; UINT32_MAX: it has no value. */
static uint32_t read_value(struct py_locals *locals, uint64_t word, uint8_t kind)
{
	struct buf text = {0};
	uint32_t id = UINT32_MAX;
	py_addr object = untag(locals, word);

	if (is_tagged_int(locals, word))
		buf__addf(&text, "%" PRId64, (int64_t)word >> 2);
	else if (object)
		object = open_cell(locals, object, kind);
	if (!text.len && object)
		py_value__add(locals->objects, object, &text);
	if (text.len && !text.err)
		id = strtab__add(locals->strings, text.data, text.len);
	buf__free(&text);
	return id;
}

bool py_locals__are_known(const struct py_objects *objects)
{
	const struct py_offsets *offsets = &objects->target->offsets;

	return py_objects__are_known(objects) && py_offsets__has(offsets->code_localsplusnames) &&
	       py_offsets__has(offsets->code_localspluskinds) && py_offsets__has(offsets->code_argcount) &&
	       py_offsets__has(offsets->tuple_size);
}

int py_locals__read(struct py_locals *locals, py_addr frame, const struct pbp_frame *code,
		    struct py_local *out)
{
	const struct py_offsets *offsets = &locals->objects->target->offsets;
	const struct py_variables *variables;
	uint64_t words[LOCALS_MAX];
	int count = 0, err;

	if (!py_locals__are_known(locals->objects))
		return -ENOTSUP;
	variables = find_variables(locals, code);
	if (!variables)
		return -ENOMEM;
	if (!variables->readable)
		return -EFAULT;
	err = variables->count ? remote__read(&locals->objects->target->remote,
					      frame + offsets->frame_localsplus, words, 8 * variables->count)
			       : 0;
	for (uint32_t i = 0; i < variables->count && !err; i++) {
		struct py_local local = {.name = variables->names[i], .argument = i < variables->arguments};

		local.value = read_value(locals, words[i], variables->kinds[i]);
		if (local.value != UINT32_MAX)
			out[count++] = local;
	}
	return err ?: count;
}
