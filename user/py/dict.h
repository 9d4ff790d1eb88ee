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

/* Bytes of the header of a dict's table, a keys object; to 3.10. */
#define PY_KEYS_BYTES	  32
#define PY_OLD_KEYS_BYTES 40

/* 0 or -errno. */
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
/* 0 or -errno. */
int py_set__open(struct py_objects *objects, py_addr set, struct py_set_iter *out);
bool py_set__next(struct py_set_iter *iter, py_addr *key);

/* An attribute in an instance of a class written in Python. 0, -ENOENT, -errno. */
int py_object__attribute(struct py_objects *objects, py_addr object, const char *name, py_addr *value);
