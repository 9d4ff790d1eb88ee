/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts: Include/cpython/{dictobject,setobject}.h, Objects/dict-common.h (to 3.10),
 * Include/internal/pycore_dict.h and pycore_object.h. What no table gives:
 *
 *	keys object	from 3.11 on {refcnt, u8 log2_size, u8 log2_index_bytes, u8 kind, u32 version, usable,
 *			nentries, indices[]} and then the entries: {hash, key, value}, or {key, value} where
 *			all keys are str; to 3.10 {refcnt, size, function, usable, nentries, indices[]}, and
 *			always {hash, key, value}
 *	values object	from 3.13 on {u8 capacity, u8 size, u8 embedded, u8 valid, pointers from 8 on};
 *			before that the pointers
 *	instance	pointer to its dict three words before the object, to 3.10 at tp_dictoffset. Where it
 *			has no dict yet, values: behind tp_basicsize from 3.13 on; in 3.12 a pointer to them,
 *			less 1, in place of that to the dict; in 3.11 a pointer four words before the object
 */
#include "py/dict.h"

#include "base/util.h"

#include <errno.h>

/* tp_flags, Include/object.h */
#define FLAG_INLINE_VALUES (1ull << 2)
#define FLAG_MANAGED_DICT  (1ull << 4)

#define KEYS_LOG2_INDEX_BYTES 9
#define KEYS_KIND	      10
#define KEYS_COUNT	      24
#define KEYS_KIND_GENERAL     0
#define KEYS_KIND_SPLIT	      2
#define KEYS_LOG2_MAX	      40
#define OLD_KEYS_SIZE	      8 /* to 3.10 */
#define OLD_KEYS_COUNT	      32
#define VALUES_VALID	      3
#define VALUES_ITEMS	      8	      /* from 3.13 on */
#define MANAGED_DICT	      (3 * 8) /* before the object ... */
#define MANAGED_DICT_FREE     8	      /* ... of a free-threaded build: no words for the collector there */
#define MANAGED_VALUES	      (4 * 8) /* 3.11 */
#define DICT_OFFSET_MAX	      4096    /* to 3.10: no instance is believed to be larger */
#define ENTRIES_MAX	      100000

/* What the header of a keys object says. */
struct keys {
	uint64_t entries; /* offset from its start */
	uint64_t count;
	uint32_t entry_bytes, key_at;
	bool split;
};

static uint32_t minor_of(const struct py_objects *objects)
{
	return py_version_minor(objects->target->offsets.version);
}

static int read_word(struct py_objects *objects, py_addr at, uint64_t *out)
{
	return py_objects__read(objects, at, out, sizeof(*out));
}

static int decode_keys(const uint8_t bytes[PY_KEYS_BYTES], struct keys *out)
{
	uint8_t log2 = bytes[KEYS_LOG2_INDEX_BYTES], kind = bytes[KEYS_KIND];

	if (log2 > KEYS_LOG2_MAX || kind > KEYS_KIND_SPLIT)
		return -EINVAL;
	*out = (struct keys){
		.entries = PY_KEYS_BYTES + (1ull << log2),
		.count = load_u64(bytes + KEYS_COUNT),
		.entry_bytes = kind == KEYS_KIND_GENERAL ? 24 : 16,
		.key_at = kind == KEYS_KIND_GENERAL ? 8 : 0,
		.split = kind == KEYS_KIND_SPLIT,
	};
	return out->count > PY_ITEMS_MAX ? -EINVAL : 0;
}

/* To 3.10: the dict alone knows whether its table is split. */
static int decode_old_keys(const uint8_t bytes[PY_OLD_KEYS_BYTES], struct keys *out)
{
	uint64_t size = load_u64(bytes + OLD_KEYS_SIZE);
	uint64_t index_bytes = size <= UINT8_MAX ? 1 : size <= UINT16_MAX ? 2 : size <= UINT32_MAX ? 4 : 8;

	if (!size || size & (size - 1) || size > PY_ITEMS_MAX)
		return -EINVAL;
	*out = (struct keys){
		.entries = PY_OLD_KEYS_BYTES + size * index_bytes,
		.count = load_u64(bytes + OLD_KEYS_COUNT),
		.entry_bytes = 24,
		.key_at = 8,
	};
	return out->count > size ? -EINVAL : 0;
}

/*
 * Entries may be many and deleted, and one dict be in many places: it is not for the target to say how long that
 * takes.
 */
static bool may_look(struct py_objects *objects)
{
	return objects->entries_left && objects->entries_left--;
}

static int read_keys(struct py_objects *objects, py_addr keys, struct keys *out)
{
	uint8_t bytes[PY_OLD_KEYS_BYTES];
	bool old = minor_of(objects) <= 10;
	int err = py_objects__read(objects, keys, bytes, old ? PY_OLD_KEYS_BYTES : PY_KEYS_BYTES);

	return err ?: old ? decode_old_keys(bytes, out) : decode_keys(bytes, out);
}

