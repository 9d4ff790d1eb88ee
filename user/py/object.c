/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts: Include/cpython/{longintrepr,unicodeobject,listobject}.h, Include/internal/pycore_object.h. What
 * no table gives: the value in a cell lies right behind the object's header.
 */
#include "py/object.h"

#include "base/utf8.h"
#include "base/util.h"
#include "py/dict.h"

#include <errno.h>
#include <stdio.h>

/* tp_flags, Include/object.h */
#define FLAG_INT	   (1ull << 24)
#define FLAG_LIST	   (1ull << 25)
#define FLAG_TUPLE	   (1ull << 26)
#define FLAG_BYTES	   (1ull << 27)
#define FLAG_STR	   (1ull << 28)
#define FLAG_DICT	   (1ull << 29)
#define FLAG_TYPE	   (1ull << 31)

#define TYPES_MAX  4096
#define NAME_BYTES 120 /* of a type's */
#define TEXT_KEY   64  /* characters of a key that is compared */

/* lv_tag of an int: number of digits << 3, sign in the low two bits (2 = negative). */
#define INT_TAG_SHIFT 3
#define INT_SIGN      3
#define INT_NEGATIVE  2
#define INT_BITS      30

void py_objects__init(struct py_objects *objects, struct py_target *target)
{
	*objects = (struct py_objects){.target = target, .entries_left = UINT64_MAX};
}

void py_objects__free(struct py_objects *objects)
{
	page_cache__free(&objects->pages);
	vec__free(&objects->types);
	hmap__free(&objects->type_index);
}

void py_objects__forget(struct py_objects *objects)
{
	page_cache__forget(&objects->pages);
	objects->types.len = 0;
	hmap__clear(&objects->type_index);
}

bool py_objects__are_known(const struct py_objects *objects)
{
	const struct py_offsets *offsets = &objects->target->offsets;

	return py_offsets__has(offsets->type_flags) && py_offsets__has(offsets->long_tag);
}

int py_objects__read(struct py_objects *objects, py_addr at, void *out, size_t len)
{
	return page_cache__read(&objects->pages, &objects->target->remote, at, out, len);
}

static int read_word(struct py_objects *objects, py_addr at, uint64_t *out)
{
	return py_objects__read(objects, at, out, sizeof(*out));
}

/* Up to the last byte that is readable; a NUL is always there. */
static void read_c_string(struct py_objects *objects, py_addr at, char *out, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		size_t part = min_u64(size - 1 - len, PAGE_CACHE_BYTES - (at + len) % PAGE_CACHE_BYTES);

		if (py_objects__read(objects, at + len, out + len, part))
			break;
		len += part;
	}
	out[len] = '\0';
}

/* --- types --- */

