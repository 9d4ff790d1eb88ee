/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See estimate.h.
 */
#include "agg/estimate.h"

#include "base/util.h"

#include <string.h>

int estimate__add(struct estimate *estimate, uint32_t node, uint32_t kind, uint64_t weight)
{
	uint64_t key = (uint64_t)node * ESTIMATE_KINDS + kind % ESTIMATE_KINDS;
	uint64_t *known = hmap__get(&estimate->shares, key);
	int err = 0;

	if (known)
		*known += weight;
	else
		err = hmap__set(&estimate->shares, key, weight);
	if (!err)
		estimate->sums[kind % ESTIMATE_KINDS] += weight;
	return err;
}

void estimate__settle(struct estimate *estimate, struct trie *trie, const uint64_t exact[ESTIMATE_KINDS],
		      uint32_t rest)
{
	uint64_t due[ESTIMATE_KINDS], left[ESTIMATE_KINDS];
	const struct hmap_slot *slot;

	for (uint32_t kind = 0; kind < ESTIMATE_KINDS; kind++) {
		due[kind] = exact[kind] > estimate->settled[kind] ? exact[kind] - estimate->settled[kind] : 0;
		left[kind] = due[kind];
		estimate->settled[kind] += due[kind];
	}
	for (size_t i = 0; (slot = hmap__next(&estimate->shares, &i));) {
		uint32_t kind = slot->key % ESTIMATE_KINDS;
		uint64_t share = part_of(due[kind], slot->value, estimate->sums[kind]);

		left[kind] -= share;
		if (slot->key / ESTIMATE_KINDS == ESTIMATE_HIDDEN)
			estimate->hidden += share;
		else if (slot->key / ESTIMATE_KINDS == ESTIMATE_LEFT_OUT)
			estimate->left_out += share;
		else
			trie__add(trie, slot->key / ESTIMATE_KINDS, share);
	}
	/* Where there were samples, that is what rounding has left. */
	for (uint32_t kind = 0; kind < ESTIMATE_KINDS; kind++)
		if (left[kind] && !estimate->sums[kind] && rest == ESTIMATE_HIDDEN)
			estimate->hidden += left[kind];
		else if (left[kind] && !estimate->sums[kind])
			trie__add(trie, rest, left[kind]);
	hmap__clear(&estimate->shares);
	memset(estimate->sums, 0, sizeof(estimate->sums));
}

void estimate__free(struct estimate *estimate)
{
	hmap__free(&estimate->shares);
}
