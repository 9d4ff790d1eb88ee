/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of files as another process sees them, found by the names that it gives, with its rights
 * (os/file_view.h): a dump made by root shows nothing that the target could not have shown itself.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "os/file_view.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct source_file {
	char *text; /* owned; NULL: not readable */
	size_t len;
};

struct sources {
	pid_t pid;
	struct file_view view; /* opened when first needed */
	bool looked, known;    /* ... which it was; and it could be */
	VEC(struct source_file) files;
	struct hmap index; /* key -> index in files */
	size_t bytes;
};

void sources__init(struct sources *sources, pid_t pid);
void sources__free(struct sources *sources);

/*
 * Line number `line` (from 1) of a file, without indentation, line end and what is beyond some hundred bytes;
 * bytes are as they are, but no NUL is among them. `key` stands for the path. NULL: there is none. Borrowed.
 */
const char *sources__line(struct sources *sources, uint64_t key, const char *path, uint32_t line,
			  size_t *len);
