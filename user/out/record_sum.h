/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings added up to a profile, as a whole or in part: a span of time, a thread, a process, a function.
 * Of the files of one run that was written into several, in their order.
 */
#pragma once

#include "agg/profile.h"
#include "agg/sink.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "out/record_filter.h"
#include "out/record_reader.h"

#include <stdbool.h>
#include <stdint.h>

struct record_sum {
	struct profile profile; /* of what is shown */
	struct record_filter filter;
	bool apart_is_set; /* else it is as it was recorded */
	bool adds_threads; /* ... and they are told apart as well */
	struct record_apart apart;
	/* Called when what the first file says of its run is known in `profile`, before its samples; NULL:
	 * nothing. */
	int (*begin)(struct record_sum *sum, void *context);
	void *context;
	struct sink *sink; /* list: they get what is shown, too; NULL: none */
	/* of the files */
	uint64_t files, all_samples;
	uint32_t host;						   /* string */
	bool cut_off;						   /* one of them is not whole */
	bool is_left_out; /* the last one: it does not fit to the first */
	uint64_t on_cpu, attached, collecting, raising, in_kernel; /* of what is shown */
	/* private */
	struct account read, shown; /* what the files say; counts of what is shown */
	struct hmap pids;	    /* of what is shown -> string: the command that was seen last */
	bool has_unknown;	    /* ... or there are samples of no known process, or too many */
	uint64_t first_start_ns;    /* since 1970 */
	uint64_t end_ns, last_ns;   /* since then: of the files, of the last sample */
	uint64_t parts; /* of files, in which a thread has one index; so many have begun */
	uint64_t period_ns, total_ns;
	enum profile_unit unit;
	const char *command, *mode; /* strings of the profile's */
	uint32_t pruned;     /* node */
	struct record_sum_file *file;
};

/* 0 or -ENOMEM; free in either case. The filter, what is apart and the sink are set by the caller then. */
int record_sum__init(struct record_sum *sum);
/*
 * Adds a file; takes the descriptor over. 0, or -errno as record_reader__open or of `begin`. *fault: why not
 * all of it could be read, static, NULL if it could.
 */
int record_sum__add(struct record_sum *sum, int fd, const char **fault);
/* After the last one: the metadata of what is shown. */
void record_sum__finish(struct record_sum *sum);
void record_sum__free(struct record_sum *sum);
