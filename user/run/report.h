/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of a run in words: every sample taken, lost (why), truncated, unverified; the rate asked and
 * given; the profiler's own cost. Unknown is not printed as 0.
 */
#pragma once

#include "base/buf.h"
#include "run/containers.h"
#include "run/engine.h"
#include "run/follow.h"
#include "run/processes.h"
#include "run/symbolize.h"

#include "pybpfprof.h"

/* What the processes of one container come to. */
struct report_container {
	const struct container *container; /* borrowed; NULL: those that are in none */
	uint64_t pythons, samples, cpu_ns;
};

/* Of a profile of time: what the kernel side saw of switches. */
struct report_waits {
	uint64_t skipped, skipped_ns; /* not walked, and represented by others */
	uint64_t found;		      /* threads that were off the CPU when it began */
	uint64_t lost, lost_ns;	      /* ring buffer full */
	uint64_t lost_threads;	      /* waits of threads that there was no room for */
	uint64_t missed;	      /* switches that the kernel side was not told of */
	uint64_t unseen;	      /* ends of waits that it was not told of, and found otherwise */
	uint64_t switch_ns;	      /* mean time of the BPF program, 0 = not measured */
};

struct report {
	enum engine_mode mode;
	const struct profile *profile; /* borrowed; NULL if it is of CPU time */
	const struct gil *gil;	       /* borrowed; NULL if it is not of GILs */
	struct report_waits waits;
	bool hides_idle, only_exceptions;
	struct process *const *processes; /* borrowed */
	size_t process_count;
	const struct report_container *containers; /* borrowed; those with samples first */
	size_t container_count;			   /* 0: they were not looked up */
	uint64_t left;				   /* processes that were moved out of the cgroups */
	bool followed; /* they were found; those that are no Python are not among them: */
	uint64_t other_processes;
	uint64_t ended_unknown;	    /* of these, those that ended before it was known what they were */
	uint64_t going_on;	    /* Pythons that the command, which has ended, has left */
	struct processes_past past; /* Pythons that are not among them, either */
	uint64_t cpu_unknown;	    /* processes that were gone before their last CPU time was read */
	uint64_t denied, unsupported, unopened,
		excluded; /* processes that were found and could not be profiled */
	uint64_t beyond;  /* ... since more are followed already than there is room for */
	uint64_t denied_pythons;  /* of the denied ones, by their names ... */
	const char *denied_names; /* ... of which the first are */
	struct symbolize_counts counts;
	const char *engine; /* its name */
	struct engine_loss losses[ENGINE_LOSSES_MAX];
	size_t loss_count;
	uint64_t lost_process;	/* events of processes and threads that were lost */
	bool knows_kernel;	/* samples tell whether they were taken in the kernel */
	uint64_t unmarked;	/* processes whose Python has no frame marker, where one was asked for */
	uint64_t not_stopped;	/* samples of threads that were to be stopped and could not be */
	uint64_t lines_unknown; /* samples with a caller whose line could not be told */
	uint32_t rate_hz;
	uint32_t tick_hz;    /* rate of the kernel's ticks, if samples are taken at them; else 0 */
	uint32_t max_frames; /* that the kernel side walks; 0 = there is none */
	uint64_t wakeups;
	uint64_t wall_ns;
	uint64_t tick_ns; /* mean time of the BPF program, 0 = not measured */
	uint64_t ticks;	  /* ... and how often it ran, for a target or not */
	bool with_stats;  /* tell of reads and caches: */
	struct remote_stats reads;
	struct unwind_stats unwind; /* readv engine only */
	const char *end;
};

/* Lines of text, each ended by a newline. */
void report__format(const struct report *report, struct buf *out);
/* One line: why nothing was sampled (report_empty.c). */
void report__explain_empty(const struct report *report, struct buf *out);
/*
 * The same, and all statistics, as one JSON object. Times are in seconds, counts are samples unless they say
 * otherwise; what is not known is null.
 */
void report__format_json(const struct report *report, struct buf *out);

/* For report.c and report_empty.c: "process 12 (app.py)", "3 Python processes". */
void report_format_targets(const struct report *report, struct buf *out);
/* For report.c: a line if samples were taken at the kernel's tick. */
void report_format_clock(const struct report *report, struct buf *out);
/* For report.c and report_json.c: what a profile of time is made of. */
void report_format_time_head(const struct report *report, struct buf *out);
void report_format_time(const struct report *report, struct buf *out);
void report_format_time_json(const struct report *report, struct buf *out);
/* ... and of GILs. */
void report_format_gil(const struct report *report, struct buf *out);
void report_format_gil_json(const struct report *report, struct buf *out);

/* ... and samples that were not asked for. explain: that there were no others; false, if not so. */
void report_format_left_out(const struct report *report, struct buf *out);
void report_format_left_out_json(const struct report *report, struct buf *out);
bool report_explain_left_out(const struct report *report, struct buf *out);

uint64_t report__left_out(const struct report *report);
uint64_t report__lost(const struct report *report);
uint64_t report__without_python(const struct report *report);
/* Of the others, those that were looked at, and are none. */
uint64_t report__not_python(const struct report *report);
/* Samples on the CPU, those that were lost included. */
uint64_t report__on_cpu(const struct report *report);
/* Did processes that were found end so soon that their CPU time is not known to the last? */
bool report__is_cpu_short(const struct report *report);
uint64_t report__target_cpu_ns(const struct report *report);
/* Processes of builds without a GIL. */
size_t report__free_threaded(const struct report *report);
