/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pythons in other forms than they are installed in: copies whose files can be changed, programs that embed
 * one or are linked with one. And the check that all of them have to pass.
 */
#pragma once

#include "harness.h"

/* The profile of `pid`, which may be another process of the target's, is that stack; the version is the one
 * that runs. */
void check_found(struct target *target, pid_t pid, const char *names);

/* A copy of the executable, and of its libpython if it has one: paths from here. */
struct build {
	char program[CHILD_PATH];
	char library[CHILD_PATH];	    /* "": the runtime lies in the program */
	const char *inside;		    /* the program as the target sees it, for .interpreter */
	char library_path[CHILD_PATH + 32]; /* for .env */
};

/* Valid until clean_up(). */
struct build build__copy(const struct python *python, const char *name);
/* The same with a libpython that is used in its place. */
struct build build__copy_all(const struct python *python, const char *name);

/* The folder that its bin/ and lib/ are in; of a Python that is not in the root. */
void prefix_of(const struct python *python, char *path, size_t size);
/* Its libpython, as it sees it. */
void library_of(const struct python *python, char *path, size_t size);
/* The executable as it stands in the command. */
const char *executable_of(const struct python *python);

/* embed.c, compiled; as the target sees it. */
const char *compile_embed(const struct python *python);

/*
 * embed.c, compiled and started; not called python. `remove`: the library is a copy of an odd name, deleted
 * after loading. `more`: arguments behind the mode; NULL at the end.
 */
struct target *start_embed(const struct python *python, bool remove, const char *mode,
			   const char *const *more);

/* cc ARGS..., which has to succeed; NULL at the end. */
void compile(const char *const *args);
