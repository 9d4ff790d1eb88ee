/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The chunks of a recording (out/record.h), whatever is in them: packed and checked, unpacked and checked.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

/* --- writing --- */

struct chunk_writer {
	struct buf out; /* what has not been fetched yet, whole chunks */
	z_stream stream;
	bool begun, open;
};

/* 0 or -ENOMEM; close in either case. */
int chunk_writer__open(struct chunk_writer *writer);
/* The next one; the first one of a file has its head before it. `raw`: less than RECORD_CHUNK_MAX bytes. */
void chunk_writer__add(struct chunk_writer *writer, uint8_t kind, const void *raw, size_t len);
/* What is added next begins a file. */
void chunk_writer__restart(struct chunk_writer *writer);
void chunk_writer__close(struct chunk_writer *writer);

/* --- reading --- */

struct chunk_reader {
	int fd; /* owned */
	uint8_t *packed;
	size_t from, to, cap; /* of it, what has been read and not been used */
	z_stream stream;
	bool open;
	/* The chunk that was read last, until the next one. */
	uint8_t kind;
	uint8_t *raw;
	size_t raw_len, raw_cap;
};

/* 0, or as record_reader__open; close in either case. Takes the descriptor over. */
int chunk_reader__open(struct chunk_reader *reader, int fd);
/* NULL, or why there is none; static. */
const char *chunk_reader__next(struct chunk_reader *reader);
/* Is there anything behind the last chunk that was read? */
bool chunk_reader__has_more(struct chunk_reader *reader);
void chunk_reader__close(struct chunk_reader *reader);
