/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a recording (out/record.h), sample after sample, in bounded memory. Files are anybody's: nothing in
 * one is taken for granted.
 *
 *	err = record_reader__open(&reader, fd, &profile);
 *	while (!err && record_reader__next(reader, &sample))
 *		... sample.time_ns, sample.node in reader->stacks, sample.thread in reader->threads ...
 *	if (reader->fault) ... it is good up to there
 *	record_reader__close(reader);
 */
#pragma once

#include "agg/profile.h"
#include "agg/sink.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_NONE UINT32_MAX

/* Texts are ids in the profile's strings. */
struct record_process {
	uint32_t pid;
	uint32_t command, root, container; /* as in struct sink_process */
};

struct record_thread {
	uint32_t process; /* index */
	uint32_t tid;
	uint32_t name, root; /* as in struct sink_thread */
};

struct record_sample {
	int64_t time_ns; /* since the start: when it was taken; of a wait, when it, or this part of it, began
			  */
	uint64_t weight_ns; /* what it stands for */
	uint64_t length_ns; /* of a wait; its weight is more if others were not walked. 0: it is no wait */
	uint32_t thread;    /* index, RECORD_NONE: of none */
	uint32_t node;	    /* of reader->stacks */
	uint32_t state;	    /* SINK_* */
};

/* What was to be told apart when it was recorded. */
struct record_apart {
	bool processes, containers, threads;
};

struct record_reader {
	/*
	 * Borrowed. Its strings and frames are added to; its trie is not touched. What it says of the run,
	 * its unit, period, command and account, is as far as it has been read; `samples` is the caller's.
	 */
	struct profile *profile;
	/*
	 * These grow, and a node or an index stays what it is until `renewals` goes up: then they have begun
	 * anew. stacks: paths of frames of the profile's table, without what stands above them (roots).
	 */
	struct trie stacks;
	VEC(struct record_process) processes;
	VEC(struct record_thread) threads;
	uint32_t renewals;
	struct record_apart apart;
	uint32_t host;	   /* string */
	uint64_t samples;  /* that were read, those that go on not counted */
	uint64_t total_ns; /* ... and their weights */
	bool ended;	   /* it is whole */
	const char *fault; /* why it could not be read to its end; static; NULL: it could, or that is not
			      known yet */
	struct record_stream *stream; /* private */
};

/*
 * 0; -EINVAL: it is no recording; -ENOTSUP: of another version; -ENOMEM, -errno of read(). Reads from where
 * the file stands, a pipe too; takes the descriptor over. Several may follow one another into one profile,
 * whose metadata are then those of the last one.
 */
int record_reader__open(struct record_reader **out, int fd, struct profile *profile);
/* False at the end, or where the file is at fault. */
bool record_reader__next(struct record_reader *reader, struct record_sample *sample);
void record_reader__close(struct record_reader *reader);