static enum py_kind kind_by_name(const char *name)
{
	static const struct {
		const char *name;
		enum py_kind kind;
	} kinds[] = {
		{"NoneType", PY_KIND_NONE},	  {"bool", PY_KIND_BOOL},
		{"float", PY_KIND_FLOAT},	  {"set", PY_KIND_SET},
		{"frozenset", PY_KIND_FROZENSET}, {"cell", PY_KIND_CELL},
		{"ellipsis", PY_KIND_ELLIPSIS},	  {"NotImplementedType", PY_KIND_NOT_IMPLEMENTED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	return PY_KIND_OTHER;
}

static enum py_kind kind_by_flags(uint64_t flags, const char **base)
{
	static const struct {
		uint64_t flag;
		enum py_kind kind;
		const char *name;
	} kinds[] = {
		{FLAG_INT, PY_KIND_INT, "int"},	      {FLAG_LIST, PY_KIND_LIST, "list"},
		{FLAG_TUPLE, PY_KIND_TUPLE, "tuple"}, {FLAG_BYTES, PY_KIND_BYTES, "bytes"},
		{FLAG_STR, PY_KIND_STR, "str"},	      {FLAG_DICT, PY_KIND_DICT, "dict"},
		{FLAG_TYPE, PY_KIND_TYPE, "type"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!(flags & kinds[i].flag))
			continue;
		*base = kinds[i].name;
		return kinds[i].kind;
	}
	return PY_KIND_OTHER;
}

/* The names of built-in types are taken at their word only where the type is no class of the program's. */
static void classify(struct py_type *type, const char *name)
{
	bool is_static = !(type->flags & PY_TYPE_HEAP);
	const char *base = NULL;

	type->kind = is_static ? kind_by_name(name) : PY_KIND_OTHER;
	type->exact = true;
	if (type->kind != PY_KIND_OTHER)
		return;
	type->kind = kind_by_flags(type->flags, &base);
	type->exact = base && is_static && !strcmp(name, base);
}

/* A class of the program's is told by its name alone; where it was made is an entry of its dict. */
static void add_module(struct py_objects *objects, const struct py_type *type, struct buf *out)
{
	uint32_t offset = objects->target->offsets.type_dict;
	py_addr dict = 0, module = 0;
	struct buf text = {0};

	/* Types of keys need no module; memory that is made so could go on like that without end. */
	if (objects->naming || !(type->flags & PY_TYPE_HEAP) || !py_offsets__has(offset))
		return;
	objects->naming = true;
	if (!read_word(objects, type->address + offset, &dict) && dict &&
	    !py_dict__find(objects, dict, "__module__", &module) &&
	    !py_text__add(objects, module, NAME_BYTES / 2, &text))
		buf__addc(&text, '\0');
	objects->naming = false;
	if (!text.err && text.len && strcmp(text.data, "builtins")) {
		buf__add_escaped(out, text.data, NULL);
		buf__addc(out, '.');
	}
	buf__free(&text);
}

static void name_type(struct py_objects *objects, struct py_type *type, const char *name)
{
	struct buf text = {0};

	if (!strchr(name, '.'))
		add_module(objects, type, &text);
	buf__add_escaped(&text, *name ? name : "?", NULL);
	if (!text.err)
		snprintf(type->name, sizeof(type->name), "%.*s",
			 (int)utf8_fit_bytes(text.data, text.len, sizeof(type->name) - 1), text.data);
	buf__free(&text);
}

const struct py_type *py_type__read(struct py_objects *objects, py_addr address)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	const uint64_t *known = hmap__get(&objects->type_index, address);
	struct py_type type = {.address = address};
	char name[NAME_BYTES];
	py_addr name_at;

	if (known)
		return &objects->types.items[*known];
	if (!py_objects__are_known(objects) ||
	    read_word(objects, address + offsets->type_flags, &type.flags) ||
	    read_word(objects, address + offsets->type_name, &name_at) || !name_at)
		return NULL;
	read_c_string(objects, name_at, name, sizeof(name));
	classify(&type, name);
	name_type(objects, &type, name);
	if (objects->types.len >= TYPES_MAX) {
		objects->types.len = 0;
		hmap__clear(&objects->type_index);
	}
	if (vec__push(&objects->types, type) ||
	    hmap__set(&objects->type_index, address, objects->types.len - 1))
		return NULL;
	return &objects->types.items[objects->types.len - 1];
}

const struct py_type *py_object__type(struct py_objects *objects, py_addr object)
{
	py_addr type;

	/* Every object is aligned to a word. */
	if (!object || object % 8 ||
	    read_word(objects, object + objects->target->offsets.object_type, &type) || !type || type % 8)
		return NULL;
	return py_type__read(objects, type);
}

/* --- numbers --- */

/* Before 3.12 there is a size, negative if the number is, in place of the tag. */
static int decode_tag(uint32_t minor, uint64_t tag, bool *negative, uint64_t *count)
{
	if (minor >= 12 && (tag & INT_SIGN) == INT_SIGN)
		return -EINVAL;
	*negative = minor >= 12 ? (tag & INT_SIGN) == INT_NEGATIVE : tag >> 63;
	*count = minor >= 12 ? tag >> INT_TAG_SHIFT : *negative ? -tag : tag;
	return *count > PY_ITEMS_MAX ? -EINVAL : 0;
}

int py_int__read(struct py_objects *objects, py_addr object, bool *negative, uint32_t *digits, size_t max,
		 uint64_t *count)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint64_t tag = 0;
	int err = py_objects__are_known(objects) ? read_word(objects, object + offsets->long_tag, &tag)
						 : -ENOTSUP;

	err = err ?: decode_tag(py_version_minor(offsets->version), tag, negative, count);
	if (err)
		return err;
	/* Zero has one digit, which is 0, or none. */
	memset(digits, 0, max * sizeof(*digits));
	err = py_objects__read(objects, object + offsets->long_digits, digits,
			       min_u64(*count, max) * sizeof(*digits));
	for (size_t i = 0; i < min_u64(*count, max) && !err; i++)
		err = digits[i] >> INT_BITS ? -EINVAL : 0;
	return err;
}

