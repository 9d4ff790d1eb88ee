/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * _Py_DebugOffsets: a table of a real Python with some words changed, or any bytes. What is accepted and fits
 * the kernel side must lie in what that reads.
 */
#include "fuzz.h"
#include "py/layout.h"
#include "py/offsets.h"
#include "unit/debug_offsets.h"

static const struct {
	const struct table_word *words;
	size_t count;
} tables[] = {
	{table_3_13, ARRAY_SIZE(table_3_13)},
	{table_3_14, ARRAY_SIZE(table_3_14)},
	{table_3_15, ARRAY_SIZE(table_3_15)},
};

static void check_layout(const struct py_offsets *offsets)
{
	struct pbp_target layout = {0};

	if (py_layout__fill(&layout, offsets, PBP_NONE))
		return;
	check(layout.ts_bytes < PBP_TSTATE_BYTES && layout.fr_bytes < PBP_FRAME_BYTES &&
	      layout.co_bytes < PBP_CODE_BYTES);
	check(layout.fr_previous + 8u <= layout.fr_bytes && layout.fr_code + 8u <= layout.fr_bytes &&
	      layout.fr_instr + 8u <= layout.fr_bytes && layout.fr_owner < layout.fr_bytes);
	check(layout.ts_thread_id + 8u <= layout.ts_bytes && layout.ts_frame + 8u <= layout.ts_bytes &&
	      layout.ts_next + 8u <= layout.ts_bytes && layout.ts_interp + 8u <= layout.ts_bytes);
	check(layout.co_name + 8u <= layout.co_bytes && layout.co_linetable + 8u <= layout.co_bytes &&
	      layout.co_ident + 4u <= layout.co_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t bytes[PY_DEBUG_OFFSETS_MAX] = {0}, which, at;
	struct py_offsets offsets;
	char reason[256];
	uint16_t value;

	if (!py_offsets__decode(&offsets, data, len, reason, sizeof(reason)))
		check_layout(&offsets);
	fuzz_take(&data, &len, &which, 1);
	which %= ARRAY_SIZE(tables);
	for (size_t i = 0; i < tables[which].count; i++)
		memcpy(bytes + 8 * i, &tables[which].words[i].value, 8);
	while (len) {
		fuzz_take(&data, &len, &at, 1);
		fuzz_take(&data, &len, &value, 2);
		at = 2 + at % (tables[which].count - 2); /* not the cookie, not the version */
		memcpy(bytes + 8 * at, &value, 2);
	}
	if (!py_offsets__decode(&offsets, bytes, 8 * tables[which].count, reason, sizeof(reason)))
		check_layout(&offsets);
	else
		check(strlen(reason) < sizeof(reason));
	return 0;
}
