/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of formats. To add one: a file that defines its struct writer, the declaration in writer.h, and a
 * line here. Where the bytes go is output.c.
 */
#include "out/writer.h"

#include <string.h>

static const struct writer *const writers[] = {
	&flamegraph_writer,
	&heatmap_writer,
	&collapsed_writer,
	&pstats_writer,
	&speedscope_writer,
	&pprof_writer,
	&jsonl_writer,
	&gecko_writer,
	&pbp_writer,
	NULL,
};

const struct writer *const *writer__all(void)
{
	return writers;
}

static bool has_name(const struct writer *writer, const char *name)
{
	bool is = !strcmp(writer->name, name);

	for (const char *const *suffix = writer->suffixes; *suffix && !is; suffix++)
		is = !strcmp(*suffix + 1, name);
	return is;
}

const struct writer *writer__by_name(const char *name)
{
	for (const struct writer *const *writer = writers; *writer; writer++)
		if (has_name(*writer, name))
			return *writer;
	return NULL;
}

/* Length of the longest suffix of this format that the path ends in, 0 = none. */
static size_t match_suffix(const struct writer *writer, const char *path)
{
	size_t path_len = strlen(path), best = 0;

	for (const char *const *suffix = writer->suffixes; *suffix; suffix++) {
		size_t len = strlen(*suffix);

		if (len > best && len <= path_len && !strcmp(path + path_len - len, *suffix))
			best = len;
	}
	return best;
}

const struct writer *writer__by_path(const char *path)
{
	const struct writer *found = NULL;
	size_t best = 0;

	for (const struct writer *const *writer = writers; *writer; writer++) {
		size_t len = match_suffix(*writer, path);

		if (len > best) {
			best = len;
			found = *writer;
		}
	}
	return found;
}
