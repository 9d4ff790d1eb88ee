/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What of a recording is shown. Of several processes, threads or functions any will do; what is not set is all.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct record_filter {
	bool has_from, has_to;
	int64_t from_ns, to_ns; /* since the start of the first file; `to` is not in it */
	/* All borrowed. */
	const pid_t *pids;
	size_t pid_count;
	const char *const *threads; /* tids, or patterns of a shell that the name is */
	size_t thread_count;
	const char *const *functions; /* ... that a function on the stack is, or the last part of its name is */
	size_t function_count;
};

bool record_filter__is_set(const struct record_filter *filter);
/* Are samples left out for what thread they are of? */
bool record_filter__asks_thread(const struct record_filter *filter);
bool record_filter__has_thread(const struct record_filter *filter, uint32_t pid, uint32_t tid, const char *name);
bool record_filter__has_function(const struct record_filter *filter, const char *name);
/* " from 1.000 s of process 12 or 13 with f": in words, escaped. */
void record_filter__tell(const struct record_filter *filter, struct buf *out);
