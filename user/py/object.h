/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of the target, read one by one from outside: types, integers, texts, items of sequences; dict.h:
 * what has keys. The target runs meanwhile and its bytes are hostile, so nothing that comes from here is sure
 * to be true; but every loop has a cap, every size is clamped, and what does not look like what it should be
 * is an error.
 */
#pragma once

#include "base/buf.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "os/pages.h"
#include "py/str.h"
#include "py/target.h"

#include <stdbool.h>
#include <stdint.h>

#define PY_ITEMS_MAX (1ull << 40) /* of a sequence, by its own word */

/* A bit of a type's flags: made by the program. */
#define PY_TYPE_HEAP (1ull << 9)

/* What an object is, or a subclass of what. */
enum py_kind {
	PY_KIND_OTHER,
	PY_KIND_NONE,
	PY_KIND_BOOL,
	PY_KIND_INT,
	PY_KIND_FLOAT,
	PY_KIND_STR,
	PY_KIND_BYTES,
	PY_KIND_TUPLE,
	PY_KIND_LIST,
	PY_KIND_DICT,
	PY_KIND_SET,
	PY_KIND_FROZENSET,
	PY_KIND_TYPE,
	PY_KIND_CELL,
	PY_KIND_ELLIPSIS,
	PY_KIND_NOT_IMPLEMENTED,
};

struct py_type {
	py_addr address;
	enum py_kind kind;
	bool exact;	/* that very type, no subclass */
	uint64_t flags; /* tp_flags */
	char name[160]; /* with its module, escaped */
};

struct py_objects {
	struct py_target *target; /* borrowed */
	struct page_cache pages;
	VEC(struct py_type) types;
	struct hmap type_index;
	bool naming; /* a type's module is being looked up */
	uint64_t entries_left; /* of dicts and sets that may be looked at; then none of them can be read */
};

void py_objects__init(struct py_objects *objects, struct py_target *target);
void py_objects__free(struct py_objects *objects);
/* What was read so far may have changed. */
void py_objects__forget(struct py_objects *objects);

/* Can this version's objects be read at all? If not, everything below fails with -ENOTSUP. */
bool py_objects__are_known(const struct py_objects *objects);

/* From memory, through the cache. 0 or -errno. */
int py_objects__read(struct py_objects *objects, py_addr at, void *out, size_t len);

/* The type of an object. Borrowed until the next call. NULL: unreadable, or no object. */
const struct py_type *py_object__type(struct py_objects *objects, py_addr object);
/* A type itself, with its name. The same. */
const struct py_type *py_type__read(struct py_objects *objects, py_addr type);

/* An int, or instance of a subclass: its digits of 30 bits, at most `max`; *count is how many there are. 0 or
 * -errno. */
int py_int__read(struct py_objects *objects, py_addr object, bool *negative, uint32_t *digits, size_t max,
		 uint64_t *count);
/* One that fits; for keys. 0 or -errno. */
int py_int__to_u64(struct py_objects *objects, py_addr object, uint64_t *out);

/* 0 or -errno. */
int py_float__read(struct py_objects *objects, py_addr object, double *out);

/*
 * The characters of a str, or of one that inherits it: at most `max` of them go to `data` (4 * max bytes). 0
 * or -errno.
 */
int py_text__read(struct py_objects *objects, py_addr object, struct py_str_info *info, uint8_t *data,
		  size_t max);
/* ... as UTF-8 (py/str.h). The same. */
int py_text__add(struct py_objects *objects, py_addr object, size_t max, struct buf *out);
/* Is it a str that reads so? */
bool py_text__is(struct py_objects *objects, py_addr object, const char *text);

/* Of a bytes object: at most `max`; *size is how many there are. 0 or -errno. */
int py_bytes__read(struct py_objects *objects, py_addr object, uint8_t *data, size_t max, uint64_t *size);

/* Where the items of a tuple or a list lie, and their number. 0 or -errno. */
int py_sequence__open(struct py_objects *objects, py_addr object, enum py_kind kind, py_addr *items,
		      uint64_t *count);

/* The value in a cell, 0: it is empty. */
int py_cell__read(struct py_objects *objects, py_addr cell, py_addr *value);