int py_int__to_u64(struct py_objects *objects, py_addr object, uint64_t *out)
{
	const struct py_type *type = py_object__type(objects, object);
	uint32_t digits[3];
	uint64_t count;
	bool negative;
	int err = type && type->kind == PY_KIND_INT
			  ? py_int__read(objects, object, &negative, digits, ARRAY_SIZE(digits), &count)
			  : -EINVAL;

	if (err)
		return err;
	if (negative || count > ARRAY_SIZE(digits) || digits[2] >> 4)
		return -ERANGE;
	*out = digits[0] | (uint64_t)digits[1] << INT_BITS | (uint64_t)digits[2] << (2 * INT_BITS);
	return 0;
}

int py_float__read(struct py_objects *objects, py_addr object, double *out)
{
	uint32_t offset = objects->target->offsets.float_value;

	return py_offsets__has(offset) ? py_objects__read(objects, object + offset, out, sizeof(*out))
				       : -ENOTSUP;
}

/* --- texts --- */

int py_text__read(struct py_objects *objects, py_addr object, struct py_str_info *info, uint8_t *data,
		  size_t max)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	struct py_str_layout layout = {.length = offsets->unicode_length,
				       .state = offsets->unicode_state,
				       .ascii_size = offsets->unicode_ascii_size,
				       .compact_size = offsets->unicode_compact_size,
				       .wide_interned = offsets->wide_interned,
				       .any_length = true};
	uint8_t header[64];
	size_t bytes = min_u64(offsets->unicode_ascii_size, sizeof(header));
	py_addr at;
	int err = py_objects__read(objects, object, header, bytes)
			  ?: py_str__header(&layout, header, bytes, info);

	if (err)
		return err;
	at = object + info->data_offset;
	/* An instance of a subclass has its characters elsewhere. */
	if (!info->compact)
		err = read_word(objects, at, &at);
	return err ?: py_objects__read(objects, at, data, min_u64(info->length, max) * info->kind);
}

int py_text__add(struct py_objects *objects, py_addr object, size_t max, struct buf *out)
{
	const struct py_type *type = py_object__type(objects, object);
	struct py_str_info info;
	uint8_t *data;
	int err;

	if (!type || type->kind != PY_KIND_STR)
		return -EINVAL;
	data = malloc(4 * max);
	err = data ? py_text__read(objects, object, &info, data, max) : -ENOMEM;
	if (!err)
		py_str__to_utf8(info.kind, data, min_u64(info.length, max), out);
	free(data);
	return err ?: out->err;
}

bool py_text__is(struct py_objects *objects, py_addr object, const char *text)
{
	uint8_t data[4 * TEXT_KEY];
	struct py_str_info info;
	size_t len = strlen(text);
	const struct py_type *type;

	/* The characters first: most keys differ in their length, and their types need not be looked up. */
	if (len > TEXT_KEY || py_text__read(objects, object, &info, data, len) || !info.ascii ||
	    info.length != len || memcmp(data, text, len))
		return false;
	type = py_object__type(objects, object);
	return type && type->kind == PY_KIND_STR;
}

int py_bytes__read(struct py_objects *objects, py_addr object, uint8_t *data, size_t max, uint64_t *size)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	int err = read_word(objects, object + offsets->bytes_size, size);

	if (!err && *size > PY_ITEMS_MAX)
		err = -EINVAL;
	return err ?: py_objects__read(objects, object + offsets->bytes_data, data, min_u64(*size, max));
}

/* --- containers --- */

int py_sequence__open(struct py_objects *objects, py_addr object, enum py_kind kind, py_addr *items,
		      uint64_t *count)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint32_t size_at = kind == PY_KIND_LIST ? offsets->list_size : offsets->tuple_size;
	uint32_t items_at = kind == PY_KIND_LIST ? offsets->list_items : offsets->tuple_items;
	int err = py_offsets__has(size_at) && py_offsets__has(items_at) ? 0 : -ENOTSUP;

	*items = object + items_at;
	err = err ?: read_word(objects, object + size_at, count);
	if (!err && kind == PY_KIND_LIST)
		err = read_word(objects, object + items_at, items);
	return err ?: *count > PY_ITEMS_MAX ? -EINVAL : 0;
}

int py_cell__read(struct py_objects *objects, py_addr cell, py_addr *value)
{
	return read_word(objects, cell + objects->target->offsets.var_object_size, value);
}
