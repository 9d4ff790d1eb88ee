/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is mapped at an address of a process.
 */
#pragma once

#include "os/maps.h"

static inline const struct map_entry *entry_at(const struct maps *maps, uint64_t address)
{
	for (size_t i = 0; i < maps->entries.len; i++) {
		const struct map_entry *entry = &maps->entries.items[i];

		if (entry->start <= address && address < entry->end)
			return entry;
	}
	return NULL;
}
