/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes a recording (out/record.h) while it is sampled: a sink. What has been flushed is in the file, so
 * that whatever happens to the program, that much can be read.
 */
#pragma once

#include "agg/profile.h"
#include "agg/sink.h"
#include "out/record_reader.h"

#include <stddef.h>
#include <stdint.h>

struct recorder;

struct recorder_config {
	const struct profile
		*profile; /* that the samples' nodes are of; borrowed; its metadata are written */
	const char *host;
	struct record_apart apart;
	/* All that is written, in order. 0 or -errno, after which nothing more comes. */
	int (*write)(void *context, const void *bytes, size_t len);
	/* A file that is as large or long as that is ended, and another one begun, with its first bytes. 0:
	 * any. */
	uint64_t rotate_bytes, rotate_ns;
	int (*next)(void *context); /* the file is whole, and another one comes. 0 or -errno */
	void *context;
};

/* 0 or -ENOMEM. Nothing is written before the first flush. */
int recorder__new(struct recorder **out, const struct recorder_config *config);
struct sink *recorder__sink(struct recorder *recorder);
/* What failed: 0 or -errno. */
int recorder__error(const struct recorder *recorder);
/* The file is whole with this; after it nothing is taken any more. 0 or -errno. */
int recorder__end(struct recorder *recorder);
void recorder__free(struct recorder *recorder);
