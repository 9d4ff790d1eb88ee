/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct py_offsets -> the part of it that the BPF program walks by (struct pbp_target). Pure.
 */
#pragma once

#include "py/offsets.h"
#include "pybpfprof.h"

/*
 * Fill all of *out but the slot, the epoch and the addresses. `base_frame` is the offset of the sentinel
 * frame in the thread state, or PBP_NONE. 0, or -EOVERFLOW when a field lies beyond what the kernel side
 * reads at once.
 */
int py_layout__fill(struct pbp_target *out, const struct py_offsets *offsets, uint16_t base_frame);

/* Fill in the addresses for a runtime at `runtime`. */
void py_layout__locate(struct pbp_target *out, const struct py_offsets *offsets, uint64_t runtime);
