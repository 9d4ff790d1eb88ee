/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of the command line, every -o: opened before anything is sampled, so that what cannot be written
 * is told at once; written at the end and now and then, or, recordings, all the time.
 */
#pragma once

#include "agg/profile.h"
#include "options.h"
#include "out/name.h"
#include "out/record_output.h"
#include "out/replay.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct outputs {
	const struct options *options; /* borrowed */
	char **names;
	struct output *items;	       /* those that are written from a profile ... */
	struct record_output *records; /* ... those that are recordings ... */
	struct replay *replays;	       /* ... and those that are made of one; one of the three for each */
	size_t open;
	/* Set by the caller before samples come: */
	bool settled;	  /* their weights are as they come */
	const char *host; /* that they were taken on; NULL: this one */
};

/* What names of files are made of; `pid`: %p. */
void outputs__facts(struct name_facts *facts, pid_t pid);

/* 0 or -errno, which has been told. Close in either case. */
int outputs__open(struct outputs *outputs, const struct options *options, const struct name_facts *facts);
/* Is that file one of them? It has been told, and so here: does any of them take the place of that one? */
bool outputs__have(const struct outputs *outputs, const struct output *other);
bool outputs__replace(const struct outputs *outputs, const char *file);
/* Is any of them a recording? Is there another one? */
bool outputs__record(const struct outputs *outputs);
bool outputs__want_profile(const struct outputs *outputs);
/* Begin with recordings of samples of this profile. *sinks: a list, NULL if there are none. 0 or -ENOMEM. */
int outputs__start(struct outputs *outputs, const struct profile *profile, struct record_apart apart,
		   struct sink **sinks);
/*
 * All files; the first error is returned, but every file is tried, and told of. A snapshot leaves out pipes
 * and devices, where one profile after the other would be read as one; recordings are up to date.
 */
int outputs__write(struct outputs *outputs, const struct profile *profile, bool snapshot);
/* Is there a file that a snapshot can be written into? */
bool outputs__take_snapshots(const struct outputs *outputs);
/* Which files have been written. */
void outputs__tell(const struct outputs *outputs);
/* Temporary files; only what is safe in a signal handler. */
void outputs__unlink_temporary(const struct outputs *outputs);
void outputs__close(struct outputs *outputs);
