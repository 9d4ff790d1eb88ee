/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a thread finds its own thread state, so that the BPF program needs no list walk: the pthread key
 * autoTSSkey up to 3.14, the thread-local _Py_tss_gilstate from 3.15 on. Both stay set while the GIL is
 * released. Only for glibc on x86-64; what is found is believed only after it gave the right answer for the
 * threads that exist.
 */
#pragma once

#include "py/runtime.h"
#include "py/target.h"

#include <stddef.h>

/*
 * Fill slot_kind, slot_offset, slot_offset2, slot_module of *layout (PBP_SLOT_NONE if there is no way that
 * proves right) and say in `how` what was found. Returns whether a slot was found.
 */
bool py_slot__find(struct pbp_target *layout, char *how, size_t how_size, struct remote *remote,
		   struct py_runtime *runtime, const struct py_thread *threads, size_t count);
