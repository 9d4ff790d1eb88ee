/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording that is written to one file, or to one after the other, of which the last ones are kept.
 */
#pragma once

#include "base/vec.h"
#include "out/recorder.h"
#include "out/writer.h"

#include <stddef.h>
#include <stdint.h>

struct record_rotation {
	uint64_t bytes, ns; /* of a file; both 0: there is one only */
	uint32_t keep;	    /* files; 0: all */
};

struct record_output {
	struct output output;
	struct recorder *recorder;
	struct record_rotation rotation;
	const char *name;	/* of all of them; borrowed */
	char *file;	 /* name of the one that is being written */
	char *last;	 /* ... of the one that was written last; NULL: none has been */
	uint32_t number; /* of that file; 0: they are not numbered */
	VEC(uint32_t) written; /* numbers of those that have been, in their order ... */
	size_t removed;	       /* ... of which so many are gone by --keep */
};

/* The first file: as output__open. Close in either case. */
int record_output__open(struct record_output *out, const char *name, const struct record_rotation *rotation);
/* Begin: what is to be written where is the business of this module, the rest of `config` the caller's. 0 or
 * -ENOMEM. */
int record_output__start(struct record_output *out, struct recorder_config *config);
/* All has been taken. 0 or -errno, of what was told on stderr before. */
int record_output__end(struct record_output *out);
void record_output__close(struct record_output *out);
