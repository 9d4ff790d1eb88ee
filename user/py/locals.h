/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arguments and variables of a frame: their names from its code object, their values from the frame.
 */
#pragma once

#include "base/strtab.h"
#include "py/object.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stdint.h>

#define LOCALS_MAX 256 /* of one frame; the rest is not shown */

struct py_local {
	uint32_t name, value; /* strtab ids; the value as py/value.h says */
	bool argument;
};

/* What a code object says of the variables of its frames. */
struct py_variables {
	py_addr code;
	uint32_t ident;
	uint32_t count; /* of names; 0 also for what could not be read */
	uint32_t arguments;
	bool readable;
	uint32_t *names; /* owned */
	uint8_t *kinds;	 /* owned; CO_FAST_* */
};

struct py_locals {
	struct strtab *strings;	    /* borrowed */
	struct py_objects *objects; /* borrowed */
	VEC(struct py_variables) codes;
	struct hmap index;
};

void py_locals__init(struct py_locals *locals, struct py_objects *objects, struct strtab *strings);
void py_locals__free(struct py_locals *locals);

/* Can those of this version be read at all? */
bool py_locals__are_known(const struct py_objects *objects);

/*
 * The variables that have a value, arguments first, of the frame at `frame`; at most LOCALS_MAX go to `out`.
 * Their number, or -errno: -ENOTSUP for a version whose objects are not known.
 */
int py_locals__read(struct py_locals *locals, py_addr frame, const struct pbp_frame *code,
		    struct py_local *out);
