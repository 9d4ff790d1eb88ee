/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weights that are known exactly in sum, and by samples only as to where they belong. They are kept apart
 * from the profile until they are settled: then each sum is shared out in proportion.
 */
#pragma once

#include "agg/trie.h"
#include "base/hmap.h"

#include <stdint.h>

#define ESTIMATE_KINDS	9	   /* each has a sum of its own */
/* The nodes of what is not in the profile: waits for work, and what was not asked for. */
#define ESTIMATE_HIDDEN	  UINT32_MAX
#define ESTIMATE_LEFT_OUT (UINT32_MAX - 1)

struct estimate {
	struct hmap shares; /* node * ESTIMATE_KINDS + kind -> weight since it was settled last */
	uint64_t sums[ESTIMATE_KINDS];
	uint64_t settled[ESTIMATE_KINDS]; /* of the exact sums */
	uint64_t hidden, left_out;	  /* shares of these, settled */
};

/* 0 or -ENOMEM. */
int estimate__add(struct estimate *estimate, uint32_t node, uint32_t kind, uint64_t weight);
/*
 * `exact`: what each kind has come to since the beginning. What is due of it goes to the nodes; to the node
 * `rest`, which may be ESTIMATE_HIDDEN, if there was no sample of the kind.
 */
void estimate__settle(struct estimate *estimate, struct trie *trie, const uint64_t exact[ESTIMATE_KINDS],
		      uint32_t rest);
void estimate__free(struct estimate *estimate);
