/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For record_reader.c (START HERE: samples, what is said of the run) and record_tables.c (what samples refer
 * to) only.
 */
#pragma once

#include "base/hmap.h"
#include "base/vec.h"
#include "out/record_chunks.h"
#include "out/record_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than any run has: a file with more of them is refused. */
#define RECORD_NODES_MAX   (1u << 22)
#define RECORD_FRAMES_MAX  (1u << 21)
#define RECORD_STRINGS_MAX (256u << 20) /* bytes */
#define RECORD_OTHERS_MAX  (1u << 20)	/* processes, threads, contexts, each */
#define RECORD_TOTAL_MAX   (1ull << 60) /* weight, ns */

struct record_context {
	uint32_t thread; /* index in reader->threads; RECORD_NONE */
	uint32_t number; /* of the thread in the file + 1; 0: none */
	uint32_t state;
	uint8_t share;
};

struct record_stream {
	struct chunk_reader chunks;
	uint64_t unit_ns;
	uint64_t meta_bytes; /* so far */
	/* by their numbers in the file: what they are in the profile and the reader */
	VEC(uint32_t) strings, frames, nodes, stacks, processes, threads;
	VEC(struct record_context) contexts;
	VEC(uint64_t) thread_times; /* in units, of the last sample; by number + 1 */
	uint64_t last_time;
	struct hmap known; /* hash of a process or thread -> index + 1 */
	/* the samples of the last chunk, and how far they have been handed out */
	VEC(struct record_sample) batch;
	VEC(uint8_t) shares;
	VEC(uint32_t) numbers; /* of their threads */
	size_t at;
};

/* What a chunk holds; `bad` when something was asked for that is not there. */
struct record_bytes {
	const uint8_t *at, *end;
	bool bad;
};

/* --- record_reader.c --- */

uint64_t record_take_number(struct record_bytes *bytes);
int64_t record_take_signed(struct record_bytes *bytes);
uint8_t record_take_byte(struct record_bytes *bytes);
/* Not terminated; without NUL in it. */
const char *record_take_text(struct record_bytes *bytes, size_t *len);

/* --- record_tables.c --- */

/* 0 or -ENOMEM. */
int record_open_tables(struct record_stream *stream);
/* The entries of one chunk. 0, -ENOMEM, -E2BIG; or bytes->bad. */
int record_take_tables(struct record_reader *reader, struct record_bytes *bytes);
void record_clear_tables(struct record_stream *stream);
void record_close_tables(struct record_stream *stream);
