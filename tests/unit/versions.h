/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every version that is supported, for tests that go through all of them, and its offsets.
 */
#pragma once

#include "base/util.h"
#include "debug_offsets.h"
#include "py/offsets.h"

#include <criterion/criterion.h>

/* Versions are numbered by their minors; the free-threaded builds of 3.13 to 3.15 follow. */
enum {
	IMAGE_FIRST_VERSION = 8,
	IMAGE_FIRST_TABLE = 13,
	IMAGE_FREE_THREADED = 16,
	IMAGE_LAST_VERSION = 18,
};

static inline int image_minor(int version)
{
	return version < IMAGE_FREE_THREADED ? version : version - IMAGE_FREE_THREADED + 13;
}

/* A table of offsets as it stands in memory. Its length in words. */
static inline size_t image_table(uint64_t *out, int version)
{
	static const struct table_word *const tables[] = {table_3_13, table_3_14, table_3_15};
	static const size_t words[] = {ARRAY_SIZE(table_3_13), ARRAY_SIZE(table_3_14),
				       ARRAY_SIZE(table_3_15)};
	int table = image_minor(version) - 13;

	for (size_t i = 0; i < words[table]; i++)
		out[i] = version < IMAGE_FREE_THREADED ? tables[table][i].value
						       : tables[table][i].free_threaded;
	return words[table];
}

static inline void image_offsets(struct py_offsets *out, int version)
{
	uint64_t table[128];
	char reason[256];

	if (version < IMAGE_FIRST_TABLE) {
		cr_assert_eq(py_offsets__of_version(out, 0x030000f0 | version << 16, reason, sizeof(reason)),
			     0, "%s", reason);
		return;
	}
	cr_assert_eq(py_offsets__decode(out, (uint8_t *)table, image_table(table, version) * 8, reason,
					sizeof(reason)),
		     0, "%s", reason);
}
