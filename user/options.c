/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See options.h. The options that users of other samplers expect have the same letters here.
 */
#include "options.h"

#include "base/log.h"
#include "base/util.h"
#include "options_parts.h"
#include "options_values.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <string.h>

enum {
	OPTION_FUNCTION = OPTION_OWN,
	OPTION_KERNEL_FRAMES,
	OPTION_BPF_PROGRAM,
	OPTION_SLOT,
	OPTION_ENGINE,
	OPTION_STATS,
	OPTION_REPORT,
	OPTION_BLOCKING,
	OPTION_FRAME_MARKER,
	OPTION_JSON,
	OPTION_LOCALS,
	OPTION_BY,
	OPTION_AS_ROOT,
	OPTION_EXCLUDE,
	OPTION_COMM,
	OPTION_USER,
	OPTION_CGROUP,
	OPTION_CONTAINER,
	OPTION_MODE,
	OPTION_IDLE,
	OPTION_ROTATE,
	OPTION_KEEP,
	OPTION_NO_GC,
	OPTION_MAIN_THREAD,
	OPTION_THREAD,
	OPTION_CLOCK,
};

static const struct option LONG_OPTIONS[] = {
	{"pid", required_argument, NULL, 'p'},
	{"subprocesses", no_argument, NULL, 's'},
	{"all", no_argument, NULL, 'a'},
	{"by", required_argument, NULL, OPTION_BY},
	{"as-root", no_argument, NULL, OPTION_AS_ROOT},
	{"exclude", required_argument, NULL, OPTION_EXCLUDE},
	{"comm", required_argument, NULL, OPTION_COMM},
	{"user", required_argument, NULL, OPTION_USER},
	{"cgroup", required_argument, NULL, OPTION_CGROUP},
	{"container", required_argument, NULL, OPTION_CONTAINER},
	{"mode", required_argument, NULL, OPTION_MODE},
	{"idle", required_argument, NULL, OPTION_IDLE},
	{"clock", required_argument, NULL, OPTION_CLOCK},
	{"duration", required_argument, NULL, 'd'},
	{"rate", required_argument, NULL, 'r'},
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"rotate", required_argument, NULL, OPTION_ROTATE},
	{"keep", required_argument, NULL, OPTION_KEEP},
	{"function", no_argument, NULL, OPTION_FUNCTION},
	{"line", no_argument, NULL, OPTION_LINE},
	{"threads", no_argument, NULL, 't'},
	{"main-thread", no_argument, NULL, OPTION_MAIN_THREAD},
	{"thread", required_argument, NULL, OPTION_THREAD},
	{"no-gc", no_argument, NULL, OPTION_NO_GC},
	{"limit", required_argument, NULL, 'l'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"engine", required_argument, NULL, OPTION_ENGINE},
	{"blocking", no_argument, NULL, OPTION_BLOCKING},
	{"frame-marker", no_argument, NULL, OPTION_FRAME_MARKER},
	{"report", required_argument, NULL, OPTION_REPORT},
	{"stats", no_argument, NULL, OPTION_STATS},
	{"json", no_argument, NULL, OPTION_JSON},
	{"locals", no_argument, NULL, OPTION_LOCALS},
	{"kernel-frames", required_argument, NULL, OPTION_KERNEL_FRAMES},
	{"debug-bpf", required_argument, NULL, OPTION_BPF_PROGRAM},
	{"debug-slot", required_argument, NULL, OPTION_SLOT},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

/* --- options --- */

