/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Line tables of every kind, at an instruction before, in and behind them. */
#include "fuzz.h"
#include "py/linetable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct {
		uint8_t kind;
		int32_t first_line;
		int32_t lasti;
	} __attribute__((packed)) head;
	uint32_t line;

	fuzz_take(&data, &len, &head, sizeof(head));
	line = linetable__line(head.kind % 3, data, len, head.first_line, head.lasti);
	check(line <= INT32_MAX);
	linetable__line(head.kind % 3, data, len, head.first_line, head.lasti & 0xff);
	check(linetable__line(head.kind % 3, data, len, 7, -1) == 7);
	return 0;
}
