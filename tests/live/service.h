/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that the profiler itself starts, or finds: its words, its end, and which processes are in the
 * profile.
 */
#pragma once

#include "harness.h"

#define SERVICE_WORDS 48

struct service {
	const char *argv[SERVICE_WORDS]; /* of the profiler */
	size_t count;
	const char *folder;			    /* of the program, from here */
	char program[CHILD_PATH], file[CHILD_PATH]; /* ... as it sees it; the profile */
	char words[512];
};

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* pybpfprof -r 999 -o FILE [--engine] OPTIONS... */
struct service *service__profiled(const char *const *options);
/* ... -- PYTHON PROGRAM: a file of this tree, or the text itself. */
struct service *service__command(const struct python *python, const char *const *options, const char *text);
/* ... -- sh -c SCRIPT PYTHON PROGRAM: "$0" "$@" is the program. */
struct service *service__script(const struct python *python, const char *const *options, const char *script,
				const char *text);
void service__add(struct service *service, const char *word);

struct child *service__begin(struct service *service);
/* As profiler__finish(), but any exit code may be the command's. */
struct run *service__finish(struct child *child, const struct service *service);
struct run *service__run(struct service *service);

/* Of a run with an exit code that is the command's own. */
void check_profile(const struct run *run, int code);
/* Of a run over all that there is: something may run that is not supported. */
void check_profile_of_all(const struct run *run);
/* Weight of the stacks of a process; with `name` (NULL: any) in them. */
uint64_t of_process(const struct run *run, pid_t pid, const char *name);
/* Weight of the stacks with a function of a file whose name has that in it. */
uint64_t of_file(const struct run *run, const char *part);
/* Does a stack begin with a process? */
bool tells_apart(const struct run *run);
/* How many processes have stacks with that name. */
size_t processes_with(const struct run *run, const char *name);

/* Beginning of a program that is to be busy for a while. */
#define BURN                                                                                                 \
	"import time\n"                                                                                      \
	"def burn(seconds):\n"                                                                               \
	"    end = time.process_time() + seconds\n"                                                          \
	"    while time.process_time() < end: sum(range(200))\n"
