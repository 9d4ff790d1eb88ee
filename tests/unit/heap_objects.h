/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of all versions (versions.h) in one heap (object_heap.h): texts, numbers, dicts of all kinds, and
 * what threading is made of.
 */
#pragma once

#include "object_heap.h"
#include "py/dict.h"
#include "versions.h"

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

static struct object_heap heap;
static py_addr type_of_str, type_of_int;

static inline int minor_of_heap(void)
{
	return py_version_minor(heap.target.offsets.version);
}

/* A version as versions.h numbers them. */
static inline void begin(int version)
{
	struct py_offsets offsets;

	image_offsets(&offsets, version);
	object_heap__init(&heap, &offsets);
	type_of_str = heap_type(&heap, "str", FLAG_STR);
	type_of_int = heap_type(&heap, "int", FLAG_INT);
}

static inline void end(void)
{
	object_heap__free(&heap);
}

static inline py_addr make_str(const char *ascii)
{
	const struct py_offsets *offsets = &heap.target.offsets;
	py_addr object = heap_object(&heap, type_of_str, offsets->unicode_ascii_size + strlen(ascii) + 1);

	heap_put(object + offsets->unicode_length, strlen(ascii), 8);
	heap_put(object + offsets->unicode_state, (1 | 1 << 3 | 1 << 4) << (offsets->wide_interned ? 8 : 2),
		 4);
	memcpy((void *)(uintptr_t)(object + offsets->unicode_ascii_size), ascii, strlen(ascii));
	return object;
}

static inline py_addr make_int(int64_t value)
{
	py_addr object = heap_object(&heap, type_of_int, 64);
	uint64_t rest = value < 0 ? -value : value, count = 0;

	for (; rest; rest >>= 30)
		heap_put(object + heap.target.offsets.long_digits + 4 * count++, rest & 0x3fffffff, 4);
	if (minor_of_heap() < 12)
		heap_put(object + heap.target.offsets.long_tag, value < 0 ? -count : count, 8);
	else
		heap_put(object + heap.target.offsets.long_tag,
			 count << 3 | (value < 0 ? 2 : !value),
			 8);
	return object;
}

static inline int64_t int_value(py_addr object)
{
	const struct py_offsets *offsets = &heap.target.offsets;

	return load_u64((void *)(uintptr_t)(object + offsets->object_type)) != type_of_int
		       ? -1
		       : load_u32((void *)(uintptr_t)(object + offsets->long_digits)) |
				 (int64_t)load_u32((void *)(uintptr_t)(object + offsets->long_digits + 4))
					 << 30;
}

/* Keys of kind 0 (general), 1 (all str) or 2 (split), with entries {key, value}. To 3.10 these look alike. */
static inline py_addr make_keys(const py_addr (*entries)[2], size_t count, int kind)
{
	bool old = minor_of_heap() <= 10, has_hash = old || !kind;
	size_t bytes = has_hash ? 24 : 16, header = old ? PY_OLD_KEYS_BYTES : PY_KEYS_BYTES;
	py_addr keys = heap_take(&heap, header + 8 + bytes * count + 64);

	heap_put(keys + 8, old ? 8 : 3, 1);
	if (!old) {
		heap_put(keys + 9, 3, 1);
		heap_put(keys + 10, kind, 1);
	}
	heap_put(keys + (old ? 32 : 24), count, 8);
	for (size_t i = 0; i < count; i++) {
		py_addr entry = keys + header + 8 + bytes * i;

		if (has_hash)
			heap_put(entry, int_value(entries[i][0]), 8);
		heap_put(entry + bytes - 16, entries[i][0], 8);
		heap_put(entry + bytes - 8, kind == 2 ? 0 : entries[i][1], 8);
	}
	return keys;
}

static inline py_addr make_values(const py_addr (*entries)[2], size_t count)
{
	size_t header = minor_of_heap() >= 13 ? 8 : 0;
	py_addr values = heap_take(&heap, header + 8 * count);

	if (header)
		heap_put(values + 3, 1, 1);
	for (size_t i = 0; i < count; i++)
		heap_put(values + header + 8 * i, entries[i][1], 8);
	return values;
}

static inline py_addr make_dict(const py_addr (*entries)[2], size_t count, int kind)
{
	py_addr object = heap_object(&heap, heap_type(&heap, "dict", FLAG_DICT), 64);

	heap_put(object + heap.target.offsets.dict_keys, make_keys(entries, count, kind), 8);
	heap_put(object + heap.target.offsets.dict_values, kind == 2 ? make_values(entries, count) : 0, 8);
	return object;
}

/* Its attributes in a dict, or, as of a new one, as values of keys that it shares with others. */
static inline py_addr make_thread(const char *name, bool with_dict)
{
	const struct py_offsets *offsets = &heap.target.offsets;
	int minor = minor_of_heap();
	uint64_t flags = minor >= 13   ? FLAG_HEAP_TYPE | FLAG_MANAGED_DICT | FLAG_INLINE_VALUES
			 : minor >= 11 ? FLAG_HEAP_TYPE | FLAG_MANAGED_DICT
				       : FLAG_HEAP_TYPE;
	py_addr pairs[2][2], type = heap_type(&heap, "Thread", flags);
	py_addr object = heap_object(&heap, type, 64), values;

	pairs[0][0] = make_str("_target");
	pairs[0][1] = make_int(1);
	pairs[1][0] = make_str("_name");
	pairs[1][1] = make_str(name);
	if (minor <= 10) {
		heap_put(type + offsets->type_dictoffset, 16, 8);
		heap_put(object + 16, make_dict(pairs, 2, with_dict ? 1 : 2), 8);
		return object;
	}
	if (with_dict) {
		heap_put(object - (offsets->free_threaded ? 8 : 24), make_dict(pairs, 2, 1), 8);
		return object;
	}
	values = make_values(pairs, 2);
	heap_put(type + offsets->heap_type_cached_keys, make_keys(pairs, 2, 2), 8);
	if (minor >= 13)
		heap_put(type + offsets->type_basicsize, values - object, 8);
	else if (minor == 12)
		heap_put(object - 24, values - 1, 8);
	else
		heap_put(object - 32, values, 8);
	return object;
}

/* threading._active, of threads that are made so. */
static inline py_addr make_active(const uint64_t *idents, const char *const *names, size_t count)
{
	py_addr threads[8][2];

	for (size_t i = 0; i < count; i++) {
		threads[i][0] = make_int(idents[i]);
		threads[i][1] = make_thread(names[i], i % 2);
	}
	return make_dict((const py_addr(*)[2])threads, count, 0);
}

/* An interpreter that has imported threading. */
static inline py_addr make_interp(py_addr active)
{
	py_addr interp = heap_take(&heap, 16384),
		module = heap_object(&heap, heap_type(&heap, "module", 0), 64);
	py_addr entry[1][2] = {{make_str("_active"), active}},
		modules[1][2] = {{make_str("threading"), module}};

	heap_put(module + heap.target.offsets.var_object_size, make_dict((const py_addr(*)[2])entry, 1, 1),
		 8);
	heap_put(interp + heap.target.offsets.interp_imports_modules,
		 make_dict((const py_addr(*)[2])modules, 1, 0), 8);
	return interp;
}
