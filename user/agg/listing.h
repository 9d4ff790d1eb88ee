/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code of files that a profile names, for the formats that show it: what was read, or why there is none. Made
 * by run/code_files.c while the processes live, or after them.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum listing_state {
	LISTING_READ,
	LISTING_NO_FILE, /* "<string>", "<frozen importlib._bootstrap>" */
	LISTING_MISSING, /* there is no file of that name */
	LISTING_DENIED,	 /* the process's own user may not read it */
	LISTING_NO_TEXT, /* no regular file, or one with NULs */
	LISTING_TOO_LARGE,
	LISTING_SLOW, /* reading it took too long */
	LISTING_FAILED,
	LISTING_GONE,	  /* the process had ended before it could be asked where its files are */
	LISTING_NOT_READ, /* cooler than as many as are read, or nobody was there to be asked */
};

struct listing {
	uint32_t file; /* strtab id of its name */
	enum listing_state state;
	bool changed; /* since the process began */
	bool differs; /* another process has another one of that name */
	char *text;   /* as it is; owned; NULL: not read */
	size_t len;
};

struct listings {
	VEC(struct listing) items;
	struct hmap index; /* file -> index in items */
};

/* Replaces one of the same file; takes its text over. 0 or -ENOMEM (the text is freed then). */
int listings__put(struct listings *listings, const struct listing *listing);
/* NULL: nobody has tried to read it. */
const struct listing *listings__get(const struct listings *listings, uint32_t file);
void listings__free(struct listings *listings);
