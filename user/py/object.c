/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts: Include/cpython/{longintrepr,dictobject,setobject}.h, Include/internal/pycore_dict.h and
 * pycore_object.h. What the target's own table does not give and is the same in 3.13 to 3.15:
 *
 *	keys object	{refcnt, u8 log2_size, u8 log2_index_bytes, u8 kind, u32 version, usable, nentries,
 *indices[]} and then the entries: {hash, key, value}, or {key, value} where all keys are str values object
 *{u8 capacity, u8 size, u8 embedded, u8 valid, pointers from 8 on} instance	pointer to its dict three
 *words before the object; inline values behind tp_basicsize
 *	cell, module	the value, the dict: right behind the object's header
 */
#include "py/object.h"

#include "base/utf8.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* tp_flags, Include/object.h */
#define FLAG_INLINE_VALUES (1ull << 2)
#define FLAG_MANAGED_DICT  (1ull << 4)
#define FLAG_HEAP_TYPE	   (1ull << 9)
#define FLAG_INT	   (1ull << 24)
#define FLAG_LIST	   (1ull << 25)
#define FLAG_TUPLE	   (1ull << 26)
#define FLAG_BYTES	   (1ull << 27)
#define FLAG_STR	   (1ull << 28)
#define FLAG_DICT	   (1ull << 29)
#define FLAG_TYPE	   (1ull << 31)

#define KEYS_LOG2_INDEX_BYTES 9
#define KEYS_KIND	      10
#define KEYS_COUNT	      24
#define KEYS_KIND_GENERAL     0
#define KEYS_KIND_SPLIT	      2
#define KEYS_LOG2_MAX	      40
#define VALUES_VALID	      3
#define VALUES_ITEMS	      8
#define MANAGED_DICT	      (3 * 8) /* before the object ... */
#define MANAGED_DICT_FREE     8	      /* ... of a free-threaded build, which has no two words for the collector there */
#define FIRST_MINOR	      13

#define ENTRIES_MAX 100000
#define ITEMS_MAX   (1ull << 40) /* of a sequence, by its own word */
#define TYPES_MAX   4096
#define NAME_BYTES  120 /* of a type's */
#define TEXT_KEY    64	/* characters of a key that is compared */

/* lv_tag of an int: number of digits << 3, sign in the low two bits (2 = negative). */
#define INT_TAG_SHIFT 3
#define INT_SIGN      3
#define INT_NEGATIVE  2
#define INT_BITS      30

void py_objects__init(struct py_objects *objects, struct py_target *target)
{
	*objects = (struct py_objects){.target = target};
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

	return py_version_minor(offsets->version) >= FIRST_MINOR &&
	       py_offsets__has(offsets->type_flags) && py_offsets__has(offsets->long_tag);
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
	bool is_static = !(type->flags & FLAG_HEAP_TYPE);
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
	if (objects->naming || !(type->flags & FLAG_HEAP_TYPE) || !py_offsets__has(offset))
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

int py_int__read(struct py_objects *objects, py_addr object, bool *negative, uint32_t *digits, size_t max,
		 uint64_t *count)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint64_t tag;
	int err = py_objects__are_known(objects) ? read_word(objects, object + offsets->long_tag, &tag)
						 : -ENOTSUP;

	if (err)
		return err;
	if ((tag & INT_SIGN) == INT_SIGN)
		return -EINVAL;
	*negative = (tag & INT_SIGN) == INT_NEGATIVE;
	*count = tag >> INT_TAG_SHIFT;
	if (*count > ITEMS_MAX)
		return -EINVAL;
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

	if (!err && *size > ITEMS_MAX)
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
	return err ?: *count > ITEMS_MAX ? -EINVAL : 0;
}

int py_keys__decode(const uint8_t bytes[PY_KEYS_BYTES], struct py_keys_info *out)
{
	uint8_t log2 = bytes[KEYS_LOG2_INDEX_BYTES], kind = bytes[KEYS_KIND];

	if (log2 > KEYS_LOG2_MAX || kind > KEYS_KIND_SPLIT)
		return -EINVAL;
	*out = (struct py_keys_info){
		.entries = PY_KEYS_BYTES + (1ull << log2),
		.count = load_u64(bytes + KEYS_COUNT),
		.entry_bytes = kind == KEYS_KIND_GENERAL ? 24 : 16,
		.key_at = kind == KEYS_KIND_GENERAL ? 8 : 0,
		.split = kind == KEYS_KIND_SPLIT,
	};
	return out->count > ITEMS_MAX ? -EINVAL : 0;
}

