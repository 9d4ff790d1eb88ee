/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a run knows of its samples besides their stacks: the end report in figures, for the metadata of files.
 * Made by run/session_report.c, written by out/words.c.
 */
#pragma once

#include <stdint.h>

/* name in files, meaning; counts of samples, all in the profile but for the first */
#define ACCOUNT_COUNTS(X)                                                                                    \
	X(lost, "not in the profile")                                                                        \
	X(truncated, "base of the stack missing")                                                            \
	X(unverified, "callers left out, not proved to belong")                                              \
	X(without_python, "no Python frames")                                                                \
	X(code_freed, "a function gone before it was read")                                                  \
	X(exited, "a function of a process gone before it was read")                                         \
	X(line_unknown, "a caller's line not known")                                                         \
	X(line_approximate, "in code made by the JIT")                                                       \
	X(beyond_size_limit, "the profile was full")

struct account {
	const char *engine; /* static; NULL: nothing is known, as in tests */
	const char *mode;   /* "cpu", "wall", "offcpu", "gil", "exception"; NULL: not known */
	const char *version; /* of the program; of a recording, of that which made it; NULL: not known */
	const char *end;    /* why it ended; static; NULL: it goes on */
	uint32_t rate_hz;   /* asked */
	uint64_t processes; /* Pythons that were profiled */
	uint64_t cpu_ns;    /* that the processes used; 0: not known */
	uint64_t left_out;  /* samples that are not in the profile, since they were not asked for; in files
			       only if there are any */
#define FIELD(name, meaning) uint64_t name;
	ACCOUNT_COUNTS(FIELD)
#undef FIELD
};
