/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dicts, sets and the attributes of instances, as object.h has objects: read from outside, with a cap on
 * every loop.
 */
#pragma once

#include "py/object.h"

/* Goes through a dict, or through the attributes of an instance. */
struct py_dict_iter {
	struct py_objects *objects;
	py_addr entries, values; /* values: of a split table, else 0 */
	uint64_t count, next;
	uint32_t entry_bytes, key_at;
};

/* Bytes of a keys object's header, and what it says. Pure. 0 or -EINVAL. */
#define PY_KEYS_BYTES 32
struct py_keys_info {
	uint64_t entries; /* offset from the start of the keys object */
	uint64_t count;
	uint32_t entry_bytes, key_at;
	bool split;
};
int py_keys__decode(const uint8_t bytes[PY_KEYS_BYTES], struct py_keys_info *out);
/* The same to 3.10, where the dict alone knows whether its table is split. */
#define PY_OLD_KEYS_BYTES 40
int py_old_keys__decode(const uint8_t bytes[PY_OLD_KEYS_BYTES], struct py_keys_info *out);

int py_dict__open(struct py_objects *objects, py_addr dict, struct py_dict_iter *out);
/* The next entry that is not deleted; false at the end. At most some 100,000 are looked at. */
bool py_dict__next(struct py_dict_iter *iter, py_addr *key, py_addr *value);
/* The value of a str key. 0, -ENOENT, -errno. */
int py_dict__find(struct py_objects *objects, py_addr dict, const char *key, py_addr *value);
/* ... of an int key, in a dict that has any other than str keys. The same. */
int py_dict__find_int(struct py_objects *objects, py_addr dict, uint64_t key, py_addr *value);

/* Goes through a set: the keys of the table that are in use. */
struct py_set_iter {
	struct py_objects *objects;
	py_addr table;
	uint64_t slots, next, used;
};
int py_set__open(struct py_objects *objects, py_addr set, struct py_set_iter *out);
bool py_set__next(struct py_set_iter *iter, py_addr *key);

/* An attribute in an instance of a class written in Python. 0, -ENOENT, -errno. */
int py_object__attribute(struct py_objects *objects, py_addr object, const char *name, py_addr *value);
