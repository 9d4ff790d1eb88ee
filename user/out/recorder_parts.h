/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For recorder*.c only: recorder.c (START HERE: samples, files), recorder_tables.c (what they refer to).
 */
#pragma once

#include "base/buf.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "out/record_chunks.h"
#include "out/recorder.h"

#include <stdbool.h>
#include <stdint.h>

/* A sample that is in no chunk yet. */
struct recorder_sample {
	uint32_t context, thread, stack; /* numbers; thread: plus 1 */
	uint8_t share;
	uint8_t kind;
	int64_t time; /* in units */
	uint64_t weight_ns, extra_ns;
};

struct recorder_numbers {
	VEC(uint32_t) by_id; /* number + 1, 0: not in the file */
	uint32_t count;
};

struct recorder {
	struct sink sink; /* first */
	struct recorder_config config;
	struct chunk_writer chunks;
	struct buf tables;
	/* of this file: */
	struct recorder_numbers strings, frames, nodes,
		stacks;				  /* nodes: of the profile -> of `paths`; stacks: of these */
	struct trie paths;			  /* as the file has them: without roots */
	struct hmap processes, threads, contexts; /* key -> number */
	VEC(int64_t) thread_times;		  /* of the last sample of a thread + 1, in units */
	VEC(uint32_t) way;
	VEC(struct recorder_sample) pending;
	struct buf columns, times, other_times; /* being made */
	int64_t newest, last_time;		/* of the samples that were taken; that are in chunks */
	uint64_t unit_ns, start_ns, start_realtime_ns;
	uint64_t samples, bytes, account_ns;
	struct account told;   /* as it was told last */
	struct account before; /* what files before this one have told of it, and ... */
	uint64_t before_ns;    /* ... how long they took */
	bool prepared, begun, over;
	bool follows; /* there was a file before; if no sample comes, nothing is written */
	int err;
};

/* --- recorder.c --- */

void recorder_fail(struct recorder *recorder, int err);
uint64_t recorder_fold(int64_t value); /* a signed number, to be written as one that is not */
/* `raw` is empty after that. */
void recorder_add_chunk(struct recorder *recorder, uint8_t kind, struct buf *raw);

/* --- recorder_tables.c --- */

void recorder_add_word(struct buf *buf, const char *text); /* NULL: "" */
/* Numbers in the file; what has none yet is told first. */
uint32_t recorder_tell_stack(struct recorder *recorder, uint32_t node);
uint32_t recorder_tell_thread(struct recorder *recorder, const struct sink_thread *thread);
uint32_t recorder_tell_context(struct recorder *recorder, uint32_t thread, uint32_t state, uint8_t share);
/* What was told since the last chunk of tables, as another one. */
void recorder_add_tables(struct recorder *recorder);
/* Nothing has a number any more. */
void recorder_clear_tables(struct recorder *recorder);
void recorder_free_tables(struct recorder *recorder);