static int take_option(struct options *options, int option, const char *value, const struct writer **format)
{
	long number;

	switch (option) {
	case 'p':
		return parse_pids(options, value)
			       ? bad_value("-p", value, "a process id, or several with commas")
			       : 0;
	case 'd':
		return parse_duration(value, &options->session.duration_ns)
			       ? bad_value("-d", value,
					   "a time such as 30, 30s, 2m or 500ms, from 1 ms to 366 days")
			       : 0;
	case 'r':
		return parse_rate(value, &options->session.rate_hz)
			       ? bad_value("-r", value, "a rate from 1 to 1000k, such as 99, 1000 or 10k")
			       : 0;
	case 's':
		options->session.subprocesses = true;
		return 0;
	case 'a':
		options->session.all = true;
		return 0;
	case OPTION_MODE: /* exception: of the samples of CPU time those that have one */
		options->session.only_exceptions = !strcmp(value, "exception");
		return parse_mode(options->session.only_exceptions ? "cpu" : value, &options->session.mode)
			       ? bad_value("--mode", value, "cpu, wall, offcpu, gil or exception")
			       : 0;
	case OPTION_IDLE:
		options->session.hide_idle = !strcmp(value, "hide");
		return options->session.hide_idle || !strcmp(value, "show")
			       ? 0
			       : bad_value("--idle", value, "hide or show");
	case OPTION_CLOCK:
		return parse_sample_clock(value, &options->session.clock)
			       ? bad_value("--clock", value, "perf or tick")
			       : 0;
	case OPTION_BY:
		return parse_by(value, &options->session.by)
			       ? bad_value("--by", value, "process, container or merged")
			       : 0;
	case OPTION_EXCLUDE:
		return *value ? vec__push(&options->session.filter.excludes, value)
			      : bad_value("--exclude", value, "a pattern");
	case OPTION_COMM:
		return parse_comm(value, &options->session.filter)
			       ? bad_value("--comm", value, "a pattern; of a name, its first 15 bytes")
			       : 0;
	case OPTION_USER:
		return parse_user(value, &options->session.filter)
			       ? bad_value("--user", value, "no such user, and no number")
			       : 0;
	case OPTION_CGROUP:
		return *value ? vec__push(&options->session.cgroups, value)
			      : bad_value("--cgroup", value, "a cgroup");
	case OPTION_CONTAINER:
		return *value ? vec__push(&options->session.containers, value)
			      : bad_value("--container", value, "a name or an id");
	case OPTION_AS_ROOT:
		options->session.keep_root = true;
		return 0;
	case OPTION_ROTATE:
		return parse_rotation(value, &options->rotation)
			       ? bad_value("--rotate", value,
					   "a size from 64k, such as 100M or 2G, or a time from 1 s, such "
					   "as 10m or 1h")
			       : 0;
	case OPTION_KEEP:
		if (parse_number(value, 1, 1000000, &number))
			return bad_value("--keep", value, "a number of files, from 1 to 1000000");
		options->rotation.keep = number;
		return 0;
	case OPTION_FUNCTION:
		options->group = GROUP_FUNCTION;
		return 0;
	case 't':
		options->session.by_thread = true;
		return 0;
	case OPTION_MAIN_THREAD:
		options->session.threads.main = true;
		return 0;
	case OPTION_THREAD:
		return *value ? vec__push(&options->session.threads.names, value)
			      : bad_value("--thread", value, "a name or a number");
	case OPTION_NO_GC:
		options->session.hide_gc = true;
		return 0;
	case OPTION_KERNEL_FRAMES:
		if (parse_number(value, 1, PBP_MAX_FRAMES, &number))
			return bad_value("--kernel-frames", value, "a number from 1 to 8192");
		options->session.kernel_frames = number;
		return 0;
	case OPTION_ENGINE:
		return parse_engine(value, &options->session.engine)
			       ? bad_value("--engine", value, "auto, bpf or readv")
			       : 0;
	case OPTION_FRAME_MARKER:
		options->session.frame_marker = true;
		return 0;
	case OPTION_BLOCKING:
		options->session.blocking = true;
		return 0;
	case OPTION_REPORT:
		if (!*value)
			return bad_value("--report", value, "a file name, or - for stdout");
		options->report = value;
		return 0;
	case OPTION_STATS:
		options->session.stats = true;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_LOCALS:
		options->locals = true;
		return 0;
	case OPTION_BPF_PROGRAM: /* for benchmarks and tests: not in the help */
		return parse_program(value, &options->session.program)
			       ? bad_value("--debug-bpf", value, "walk, bounded or empty")
			       : 0;
	case OPTION_SLOT: /* the same; off: as with a libc that is not known */
		options->session.no_slot = !strcmp(value, "off");
		return options->session.no_slot || !strcmp(value, "on") ? 0
									: bad_value("--debug-slot", value, "on or off");
	}
	return take_common_option(options, option, value, format);
}

