/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytecode offset -> source line, for each encoding that CPython has used. Pure: bytes in, line out; bytes
 * are hostile. Sources: CPython Objects/lnotab_notes.txt (3.8-3.10), Objects/locations.md (3.11-3.12),
 * InternalDocs/code_objects.md (3.13+).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum linetable_kind {
	LINETABLE_LNOTAB,    /* 3.8, 3.9: co_lnotab */
	LINETABLE_RANGES,    /* 3.10: co_linetable */
	LINETABLE_LOCATIONS, /* 3.11+: co_linetable */
};

/*
 * Line of the instruction at `lasti` (bytes from the start of the bytecode; negative = not started). Returns
 * the line, or 0 when the table gives none for it (no location, table too short or malformed, line out
 * of 1..INT32_MAX). lasti < 0 gives first_line.
 */
uint32_t linetable__line(enum linetable_kind kind, const uint8_t *table, size_t len, int32_t first_line,
			 int64_t lasti);