static int open_keys(struct py_objects *objects, py_addr keys, py_addr values, struct py_dict_iter *out)
{
	struct keys info;
	int err = read_keys(objects, keys, &info);

	if (err)
		return err;
	*out = (struct py_dict_iter){
		.objects = objects,
		.entries = keys + info.entries,
		.values = values && minor_of(objects) >= 13 ? values + VALUES_ITEMS : values,
		.count = min_u64(info.count, ENTRIES_MAX),
		.entry_bytes = info.entry_bytes,
		.key_at = info.key_at,
	};
	return !values && info.split ? -EINVAL : !objects->entries_left ? -E2BIG : 0;
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
	while (iter->next < iter->count && may_look(iter->objects)) {
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

int py_dict__find_int(struct py_objects *objects, py_addr dict, uint64_t key, py_addr *value)
{
	struct py_dict_iter iter;
	/* {hash, key, value}, where keys are not all texts; an int's hash is itself. */
	uint64_t entry[3], found;
	int err = py_dict__open(objects, dict, &iter);

	for (; !err && iter.key_at && iter.next < iter.count && may_look(objects); iter.next++) {
		err = py_objects__read(objects, iter.entries + iter.next * iter.entry_bytes, entry,
				       sizeof(entry));
		if (err || entry[0] != key || !entry[1] || !entry[2] || iter.values)
			continue;
		*value = entry[2];
		return py_int__to_u64(objects, entry[1], &found) ?: found == key ? 0 : -ENOENT;
	}
	return err ?: -ENOENT;
}

int py_set__open(struct py_objects *objects, py_addr set, struct py_set_iter *out)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint64_t mask = 0;
	int err = !py_offsets__has(offsets->set_used) ? -ENOTSUP : !objects->entries_left ? -E2BIG : 0;

	*out = (struct py_set_iter){.objects = objects};
	err = err ?: read_word(objects, set + offsets->set_used, &out->used) ?:
		     read_word(objects, set + offsets->set_mask, &mask) ?:
		     read_word(objects, set + offsets->set_table, &out->table);
	if (!err && (mask & (mask + 1) || mask > PY_ITEMS_MAX || out->used > mask))
		err = -EINVAL;
	out->slots = min_u64(mask + 1, ENTRIES_MAX);
	return err;
}

bool py_set__next(struct py_set_iter *iter, py_addr *key)
{
	while (iter->next < iter->slots && may_look(iter->objects)) {
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

/* Where the pointer to the instance's dict is. 0 or -ENOTSUP. */
static int dict_pointer(struct py_objects *objects, py_addr object, const struct py_type *type, py_addr *at)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint64_t offset = 0;

	if (type->flags & FLAG_MANAGED_DICT && py_offsets__has(offsets->heap_type_cached_keys)) {
		*at = object - (offsets->free_threaded ? MANAGED_DICT_FREE : MANAGED_DICT);
		return 0;
	}
	if (!py_offsets__has(offsets->type_dictoffset) ||
	    read_word(objects, type->address + offsets->type_dictoffset, &offset) || !offset ||
	    offset > DICT_OFFSET_MAX)
		return -ENOTSUP;
	*at = object + offset;
	return 0;
}

/* Of an instance that has no dict yet. `word`: what stands in place of the pointer to it. */
static int open_values(struct py_objects *objects, py_addr object, const struct py_type *type, uint64_t word,
		       struct py_dict_iter *out)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	uint32_t minor = minor_of(objects);
	py_addr keys = 0, values = word + 1;
	int err = 0;

	if (minor >= 13)
		return type->flags & FLAG_INLINE_VALUES ? open_inline_values(objects, object, type, out)
							: -ENOENT;
	if (minor == 11)
		err = read_word(objects, object - MANAGED_VALUES, &values);
	if (err || minor < 11 || !values || values % 8)
		return err ?: -ENOENT;
	return read_word(objects, type->address + offsets->heap_type_cached_keys, &keys) ?:
	       open_keys(objects, keys, values, out);
}

int py_object__attribute(struct py_objects *objects, py_addr object, const char *name, py_addr *value)
{
	const struct py_type *type = py_object__type(objects, object);
	struct py_dict_iter iter;
	py_addr at = 0, dict = 0;
	int err = type && type->flags & PY_TYPE_HEAP ? dict_pointer(objects, object, type, &at) : -ENOTSUP;

	err = err ?: read_word(objects, at, &dict);
	if (err)
		return err;
	if (dict && dict % 8 == 0)
		return py_dict__find(objects, dict, name, value);
	return open_values(objects, object, type, dict, &iter) ?: find_in(&iter, name, value);
}
