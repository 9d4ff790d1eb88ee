/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See dump.h.
 */
#include "agg/dump.h"

int dump__init(struct dump *dump, pid_t pid)
{
	*dump = (struct dump){.pid = pid};
	return strtab__new(&dump->strings);
}

void dump_thread__free(struct dump_thread *thread)
{
	vec__free(&thread->frames);
	vec__free(&thread->locals);
}

void dump__free(struct dump *dump)
{
	for (size_t i = 0; i < dump->interpreters.len; i++) {
		struct dump_interpreter *interpreter = &dump->interpreters.items[i];

		for (size_t j = 0; j < interpreter->threads.len; j++)
			dump_thread__free(&interpreter->threads.items[j]);
		vec__free(&interpreter->threads);
	}
	vec__free(&dump->interpreters);
	vec__free(&dump->natives);
	strtab__free(dump->strings);
}

size_t dump__thread_count(const struct dump *dump)
{
	size_t count = 0;

	for (size_t i = 0; i < dump->interpreters.len; i++)
		count += dump->interpreters.items[i].threads.len;
	return count;
}
