/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See filter.h.
 */
#include "os/filter.h"

#include "base/pattern.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool filter__is_set(const struct filter *filter)
{
	return filter->comms.len || filter->excludes.len || filter->users.len;
}

/*
 * Does it begin to match anywhere? fnmatch() wants the whole. A backslash at the end stands for itself, not
 * before the star that is added. Where it cannot be told, it does.
 */
static bool has_part(const char *pattern, const char *text)
{
	size_t len = strlen(pattern), slashes = 0;
	char *whole;
	bool has;

	while (slashes < len && pattern[len - 1 - slashes] == '\\')
		slashes++;
	if (asprintf(&whole, "*%s%s*", pattern, slashes % 2 ? "\\" : "") < 0)
		return true;
	has = !fnmatch(whole, text, 0);
	free(whole);
	return has;
}

static bool wants_user(const struct filter *filter, uid_t user)
{
	for (size_t i = 0; i < filter->users.len; i++)
		if (filter->users.items[i] == user)
			return true;
	return !filter->users.len;
}

static bool wants_comm(const struct filter *filter, const char *comm)
{
	for (size_t i = 0; i < filter->comms.len; i++)
		if (pattern__matches(filter->comms.items[i], comm))
			return true;
	return !filter->comms.len;
}

bool filter__wants(const struct filter *filter, const char *comm, const char *command, uid_t user)
{
	if (!wants_user(filter, user) || !wants_comm(filter, comm))
		return false;
	for (size_t i = 0; i < filter->excludes.len; i++)
		if (has_part(filter->excludes.items[i], command))
			return false;
	return true;
}

void filter__free(struct filter *filter)
{
	vec__free(&filter->comms);
	vec__free(&filter->excludes);
	vec__free(&filter->users);
}

bool thread_filter__is_set(const struct thread_filter *filter)
{
	return filter->main || filter->names.len;
}

bool thread_filter__wants(const struct thread_filter *filter, const char *name, pid_t tid, bool is_main)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", tid);
	for (size_t i = 0; i < filter->names.len; i++)
		if (!strcmp(filter->names.items[i], number) || pattern__matches(filter->names.items[i], name))
			return true;
	return !thread_filter__is_set(filter) || (filter->main && is_main);
}

void thread_filter__free(struct thread_filter *filter)
{
	vec__free(&filter->names);
}
