/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names that Python's threading module knows threads by. They are those of Thread objects, so they are
 * there only if the program has imported threading, and the kernel has them only from 3.14 on, cut to 15
 * characters.
 */
#pragma once

#include "base/hmap.h"
#include "base/strtab.h"
#include "py/object.h"

#define PY_THREAD_NAME_CHARS 200
#define PY_THREAD_NAME_BYTES (4 * PY_THREAD_NAME_CHARS) /* as UTF-8 */

/* Can they be read of this version at all? */
bool py_thread_names__are_known(const struct py_objects *objects);

/*
 * Where an interpreter keeps its threads by ident, as long as it runs the same program. 0; -ENOENT: threading
 * is not imported; -ENOTSUP; -errno.
 */
int py_thread_names__find(struct py_objects *objects, py_addr interp, py_addr *active);
/*
 * Append the name of one of them: UTF-8, not escaped, at most PY_THREAD_NAME_CHARS. 0; -ENOENT: it has none
 * there; -errno.
 */
int py_thread_names__one(struct py_objects *objects, py_addr active, uint64_t ident, struct buf *out);

/*
 * Names of one interpreter's threads: ident (threading.get_ident()) -> strtab id, added to `out` where none
 * is yet. 0; -ENOENT: threading is not imported; -ENOTSUP: a version whose objects are not known; -errno.
 */
int py_thread_names__read(struct py_objects *objects, py_addr interp, struct strtab *strings,
			  struct hmap *out);