static int open_keys(struct py_objects *objects, py_addr keys, py_addr values, struct py_dict_iter *out)
{
	uint8_t bytes[PY_KEYS_BYTES];
	struct py_keys_info info;
	int err = py_objects__read(objects, keys, bytes, sizeof(bytes)) ?: py_keys__decode(bytes, &info);

	if (err)
		return err;
	*out = (struct py_dict_iter){
		.objects = objects,
		.entries = keys + info.entries,
		.values = values ? values + VALUES_ITEMS : 0,
		.count = min_u64(info.count, ENTRIES_MAX),
		.entry_bytes = info.entry_bytes,
		.key_at = info.key_at,
	};
	return !values && info.split ? -EINVAL : 0;
}

int py_dict__open(struct py_objects *objects, py_addr dict, struct py_dict_iter *out)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	py_addr keys = 0, values = 0;
	int err = py_objects__are_known(objects) && py_offsets__has(offsets->dict_keys) ? 0 : -ENOTSUP;

	err = err ?: read_word(objects, dict + offsets->dict_keys, &keys) ?:
		     read_word(objects, dict + offsets->dict_values, &values);
	return err ?: open_keys(objects, keys, values, out);
}

bool py_dict__next(struct py_dict_iter *iter, py_addr *key, py_addr *value)
{
	while (iter->next < iter->count) {
		uint64_t index = iter->next++;
		py_addr pair[2];

		if (py_objects__read(iter->objects, iter->entries + index * iter->entry_bytes + iter->key_at,
				     pair, sizeof(pair)))
			return false;
		if (iter->values && read_word(iter->objects, iter->values + 8 * index, &pair[1]))
			return false;
		if (!pair[0] || !pair[1])
			continue;
		*key = pair[0];
		*value = pair[1];
		return true;
	}
	return false;
}

static int find_in(struct py_dict_iter *iter, const char *name, py_addr *value)
{
	py_addr key;

	while (py_dict__next(iter, &key, value))
		if (py_text__is(iter->objects, key, name))
			return 0;
	return -ENOENT;
}

int py_dict__find(struct py_objects *objects, py_addr dict, const char *key, py_addr *value)
{
	struct py_dict_iter iter;

	return py_dict__open(objects, dict, &iter) ?: find_in(&iter, key, value);
}

int py_set__open(struct py_objects *objects, py_addr set, struct py_set_iter *out)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint64_t mask = 0;
	int err = py_offsets__has(offsets->set_used) ? 0 : -ENOTSUP;

	*out = (struct py_set_iter){.objects = objects};
	err = err ?: read_word(objects, set + offsets->set_used, &out->used) ?:
		     read_word(objects, set + offsets->set_mask, &mask) ?:
		     read_word(objects, set + offsets->set_table, &out->table);
	if (!err && (mask & (mask + 1) || mask > ITEMS_MAX || out->used > mask))
		err = -EINVAL;
	out->slots = min_u64(mask + 1, ENTRIES_MAX);
	return err;
}

bool py_set__next(struct py_set_iter *iter, py_addr *key)
{
	while (iter->next < iter->slots) {
		uint64_t slot[2]; /* {key, hash}; a deleted one has hash -1 */

		if (py_objects__read(iter->objects, iter->table + 16 * iter->next++, slot, sizeof(slot)))
			return false;
		if (!slot[0] || slot[1] == UINT64_MAX)
			continue;
		*key = slot[0];
		return true;
	}
	return false;
}

/* --- instances --- */

static int open_inline_values(struct py_objects *objects, py_addr object, const struct py_type *type,
			      struct py_dict_iter *out)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	py_addr keys = 0;
	uint64_t size = 0;
	uint8_t valid = 0;
	int err = read_word(objects, type->address + offsets->type_basicsize, &size) ?:
		  read_word(objects, type->address + offsets->heap_type_cached_keys, &keys) ?:
		  py_objects__read(objects, object + size + VALUES_VALID, &valid, 1);

	return err ?: valid != 1 ? -ENOENT : open_keys(objects, keys, object + size, out);
}

int py_object__attribute(struct py_objects *objects, py_addr object, const char *name, py_addr *value)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	const struct py_type *type = py_object__type(objects, object);
	struct py_dict_iter iter;
	py_addr dict = 0;
	int err;

	if (!type || !(type->flags & FLAG_MANAGED_DICT) || !(type->flags & FLAG_HEAP_TYPE) ||
	    !py_offsets__has(offsets->type_basicsize) || !py_offsets__has(offsets->heap_type_cached_keys))
		return -ENOTSUP;
	err = read_word(objects, object - (offsets->free_threaded ? MANAGED_DICT_FREE : MANAGED_DICT), &dict);
	if (err || dict)
		return err ?: py_dict__find(objects, dict, name, value);
	if (!(type->flags & FLAG_INLINE_VALUES))
		return -ENOENT;
	return open_inline_values(objects, object, type, &iter) ?: find_in(&iter, name, value);
}

int py_cell__read(struct py_objects *objects, py_addr cell, py_addr *value)
{
	return read_word(objects, cell + objects->target->offsets.var_object_size, value);
}
