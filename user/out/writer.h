/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of output formats, and writing one of them to a file so that a failure never leaves something that
 * looks like a profile. A format is one file: a `write` function from a const profile to bytes, and a row here.
 */
#pragma once

#include "agg/profile.h"
#include "base/buf.h"

#include <stdbool.h>

struct writer {
	const char *name;            /* for --format */
	const char *const *suffixes; /* NULL-terminated, longest match wins, e.g. ".collapsed" */
	const char *help;            /* one line */
	bool binary;                 /* refused on a terminal */
	/* Append the whole file to buf. Returns 0 or -errno. */
	int (*write)(const struct profile *profile, enum group_by group, struct buf *buf);
};

/* By --format name, or by the longest matching suffix of a path; NULL when there is none. */
const struct writer *writer__by_name(const char *name);
const struct writer *writer__by_path(const char *path);
/* All formats, NULL-terminated, for the help text. */
const struct writer *const *writer__all(void);

/*
 * One -o of the command line. Opened before sampling starts, so that an unwritable path is told at once. A regular file
 * is written beside its final name and renamed when complete (an older file of the name stays until then);
 * "-" is stdout; anything else that is not a regular file (pipe, device) is written directly.
 */
struct output {
	const char *path; /* as given */
	const struct writer *writer;
	char *tmp_path;   /* NULL when written directly */
	int fd;           /* -1 = not open */
	bool written;
};

/* 0 or -errno. The path is checked; nothing is created under the final name. */
int output__open(struct output *out, const char *path, const struct writer *writer);
/* Write the profile and make it visible under its name. May be called again (a snapshot is replaced by the next
 * one). 0 or -errno, errors at close included; on failure nothing new is visible. */
int output__write(struct output *out, const struct profile *profile, enum group_by group);
/* Removes a temporary file that was never renamed. */
void output__close(struct output *out);
