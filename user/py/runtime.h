/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding _PyRuntime, the root of everything that CPython keeps. A process may hold several copies (a second
 * libpython, loaded or merely mapped); the one that counts has an interpreter that reads back sane. Neither a
 * name nor the cookie is proof: the table is static data of the file, so unused copies have it too.
 */
#pragma once

#include "os/remote.h"
#include "py/attach.h"
#include "py/image.h"
#include "py/offsets.h"

#include <stddef.h>
#include <stdint.h>

struct py_runtime {
	py_addr addr;		   /* of _PyRuntime */
	struct py_offsets offsets; /* decoded from its table */
	const char *how;	   /* "section", "symbol", "scan" */
	char image[256];	   /* path of its file, as /proc/PID/maps names it (unescaped) */
	struct image_file file;	   /* its file; fd is -1 when that could not be opened */
	uint64_t bias;		   /* of its file; valid if that is open */
};

/*
 * Find the live runtime of remote->pid. PY_ATTACH_OK: *out is filled, and py_runtime__close gives its file
 * back. Else `reason` says what was found instead, as a sentence; *out is then empty (closing it is allowed).
 * One pass over the images.
 */
enum py_attach_error py_runtime__find(struct py_runtime *out, struct remote *remote, char *reason,
				      size_t reason_size);
void py_runtime__close(struct py_runtime *runtime);

/* Address in the target of a symbol that the runtime's file exports. 0 or -ENOENT. */
int py_runtime__symbol(struct py_runtime *runtime, const char *name, py_addr *addr);

/* What an errno from reading the target means, with a sentence. */
enum py_attach_error py_attach_errno(int err, char *reason, size_t reason_size);
