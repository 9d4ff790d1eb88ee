/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of a run in words: every sample taken, lost (why), truncated, unverified; the rate asked and
 * given; the profiler's own cost. Unknown is not printed as 0.
 */
#pragma once

#include "base/buf.h"
#include "run/process.h"
#include "run/symbolize.h"

#include "pybpfprof.h"

struct report {
	const struct process *processes; /* borrowed */
	size_t process_count;
	struct symbolize_counts counts;
	uint64_t counters[PBP_COUNTER_COUNT];
	uint32_t rate_hz;
	uint32_t max_frames;
	uint64_t wall_ns;
	uint64_t tick_ns; /* mean time of the BPF program, 0 = not measured */
	const char *end;
};

/* Lines of text, each ended by a newline. */
void report__format(const struct report *report, struct buf *out);
/* One line: why nothing was sampled. */
void report__explain_empty(const struct report *report, struct buf *out);
