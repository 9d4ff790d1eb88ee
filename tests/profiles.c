/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes profiles without a process, for tests of what reads the files and for scripts/bench:
 *
 *	profiles NAME FORMAT FILE [line|function]
 *
 * NAME: see made.h. Says on stderr what it wrote and what that took.
 */
#include "made.h"
#include "out/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

int main(int argc, char **argv)
{
	const struct writer *writer = argc >= 4 ? writer__by_name(argv[2]) : NULL;
	enum group_by group = argc >= 5 && !strcmp(argv[4], "function") ? GROUP_FUNCTION : GROUP_LINE;
	struct profile profile;
	struct output output;
	double start;
	int err;

	if (!writer) {
		fprintf(stderr, "profiles NAME FORMAT FILE [line|function]\n");
		return 2;
	}
	if (profile__init(&profile, 1u << 24))
		return 1;
	make_profile(&profile, argv[1]);
	fprintf(stderr, "profile: %llu samples, %zu nodes, %ld kB\n", (unsigned long long)profile.samples,
		profile.trie.nodes.len, peak_kb());
	start = seconds();
	err = output__open(&output, argv[3], writer) ?: output__write(&output, &profile, group);
	fprintf(stderr, "%s: %.3f s, %ld kB\n", writer->name, seconds() - start, peak_kb());
	if (err)
		fprintf(stderr, "%s\n", strerror(-err));
	output__close(&output);
	profile__free(&profile);
	return err ? 1 : 0;
}
