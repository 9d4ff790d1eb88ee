/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Times and rates as typed. */
#include "fuzz.h"
#include "options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);
	uint64_t ns = 0;
	uint32_t hz = 0;

	check(text);
	memcpy(text, data, len);
	text[len] = '\0';
	if (!parse_duration(text, &ns))
		check(ns >= 999999 && ns <= 366ull * 86400 * 1000000000);
	if (!parse_rate(text, &hz))
		check(hz >= 1 && hz <= ENGINE_READV_RATE_MAX);
	free(text);
	return 0;
}