/* What files are to be rotated? And what is written all the time does not go where a command writes, too. */
static int check_recordings(const struct options *options)
{
	bool rotates = options->rotation.bytes || options->rotation.ns, any = false;

	if (options->rotation.keep && !rotates)
		return refuse("--keep is for the files of --rotate");
	for (size_t i = 0; i < options->outputs.len; i++) {
		bool is_stdout = !strcmp(options->outputs.items[i].path, "-");

		if (!options->outputs.items[i].writer->streams)
			continue;
		any = true;
		if (is_stdout && rotates)
			return refuse("--rotate: stdout is one file");
		if (is_stdout && options->session.command)
			return refuse("-o -: what the command prints would be in the recording");
	}
	return rotates && !any ? refuse("--rotate is for recordings: -o FILE.pbp") : 0;
}

static int check_mode(const struct options *options)
{
	if (!options->session.hide_idle)
		return 0;
	if (options->session.mode == ENGINE_CPU)
		return refuse("--idle=hide: a profile of CPU time has no waits; use --mode wall or offcpu");
	if (options->session.mode == ENGINE_GIL)
		return refuse("--idle=hide: with --mode wall or offcpu; of waits, gil has those for the GIL only");
	return 0;
}

static int check_engine(const struct options *options)
{
	if ((options->session.blocking || options->session.frame_marker) &&
	    options->session.engine != ENGINE_READV) {
		log_err("%s: only with --engine=readv; bpf neither stops nor writes to a process",
			options->session.blocking ? "--blocking" : "--frame-marker");
		return -EINVAL;
	}
	if (options->session.clock == SAMPLER_TICK && options->session.engine == ENGINE_READV)
		return refuse("--clock tick: only with the bpf engine; readv has a timer of its own");
	if (options->session.clock == SAMPLER_TICK && options->session.mode == ENGINE_OFFCPU)
		return refuse("--clock: --mode offcpu is not sampled");
	if (options->session.engine == ENGINE_READV || options->session.rate_hz <= ENGINE_BPF_RATE_MAX)
		return 0;
	log_err("-r %u: a rate of at most %dk, or with --engine=readv %dk", options->session.rate_hz,
		ENGINE_BPF_RATE_MAX / 1000, ENGINE_READV_RATE_MAX / 1000);
	return -EINVAL;
}

static bool has_scope(const struct session_config *session)
{
	return session->cgroups.len || session->containers.len;
}

/* What is to be profiled: a command, all, or processes by their numbers. */
static int take_command_line(struct options *options, char **words)
{
	struct session_config *session = &options->session;

	if (!*words)
		return refuse("which command? It follows -- (--help explains)");
	if (options->command != COMMAND_RECORD)
		return refuse("a command can be recorded only");
	if (session->pids.len || session->all || has_scope(session))
		return refuse("either a command, or -p, -a, --cgroup or --container");
	session->command = words;
	return 0;
}

static int take_words(struct options *options, char **words)
{
	if (*words) {
		log_err("%s: not expected here; processes are given with -p, a command after -- (--help explains)",
			log_shown(*words));
		return -EINVAL;
	}
	if (options->session.keep_root)
		return refuse("--as-root is for a command (--help explains)");
	if (options->session.all && (options->session.pids.len || options->session.subprocesses))
		return refuse("-a is every process, so neither -p nor -s says more");
	if (has_scope(&options->session) &&
	    (options->session.all || options->session.pids.len || options->session.subprocesses))
		return refuse("--cgroup and --container are all processes in there: without -p, -s and -a");
	if (options->session.all || has_scope(&options->session))
		return 0;
	if (options->command != COMMAND_DOCTOR && !options->session.pids.len) {
		log_err("which process? Give it with -p PID%s (--help explains)",
			options->command == COMMAND_RECORD ? ", or a command after --" : "");
		return -EINVAL;
	}
	if (options->command != COMMAND_RECORD && options->session.pids.len > 1) {
		log_err("%s: one process at a time", options->command == COMMAND_DUMP ? "dump" : "doctor");
		return -EINVAL;
	}
	return 0;
}

