/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See listing.h.
 */
#include "agg/listing.h"

int listings__put(struct listings *listings, const struct listing *listing)
{
	const uint64_t *known = hmap__get(&listings->index, listing->file);

	if (known) {
		free(listings->items.items[*known].text);
		listings->items.items[*known] = *listing;
		return 0;
	}
	if (hmap__set(&listings->index, listing->file, listings->items.len) ||
	    vec__push(&listings->items, *listing)) {
		hmap__del(&listings->index, listing->file);
		free(listing->text);
		return -ENOMEM;
	}
	return 0;
}

const struct listing *listings__get(const struct listings *listings, uint32_t file)
{
	const uint64_t *known = hmap__get(&listings->index, file);

	return known ? &listings->items.items[*known] : NULL;
}

void listings__free(struct listings *listings)
{
	for (size_t i = 0; i < listings->items.len; i++)
		free(listings->items.items[i].text);
	vec__free(&listings->items);
	hmap__free(&listings->index);
}
