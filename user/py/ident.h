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
