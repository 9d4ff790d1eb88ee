/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel describes its types in BTF: 150,000 of them, of which a BPF program touches a handful. libbpf
 * reads and indexes them all to relocate it, which takes longer than all else at start. Here a few structs
 * are cut out, for libbpf to read instead.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The structs of these names from the running kernel, as BTF in a memory file: its descriptor, or -errno. Not
 * fatal to the caller: libbpf can do without.
 */
int kernel_types__open(const char *const *names, size_t count);

/*
 * The structs of these names, out of BTF data (aligned to 4 bytes) into `out`. All members are there with
 * their offsets; their types are kept as far as kind, size and array bounds, and pointers point to void. A
 * struct within that is neither in `names` nor anonymous comes without its members. Names that do not occur
 * are left out. 0, -EINVAL for what is not BTF of this machine's byte order, -ENOMEM.
 */
int kernel_types__trim(const void *data, size_t len, const char *const *names, size_t count, struct buf *out);
