/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The identity of a code object, by which it is told from an earlier one at the same address, as the kernel
 * side computes it (read_ident in bpf/walk.bpf.h).
 */
#pragma once

#include "os/remote.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Do the names belong to it? Else the code object's own bytes are enough. */
static inline bool py_ident__has_names(const struct pbp_target *layout)
{
	return layout->co_ident != PBP_NONE && layout->st_length != PBP_NONE;
}

/* Length of the part of a code object at co_ident; 0 = this version has no identities. */
static inline size_t py_ident__bytes(const struct pbp_target *layout)
{
	return layout->co_ident == PBP_NONE ? 0 : layout->co_ident_bytes & (PBP_IDENT_BYTES - 1);
}

#define PY_IDENT_NAMES 2 /* of the function, of the file */

/*
 * The identity by the `py_ident__bytes` bytes at co_ident and, if they belong to it, the two names: what is
 * read of them by py_ident__head and then, its len being 0 if it is not needed, py_ident__tail.
 */
uint32_t py_ident__fold(const struct pbp_target *layout, const __u64 *words, const struct pbp_string *names);
struct remote_segment py_ident__head(const struct pbp_target *layout, const __u64 *words, size_t which,
				     struct pbp_string *name);
/* `head` is what the first has read, or is expected to read. */
struct remote_segment py_ident__tail(const struct pbp_target *layout, const __u64 *words, size_t which,
				     const struct pbp_string *head, struct pbp_string *name);

struct py_ident_part {
	const uint8_t *bytes; /* from the start of the object */
	size_t len;
};

/*
 * Can the code object that has these first bytes, and these two string objects at co_name and co_filename,
 * have been sampled with that identity? CPython may have computed a string's hash since. Without names
 * (py_ident__has_names), `names` is not looked at.
 */
bool py_ident__matches(const struct pbp_target *layout, uint32_t ident, struct py_ident_part header,
		       const struct py_ident_part *names);

/*
 * Of code objects as they are now, in at most three system calls (per IOV_MAX of them), and after that *last,
 * in the same call as the last of them. 0; -EFAULT when a code object cannot be read; else -errno.
 */
int py_idents__read(struct remote *remote, const struct pbp_target *layout, const uint64_t *codes,
		    size_t count, uint32_t *idents, struct remote_segment *last);
