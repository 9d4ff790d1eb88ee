/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between symbolize.c, which finds the node of a sample, and symbolize_share.c, which adds its time to it.
 */
#pragma once

#include "run/symbolize.h"

/* Is it left out of the profile? `stack` may be NULL. */
bool symbolize_is_hidden(const struct symbolizer *symbolizer, struct stack *stack,
			 const struct sample_share *share);
void symbolize_add_share(struct symbolizer *symbolizer, uint32_t node, const struct sample_share *share);
