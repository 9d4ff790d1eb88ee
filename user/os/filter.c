/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See filter.h.
 */
#include "os/filter.h"

#include <fnmatch.h>
#include <stddef.h>

bool filter__is_set(const struct filter *filter)
{
	return filter->comm || filter->exclude || filter->by_user;
}

/* Does it begin to match anywhere? fnmatch() wants the whole. */
static bool has_part(const char *pattern, const char *text)
{
	char whole[512] = "*";
	size_t len = 1;

	for (; *pattern && len < sizeof(whole) - 2; pattern++)
		whole[len++] = *pattern;
	whole[len++] = '*';
	whole[len] = '\0';
	return !fnmatch(whole, text, 0);
}

bool filter__wants(const struct filter *filter, const char *comm, const char *command, uid_t user)
{
	if (filter->by_user && user != filter->user)
		return false;
	if (filter->comm && fnmatch(filter->comm, comm, 0))
		return false;
	return !filter->exclude || !has_part(filter->exclude, command);
}
