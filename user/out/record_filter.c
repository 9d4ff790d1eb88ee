/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_filter.h.
 */
#include "out/record_filter.h"

#include "base/pattern.h"

#include <stdlib.h>
#include <string.h>

bool record_filter__asks_thread(const struct record_filter *filter)
{
	return filter->pid_count || filter->thread_count;
}

bool record_filter__is_set(const struct record_filter *filter)
{
	return filter->has_from || filter->has_to || record_filter__asks_thread(filter) || filter->function_count;
}

static bool has_process(const struct record_filter *filter, uint32_t pid)
{
	for (size_t i = 0; i < filter->pid_count; i++)
		if ((uint32_t)filter->pids[i] == pid)
			return true;
	return !filter->pid_count;
}

static bool is_tid(const char *text, uint32_t tid)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && number == tid;
}

bool record_filter__has_thread(const struct record_filter *filter, uint32_t pid, uint32_t tid, const char *name)
{
	if (!has_process(filter, pid))
		return false;
	for (size_t i = 0; i < filter->thread_count; i++)
		if (is_tid(filter->threads[i], tid) || pattern__matches(filter->threads[i], name))
			return true;
	return !filter->thread_count;
}

bool record_filter__has_function(const struct record_filter *filter, const char *name)
{
	const char *last = strrchr(name, '.');

	for (size_t i = 0; i < filter->function_count; i++)
		if (pattern__matches(filter->functions[i], name) ||
		    (last && pattern__matches(filter->functions[i], last + 1)))
			return true;
	return !filter->function_count;
}

static void tell_names(const char *what, const char *const *names, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		buf__adds(out, i ? " or " : what);
		buf__add_escaped(out, names[i], NULL);
	}
}

void record_filter__tell(const struct record_filter *filter, struct buf *out)
{
	if (filter->has_from)
		buf__addf(out, " from %.3f s", (double)filter->from_ns / 1e9);
	if (filter->has_to)
		buf__addf(out, " to %.3f s", (double)filter->to_ns / 1e9);
	for (size_t i = 0; i < filter->pid_count; i++)
		buf__addf(out, "%s%d", i ? " or " : " of process ", (int)filter->pids[i]);
	tell_names(" of thread ", filter->threads, filter->thread_count, out);
	tell_names(" with ", filter->functions, filter->function_count, out);
}
