/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sys.modules["threading"]._active is a dict of Thread objects by ident, and the name is their attribute
 * _name (Lib/threading.py, 3.8 to 3.15). Threads start and end meanwhile: an entry that does not read well is
 * left out.
 */
#include "py/thread_names.h"

#include "base/util.h"
#include "py/dict.h"

#include <errno.h>

#define THREADS_MAX 65536

bool py_thread_names__are_known(const struct py_objects *objects)
{
	return py_objects__are_known(objects) &&
	       py_offsets__has(objects->target->offsets.interp_imports_modules);
}

/* The dict of a module lies right behind the object's header (Include/internal/pycore_moduleobject.h). */
int py_thread_names__find(struct py_objects *objects, py_addr interp, py_addr *active)
{
	const struct py_offsets *offsets = &objects->target->offsets;
	py_addr modules = 0, module = 0, dict = 0;

	if (!py_thread_names__are_known(objects))
		return -ENOTSUP;
	return py_objects__read(objects, interp + offsets->interp_imports_modules, &modules, 8) ?:
	       modules ? py_dict__find(objects, modules, "threading", &module) ?:
			 py_objects__read(objects, module + offsets->var_object_size, &dict, 8) ?:
			 py_dict__find(objects, dict, "_active", active)
		       : -ENOENT;
}

static int add_name(struct py_objects *objects, py_addr thread, struct buf *out)
{
	py_addr name;

	return py_object__attribute(objects, thread, "_name", &name)
		       ?: py_text__add(objects, name, PY_THREAD_NAME_CHARS, out);
}

int py_thread_names__one(struct py_objects *objects, py_addr active, uint64_t ident, struct buf *out)
{
	const struct py_type *type = py_object__type(objects, active);
	py_addr thread;

	/* It was found some time ago. */
	if (!type || type->kind != PY_KIND_DICT)
		return -EINVAL;
	return py_dict__find_int(objects, active, ident, &thread) ?: add_name(objects, thread, out);
}

static int note_name(struct py_objects *objects, py_addr key, py_addr thread, struct strtab *strings,
		     struct hmap *out)
{
	struct buf text = {0};
	uint64_t ident;
	uint32_t id;
	int err = py_int__to_u64(objects, key, &ident);

	if (err || hmap__get(out, ident))
		return err;
	err = add_name(objects, thread, &text);
	if (!err) {
		id = strtab__add(strings, text.data ? text.data : "", text.len);
		err = id == UINT32_MAX ? -ENOMEM : hmap__set(out, ident, id);
	}
	buf__free(&text);
	return err;
}

int py_thread_names__read(struct py_objects *objects, py_addr interp, struct strtab *strings,
			  struct hmap *out)
{
	struct py_dict_iter iter;
	py_addr active, key, thread;
	int err = py_thread_names__find(objects, interp, &active) ?: py_dict__open(objects, active, &iter);

	for (int i = 0; i < THREADS_MAX && !err && py_dict__next(&iter, &key, &thread); i++)
		if (note_name(objects, key, thread, strings, out) == -ENOMEM)
			err = -ENOMEM;
	return err;
}
