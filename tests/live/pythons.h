/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Pythons of this machine that the live tests run over: the lines of scripts/test-pythons --list, from
 * the file that PYBPFPROF_PYTHONS names or from the script itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct python {
	char version[24];  /* "3.15.0-dbg", "3.13.15t" */
	char kind[16];	   /* debian, pyenv, host */
	char command[480]; /* its words with spaces between */
	char root[256];	   /* of a chroot command; else "" */
	int minor;	   /* of 3.x */
	bool debug, free_threaded;
};

/* Every line, in the order of the list. The array lives as long as the program. */
size_t pythons__all(const struct python **out);

/* The first of a version ("3.13", "3.15-dbg") and a kind (NULL: any), or NULL. */
const struct python *pythons__find(const char *version, const char *kind);

/* Is it one that the program supports? */
bool python__is_supported(const struct python *python);
/* ... of those that do not tell their layout themselves? Of these, what the machine has is tested. */
bool python__is_old(const struct python *python);
extern const char *const PYTHONS_OLD[];
/* ... and of these, which are not served everywhere. */
extern const char *const PYTHONS_FREE_THREADED[];

/* The versions that have to be there, and of those the ones that are not ("" if none). */
extern const char *const PYTHONS_REQUIRED[];
const char *pythons__missing(void);
