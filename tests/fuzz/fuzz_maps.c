/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text of /proc/PID/maps, in which the names of files are anybody's. */
#include "fuzz.h"
#include "os/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct maps maps;

	check(!maps__parse(&maps, (const char *)data, len));
	for (size_t i = 0; i < maps.entries.len; i++) {
		const struct map_entry *entry = &maps.entries.items[i];

		check(entry->start < entry->end && entry->path);
		check(!i || entry[-1].start <= entry->start);
		check(strlen(entry->path) <= len);
	}
	maps__free(&maps);
	return 0;
}
