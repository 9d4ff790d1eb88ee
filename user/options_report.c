/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of `report`: those that say what is written and printed are as for a run, and the others say
 * what of the recording is shown.
 */
#include "options_parts.h"

#include "options_values.h"

#include <getopt.h>
#include <string.h>

enum {
	OPTION_FROM = OPTION_OWN,
	OPTION_TO,
	OPTION_THREAD,
	OPTION_FUNCTION,
	OPTION_BY,
};

static const struct option LONG_OPTIONS[] = {
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"from", required_argument, NULL, OPTION_FROM},
	{"to", required_argument, NULL, OPTION_TO},
	{"pid", required_argument, NULL, 'p'},
	{"thread", required_argument, NULL, OPTION_THREAD},
	{"function", required_argument, NULL, OPTION_FUNCTION},
	{"by", required_argument, NULL, OPTION_BY},
	{"line", no_argument, NULL, OPTION_LINE},
	{"threads", no_argument, NULL, 't'},
	{"limit", required_argument, NULL, 'l'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static int take_by(struct options *options, const char *value)
{
	struct report_options *reading = &options->reading;

	if (!strcmp(value, "line") || !strcmp(value, "function")) {
		options->group = *value == 'l' ? GROUP_LINE : GROUP_FUNCTION;
		return 0;
	}
	reading->apart_is_set = true;
	if (!strcmp(value, "process"))
		reading->apart.processes = true;
	else if (!strcmp(value, "container"))
		reading->apart.containers = true;
	else if (!strcmp(value, "thread"))
		reading->apart.threads = true;
	else if (!strcmp(value, "merged"))
		reading->merged = true;
	else
		return bad_value("--by", value, "line, function, process, container, thread or merged");
	return 0;
}

static int take_time(const char *option, const char *value, struct report_time *out)
{
	return parse_report_time(value, out)
		       ? bad_value(option, value,
				   "seconds since the start, or 90s, 2m, or a clock time such as 13:05:30 or "
				   "2026-11-30T13:05:30Z")
		       : 0;
}

static int take_option(struct options *options, int option, const char *value, const struct writer **format)
{
	struct report_options *reading = &options->reading;

	switch (option) {
	case OPTION_FROM:
		return take_time("--from", value, &reading->from);
	case OPTION_TO:
		return take_time("--to", value, &reading->to);
	case 'p':
		return parse_pids(options, value) ? bad_value("-p", value, "a process id, or several with commas") : 0;
	case OPTION_THREAD:
		return *value ? vec__push(&reading->threads, value)
			      : bad_value("--thread", value, "a name, a pattern, or an id");
	case OPTION_FUNCTION:
		return *value ? vec__push(&reading->functions, value)
			      : bad_value("--function", value, "a name or a pattern");
	case OPTION_BY:
		return take_by(options, value);
	case 't':
		reading->adds_threads = true;
		return 0;
	}
	return take_common_option(options, option, value, format);
}

/* What is said of a recording is said by options that a run has, too, or not. */
static int check(struct options *options)
{
	struct report_options *reading = &options->reading;

	if (!reading->files.len)
		return refuse("which recording? report FILE.pbp (--help explains)");
	if (reading->merged &&
	    (reading->apart.processes || reading->apart.containers || reading->apart.threads ||
	     reading->adds_threads))
		return refuse("--by merged: nothing is told apart then");
	if (reading->from.kind == TIME_SINCE && reading->to.kind == TIME_SINCE &&
	    reading->from.ns >= reading->to.ns)
		return refuse("--from and --to: nothing lies between");
	return 0;
}

int options_parse_report(struct options *options, int argc, char **argv)
{
	const struct writer *format = NULL;
	int option, err = 0;

	opterr = 0;
	optind = 0;
	/* 1: a word that is no option. */
	while (!err && (option = getopt_long(argc, argv, "-:o:p:tl:qvhV", LONG_OPTIONS, NULL)) != -1) {
		if (option == '?' || option == ':')
			return refuse_word(option, argv[optind - 1]);
		err = option == 1 ? vec__push(&options->reading.files, optarg)
				  : take_option(options, option, optarg, &format);
	}
	if (err || options->command == COMMAND_HELP || options->command == COMMAND_VERSION)
		return err;
	for (; optind < argc && !err; optind++)
		err = vec__push(&options->reading.files, argv[optind]);
	return err ?: check(options) ?: choose_writers(options, format);
}
