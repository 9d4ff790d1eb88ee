/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line as data. Parsing has no side effects but messages on stderr. Values: options_values.c;
 * the help: options_help.c.
 */
#pragma once

#include "agg/profile.h"
#include "base/vec.h"
#include "out/record_output.h"
#include "out/record_sum.h"
#include "out/writer.h"
#include "run/session.h"

#include <stdbool.h>

enum command {
	COMMAND_RECORD,
	COMMAND_DUMP,
	COMMAND_DOCTOR,
	COMMAND_REPORT,
	COMMAND_DIFF,
	COMMAND_HELP,
	COMMAND_VERSION,
};

struct output_option {
	const char *path; /* borrowed from argv */
	const struct writer *writer;
};

/* A moment of a recording. */
struct report_time {
	enum {
		TIME_NONE,
		TIME_SINCE,  /* its start */
		TIME_OF_DAY, /* since midnight, as clocks here say */
		TIME_AT,     /* since 1970 */
	} kind;
	int64_t ns;
};

/* Of the command that reads recordings. */
struct report_options {
	VEC(const char *) files; /* borrowed from argv */
	struct report_time from, to;
	VEC(const char *) threads, functions; /* borrowed; processes are those of the session */
	bool apart_is_set, merged, adds_threads;
	struct record_apart apart;
};

struct options {
	enum command command;
	struct session_config session;
	VEC(struct output_option) outputs;
	struct record_rotation rotation; /* of those that are recordings */
	struct report_options reading;
	enum group_by group;
	unsigned int rows; /* of the summary table */
	const char *report; /* file for the end report as JSON; borrowed from argv; NULL: none */
	bool quiet;	   /* no summary table */
	bool verbose;
	bool json, locals; /* of a dump */
};

/* 0, or -EINVAL after the fault has been told on stderr. Free with options__free in either case. */
int options__parse(struct options *options, int argc, char **argv);
void options__free(struct options *options);

/* The help text, for stdout. */
void options__print_help(void);

/*
 * "30", "30s", "1.5m", "500ms", "1h" -> nanoseconds; "99", "10k", "10khz", "250hz" -> Hz. 0 or -EINVAL; pure.
 */
int parse_duration(const char *text, uint64_t *out_ns);
int parse_rate(const char *text, uint32_t *out_hz);