static int check_filter(const struct options *options)
{
	const struct session_config *session = &options->session;

	if (filter__is_set(&session->filter) && !session->subprocesses && !session->all &&
	    !has_scope(session))
		return refuse("--exclude, --comm and --user choose among what -s, -a, --cgroup or "
			      "--container finds");
	return 0;
}

/* Options that say nothing to a command are more likely a mistake. */
static int check_option(const struct options *options, int option)
{
	bool dump = options->command == COMMAND_DUMP;

	if (option == 'p' || option == 'v' || option == 'h' || option == 'V')
		return 0;
	if (options->command == COMMAND_DOCTOR) {
		log_err("doctor takes -p and -v only");
		return -EINVAL;
	}
	if (dump == (option == OPTION_JSON || option == OPTION_LOCALS))
		return 0;
	log_err(dump ? "dump takes -p, --json, --locals and -v only"
		     : "--json and --locals belong to dump (--help explains)");
	return -EINVAL;
}

static const struct {
	const char *name;
	enum command command;
} COMMANDS[] = {{"record", COMMAND_RECORD},
		{"report", COMMAND_REPORT},
		{"diff", COMMAND_DIFF},
		{"dump", COMMAND_DUMP},
		{"doctor", COMMAND_DOCTOR}};

/* Whether the word is a command. */
static bool take_command(struct options *options, const char *word)
{
	for (size_t i = 0; word && i < ARRAY_SIZE(COMMANDS); i++) {
		if (strcmp(word, COMMANDS[i].name))
			continue;
		options->command = COMMANDS[i].command;
		return true;
	}
	return false;
}

int options__parse(struct options *options, int argc, char **argv)
{
	const struct writer *format = NULL;
	const char *last_value = NULL;
	int option, err;
	char **words;

	*options = (struct options){.rows = ROWS_DEFAULT, .group = GROUP_LINE};
	options->session.rate_hz = RATE_DEFAULT;
	if (argc > 1 && take_command(options, argv[1])) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	if (options->command == COMMAND_REPORT)
		return options_parse_report(options, argc, argv);
	if (options->command == COMMAND_DIFF)
		return options_parse_diff(options, argc, argv);
	opterr = 0;
	optind = 0; /* glibc: start over, so that tests can parse more than once */
	while ((option = getopt_long(argc, argv, "+:p:sad:r:o:tl:qvhV", LONG_OPTIONS, NULL)) != -1) {
		if (option == '?' || option == ':')
			return refuse_word(option, argv[optind - 1]);
		last_value = optarg;
		err = check_option(options, option) ?: take_option(options, option, optarg, &format);
		if (err)
			return err;
	}
	if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION)
		return 0;
	words = argv + optind;
	/* Behind a "--" that is no value of an option. */
	if (optind > 1 && !strcmp(words[-1], "--") && words[-1] != last_value)
		err = take_command_line(options, words);
	else
		err = take_words(options, words);
	err = err ?: check_filter(options) ?: check_mode(options) ?: check_engine(options);
	return err ?: choose_writers(options, format) ?: check_recordings(options);
}

void options__free(struct options *options)
{
	vec__free(&options->session.pids);
	filter__free(&options->session.filter);
	thread_filter__free(&options->session.threads);
	vec__free(&options->session.cgroups);
	vec__free(&options->session.containers);
	vec__free(&options->outputs);
	vec__free(&options->reading.files);
	vec__free(&options->reading.threads);
	vec__free(&options->reading.functions);
}
