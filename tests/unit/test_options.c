/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line: every option, long and short, what it means and what it refuses.
 */
#include "options.h"
#include "options_values.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_WORDS 16

static struct options options;

/* Parse words separated by spaces; %s of a word cannot be given. */
static int parse(const char *line)
{
	static char text[512], *words[MAX_WORDS + 1];
	int count = 1;

	memset(words, 0, sizeof(words));
	words[0] = "pybpfprof";
	options__free(&options);
	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word && count < MAX_WORDS; word = strtok(NULL, " "))
		words[count++] = word;
	return options__parse(&options, count, words);
}

static void expect_good(const char *line)
{
	cr_assert_eq(parse(line), 0, "%s", line);
}

static void expect_bad(const char *line)
{
	cr_expect_eq(parse(line), -EINVAL, "%s", line);
}

static void free_options(void)
{
	options__free(&options);
}

/* Messages are not shown among the tests' own. */
TestSuite(options, .init = cr_redirect_stderr, .fini = free_options);

Test(options, defaults)
{
	expect_good("-p 12");
	cr_expect_eq(options.command, COMMAND_RECORD);
	cr_expect(options.session.pids.len == 1 && options.session.pids.items[0] == 12);
	cr_expect_eq(options.session.duration_ns, 0);
	cr_expect_eq(options.session.rate_hz, 99);
	cr_expect_eq(options.session.kernel_frames, 0);
	cr_expect_eq(options.session.program, SAMPLER_WALK);
	cr_expect(!options.session.by_thread && !options.quiet && !options.verbose);
	cr_expect_eq(options.group, GROUP_LINE);
	cr_expect_eq(options.rows, 15);
	cr_expect_eq(options.outputs.len, 0);
}

Test(options, clocks)
{
	expect_good("-p 1");
	cr_expect_eq(options.session.clock, SAMPLER_PERF);
	expect_good("-p 1 --clock tick --mode wall --engine bpf");
	cr_expect_eq(options.session.clock, SAMPLER_TICK);
	expect_good("-p 1 --clock=perf --engine readv");
	cr_expect_eq(options.session.clock, SAMPLER_PERF);
	expect_bad("-p 1 --clock tick --engine readv");
	expect_bad("-p 1 --clock tick --mode offcpu");
	expect_bad("-p 1 --clock ticks");
	expect_bad("-p 1 --clock");
}

Test(options, modes)
{
	expect_good("-p 1");
	cr_expect_eq(options.session.mode, ENGINE_CPU);
	expect_good("-p 1 --mode cpu --idle show");
	cr_expect_eq(options.session.mode, ENGINE_CPU);
	expect_good("-p 1 --mode=offcpu");
	cr_expect(options.session.mode == ENGINE_OFFCPU && !options.session.hide_idle);
	expect_good("--idle=hide --mode wall -a");
	cr_expect(options.session.mode == ENGINE_WALL && options.session.hide_idle);
	expect_good("-p 1 --mode exception");
	cr_expect(options.session.mode == ENGINE_CPU && options.session.only_exceptions);
	expect_good("-p 1 --mode exception --mode wall");
	cr_expect(options.session.mode == ENGINE_WALL && !options.session.only_exceptions);
	expect_bad("-p 1 --mode exceptions");
	expect_bad("-p 1 --mode exception --idle hide");
	expect_good("-p 1 --mode gil");
	cr_expect_eq(options.session.mode, ENGINE_GIL);
	expect_bad("-p 1 --mode gil --idle=hide");
	expect_bad("-p 1 --mode Wall");
	expect_bad("-p 1 --mode");
	expect_bad("-p 1 --mode wall --idle maybe");
	expect_bad("-p 1 --idle hide");
}

Test(options, threads_and_collections)
{
	expect_good("-p 1");
	cr_expect(!thread_filter__is_set(&options.session.threads) && !options.session.hide_gc);
	expect_good("-p 1 --main-thread --no-gc");
	cr_expect(options.session.threads.main && !options.session.threads.names.len &&
		  options.session.hide_gc);
	expect_good("-p 1 --thread 12 --thread worker-* --threads");
	cr_assert_eq(options.session.threads.names.len, 2);
	cr_expect_str_eq(options.session.threads.names.items[1], "worker-*");
	cr_expect(options.session.by_thread && !options.session.threads.main);
	expect_bad("-p 1 --thread");
	expect_bad("-p 1 --thread=");
	expect_bad("dump -p 1 --main-thread");
}

Test(options, commands)
{
	expect_good("record -p 1");
	cr_expect_eq(options.command, COMMAND_RECORD);
	expect_good("doctor");
	cr_expect_eq(options.command, COMMAND_DOCTOR);
	expect_good("-h");
	cr_expect_eq(options.command, COMMAND_HELP);
	expect_good("record --help");
	cr_expect_eq(options.command, COMMAND_HELP);
	expect_good("-V");
	cr_expect_eq(options.command, COMMAND_VERSION);
	expect_good("--version");
	cr_expect_eq(options.command, COMMAND_VERSION);
	expect_bad("");
	expect_bad("record");
	expect_bad("profile -p 1");
	expect_bad("-p 1 record");
	expect_bad("doctor 12");
	expect_bad("12");
}

Test(options, command_line)
{
	expect_good("-- python3 -c pass");
	cr_expect_eq(options.command, COMMAND_RECORD);
	cr_assert(options.session.command);
	cr_expect_str_eq(options.session.command[0], "python3");
	cr_expect_str_eq(options.session.command[1], "-c");
	cr_expect_str_eq(options.session.command[2], "pass");
	cr_expect(!options.session.command[3] && !options.session.keep_root);
	expect_good("record -s --as-root -r 50 -- x -r -p -- y");
	cr_expect(options.session.subprocesses && options.session.keep_root);
	cr_expect_eq(options.session.rate_hz, 50);
	cr_expect_str_eq(options.session.command[3], "--");
	expect_bad("--");
	expect_bad("-r 50 --");
	expect_bad("python3 -- -c pass");
	expect_bad("-p 1 -- x");
	expect_bad("-a -- x");
	expect_bad("dump -- x");
	expect_bad("doctor -- x");
	expect_bad("-o -- x");
	expect_bad("-p 1 --as-root");
}

Test(options, several_processes)
{
	expect_good("-p 1");
	cr_expect(!options.session.subprocesses && !options.session.all);
	cr_expect_eq(options.session.by, SESSION_BY_DEFAULT);
	expect_good("-p 1 -s --by merged");
	cr_expect(options.session.subprocesses);
	cr_expect_eq(options.session.by, SESSION_BY_MERGED);
	expect_good("-p 1,2 --subprocesses --by process");
	cr_expect_eq(options.session.by, SESSION_BY_PROCESS);
	expect_good("--all");
	cr_expect(options.session.all);
	expect_bad("-a -p 1");
	expect_bad("-a -s");
	expect_bad("-s");
	expect_bad("-p 1 --by thread");
	expect_bad("-p 1 --by");
	expect_good("-a --exclude celery --comm gunicorn --user root");
	cr_assert_eq(options.session.filter.excludes.len, 1);
	cr_expect_str_eq(options.session.filter.excludes.items[0], "celery");
	cr_expect_str_eq(options.session.filter.comms.items[0], "gunicorn");
	cr_expect(options.session.filter.users.len == 1 && !options.session.filter.users.items[0]);
	expect_good("-a --exclude a --exclude=b --comm c --comm d --user 5 --user root");
	cr_assert_eq(options.session.filter.excludes.len, 2, "each of them counts");
	cr_expect_str_eq(options.session.filter.excludes.items[1], "b");
	cr_expect_eq(options.session.filter.comms.len, 2);
	cr_expect(options.session.filter.users.len == 2 && options.session.filter.users.items[0] == 5);
	expect_good("-p 1 -s --user 1234");
	cr_expect_eq(options.session.filter.users.items[0], 1234);
	expect_bad("-p 1 --user root");
	expect_bad("-a --user no-such-user");
	expect_good("-a --comm fifteen-letters");
	expect_good("-a --comm sixteen-letters*");
	expect_bad("-a --comm sixteen-letters-");
	expect_bad("dump -p 1 -s");
	expect_bad("doctor -a");
}

Test(options, cgroups)
{
	expect_good("--cgroup /sys/fs/cgroup/x --cgroup y --comm python*");
	cr_assert_eq(options.session.cgroups.len, 2);
	cr_expect_str_eq(options.session.cgroups.items[1], "y");
	expect_good("--container web --cgroup y --by container");
	cr_assert_eq(options.session.containers.len, 1);
	cr_expect_str_eq(options.session.containers.items[0], "web");
	cr_expect_eq(options.session.by, SESSION_BY_CONTAINER);
	expect_good("-a --by container");
	expect_bad("--cgroup x -p 1");
	expect_bad("--cgroup x -s");
	expect_bad("--container x -a");
	expect_bad("--container x -- y");
	expect_bad("--container");
	expect_bad("dump --container x");
}

Test(options, dump)
{
	expect_good("dump -p 12");
	cr_expect_eq(options.command, COMMAND_DUMP);
	cr_expect(!options.json && !options.locals && options.session.pids.len == 1);
	expect_good("dump --pid=12 --json --locals -v");
	cr_expect(options.json && options.locals && options.verbose);
	expect_good("dump -h");
	cr_expect_eq(options.command, COMMAND_HELP);
	expect_bad("dump");
	expect_bad("dump --json");
	expect_bad("dump 12");
	expect_bad("dump -p 1,2");
	expect_bad("dump -p 1 -p 2");
	expect_bad("dump -p 1 -d 5");
	expect_bad("dump -p 1 -o x.collapsed");
	expect_bad("dump -p 1 --stats");
	expect_bad("dump -p 1 --jsn");
	expect_bad("-p 1 --json");
	expect_bad("record -p 1 --locals");
	expect_bad("doctor --json");
	expect_bad("-p 1 dump");
}

Test(options, doctor)
{
	expect_good("doctor");
	cr_expect_eq(options.session.pids.len, 0);
	expect_good("doctor -p 12 -v");
	cr_expect_eq(options.command, COMMAND_DOCTOR);
	cr_expect(options.verbose && options.session.pids.len == 1 && options.session.pids.items[0] == 12);
	expect_good("doctor --help");
	cr_expect_eq(options.command, COMMAND_HELP);
	expect_bad("doctor -p 1,2");
	expect_bad("doctor -p 1 -p 2");
	expect_bad("doctor -p 0");
	expect_bad("doctor -p 1 --json");
	expect_bad("doctor -p 1 -d 5");
	expect_bad("doctor -q");
}

Test(options, all_at_once)
{
	expect_good("record --pid=12,13 --duration=2m --rate=10k --output=a.collapsed -o b.folded "
		    "--format=collapsed "
		    "--function --threads --limit=40 --verbose --kernel-frames=8192 --debug-bpf=bounded --debug-slot=off");
	cr_expect(options.session.pids.len == 2 && options.session.pids.items[1] == 13);
	cr_expect_eq(options.session.duration_ns, 120000000000);
	cr_expect_eq(options.session.rate_hz, 10000);
	cr_expect_eq(options.session.kernel_frames, 8192);
	cr_expect_eq(options.session.program, SAMPLER_BOUNDED);
	cr_expect(options.session.by_thread && options.session.no_slot && options.verbose && !options.quiet);
	cr_expect_eq(options.group, GROUP_FUNCTION);
	cr_expect_eq(options.rows, 40);
	cr_assert_eq(options.outputs.len, 2);
	cr_expect_str_eq(options.outputs.items[1].path, "b.folded");
	cr_expect_eq(options.outputs.items[1].writer, &collapsed_writer);
	expect_good("-p 1 -d 5 -r 9 -o - -t -l 1 -q -v --line");
	cr_expect(options.quiet && options.verbose && options.session.by_thread && options.rows == 1);
	cr_expect_eq(options.group, GROUP_LINE);
}

Test(options, the_last_one_counts)
{
	expect_good("-p 1 -r 10 -r 20 --function --line -d 1 -d 2");
	cr_expect_eq(options.session.rate_hz, 20);
	cr_expect_eq(options.session.duration_ns, 2000000000);
	cr_expect_eq(options.group, GROUP_LINE);
}

Test(options, pids)
{
	expect_good("-p 3,1,3 -p 2 -p 1");
	cr_assert_eq(options.session.pids.len, 3, "each once");
	cr_expect(options.session.pids.items[0] == 3 && options.session.pids.items[1] == 1 &&
		  options.session.pids.items[2] == 2);
	expect_good("-p 2147483647");
	expect_bad("-p 2147483648");
	expect_bad("-p 99999999999999999999");
	expect_bad("-p 0");
	expect_bad("-p -1");
	expect_bad("-p +1");
	expect_bad("-p 1x");
	expect_bad("-p 0x10");
	expect_bad("-p 1,");
	expect_bad("-p ,1");
	expect_bad("-p 1,,2");
	expect_bad("-p 1;2");
	expect_bad("-p python");
	expect_bad("-p");
	expect_bad("--pid=");
	expect_bad("-p 1 --pid=");
}

Test(options, bad_values)
{
	static const char *const lines[] = {
		"-p 1 -d 0",
		"-p 1 -d",
		"-p 1 -d x",
		"-p 1 -r 0",
		"-p 1 -r 20001",
		"-p 1 -r fast",
		"-p 1 -l 0",
		"-p 1 -l 1000001",
		"-p 1 -l 1.5",
		"-p 1 -l -3",
		"-p 1 -l many",
		"-p 1 --kernel-frames 0",
		"-p 1 --kernel-frames 8193",
		"-p 1 --kernel-frames x",
		"-p 1 --debug-bpf none",
		"-p 1 --debug-slot none",
		"-p 1 --format svgz",
		"-p 1 --format",
		"-p 1 --format html",
		"-p 1 --no-such-option",
		"-p 1 -Z",
		"-p 1 extra",
		"-p 1 -o",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		expect_bad(lines[i]);
}

Test(options, formats)
{
	expect_good("-p 1 -o a.collapsed -o b.folded -o c -o dir.d/c");
	for (size_t i = 0; i < options.outputs.len; i++)
		cr_expect_eq(options.outputs.items[i].writer, &collapsed_writer, "%zu", i);
	expect_good("-p 1 -o a.xyz --format collapsed");
	cr_expect_eq(options.outputs.items[0].writer, &collapsed_writer);
	expect_bad("-p 1 -o a.xyz");
	expect_bad("-p 1 -o a.collapsed -o b.xyz");
	/* The table would be in the same stream. */
	expect_good("-p 1 -o -");
	cr_expect(options.quiet);
	expect_good("-p 1 -o a.collapsed");
	cr_expect(!options.quiet);
}

Test(options, durations)
{
	static const struct {
		const char *text;
		uint64_t ns; /* 0 = refused */
	} cases[] = {
		{"30", 30000000000},
		{"30s", 30000000000},
		{"2m", 120000000000},
		{"2min", 120000000000},
		{"500ms", 500000000},
		{"1h", 3600000000000},
		{"1.5", 1500000000},
		{".5", 500000000},
		{"0.25m", 15000000000},
		{"1ms", 1000000},
		{"366h", 1317600000000000},
		{"10.", 10000000000},
		{"", 0},
		{".", 0},
		{"0", 0},
		{"0.5ms", 0},
		{"-1", 0},
		{"+1", 0},
		{" 1", 0},
		{"1 ", 0},
		{"1 s", 0},
		{"1S", 0},
		{"1d", 0},
		{"1ss", 0},
		{"1e3", 0},
		{"0x10", 0},
		{"1,5", 0},
		{"1.2.3", 0},
		{"inf", 0},
		{"nan", 0},
		{"ms", 0},
		{"10000h", 0},
		{"99999999999999999999999999999999", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = 0;

		cr_expect_eq(parse_duration(cases[i].text, &ns), cases[i].ns ? 0 : -EINVAL, "'%s'",
			     cases[i].text);
		cr_expect_eq(ns, cases[i].ns, "'%s': %lu", cases[i].text, ns);
	}
}

Test(options, rates)
{
	static const struct {
		const char *text;
		uint32_t hz; /* 0 = refused */
	} cases[] = {
		{"99", 99},	  {"1", 1},	  {"20000", 20000}, {"20k", 20000},	{"10K", 10000},
		{"10khz", 10000}, {"250hz", 250}, {"250Hz", 250},   {"1.5k", 1500},	{"99.9", 99},
		{"0", 0},	  {"0.5", 0},	  {"1000k", 1000000}, {"1000001", 0},	{"", 0},
		{"k", 0},	  {"hz", 0},	  {"-5", 0},	    {"+5", 0},		{" 5", 0},
		{"5 ", 0},	  {"5kk", 0},	  {"5h", 0},	    {"1e3", 0},		{"0x10", 0},
		{"inf", 0},	  {"nan", 0},	  {"1M", 0},	    {"99999999999", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t hz = 0;

		cr_expect_eq(parse_rate(cases[i].text, &hz), cases[i].hz ? 0 : -EINVAL, "'%s'",
			     cases[i].text);
		cr_expect_eq(hz, cases[i].hz, "'%s': %u", cases[i].text, hz);
	}
}

/* Only the readv engine is asked for more than the kernel side takes. */
Test(options, rates_of_engines)
{
	struct options options;
	char *fast[] = {"pybpfprof", "-p", "1", "-r", "200k", "--engine=readv", NULL};
	char *too_fast[] = {"pybpfprof", "-p", "1", "-r", "20001", "--engine=bpf", NULL};

	cr_expect_eq(options__parse(&options, 6, fast), 0);
	cr_expect_eq(options.session.rate_hz, 200000);
	cr_expect_eq(options.session.engine, ENGINE_READV);
	options__free(&options);
	cr_expect_eq(options__parse(&options, 6, too_fast), -EINVAL);
	options__free(&options);
}

/* A fault is told by the option's name and what it wants. */
Test(options, faults_are_told)
{
	expect_bad("-p 1 -d soon");
	expect_bad("-p 1 -r 1e9");
	expect_bad("-p 1 -o a.xyz");
	expect_bad("");
	expect_bad("-p 1 -Z");
	expect_bad("-p 1 --no-such=x");
	expect_bad("-p 1 --all=x");
	expect_bad("-p 1 -qd");
	expect_bad("-p 1 --rate");
	expect_bad("-p 1 -o - --report -");
	expect_bad("-p 1 -o - -o -");
	fflush(stderr);
	cr_assert_stderr_eq_str(
		"pybpfprof: error: -d soon: a time such as 30, 30s, 2m or 500ms, from 1 ms to 366 days\n"
		"pybpfprof: error: -r 1e9: a rate from 1 to 1000k, such as 99, 1000 or 10k\n"
		"pybpfprof: error: -o a.xyz: the suffix names no format; use --format (--help lists them)\n"
		"pybpfprof: error: which process? Give it with -p PID, or a command after -- (--help explains)\n"
		"pybpfprof: error: -Z: there is no such option, or several begin so (--help lists them)\n"
		"pybpfprof: error: --no-such=x: there is no such option, or several begin so (--help lists "
		"them)\n"
		"pybpfprof: error: --all=x: it takes no value (--help explains)\n"
		"pybpfprof: error: -d: it needs a value (--help explains)\n"
		"pybpfprof: error: --rate: it needs a value (--help explains)\n"
		"pybpfprof: error: -o - and --report -: stdout takes one of them\n"
		"pybpfprof: error: -o - twice: stdout takes one profile\n");
}

/* What was typed reaches the terminal as text only. */
Test(options, words_are_escaped)
{
	static const char *const lines[] = {"-p \033[31m",    "--user \xff",	 "--engine a\nb",
					    "-p 1 -\033",     "-p 1 --\033[31m", "-p 1 x\033\n",
					    "-p 1 -o x.\033", "-p 1 -r \r1",	 "--report ''\r -p 1 \033"};
	char text[4096];
	size_t len, lines_told = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		expect_bad(lines[i]);
	fflush(stderr);
	len = fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr());
	text[len] = '\0';
	for (size_t i = 0; i < len; i++) {
		lines_told += text[i] == '\n';
		cr_expect(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'), "byte %d: %s", text[i],
			  text);
	}
	cr_expect_eq(lines_told, ARRAY_SIZE(lines), "%s", text);
	cr_expect(strstr(text, "-p \\x1b[31m: ") && strstr(text, "--user \\xff: ") && strstr(text, "a\\x0ab"),
		  "%s", text);
}

/* The help names every option and every format. */
/* Capital letters are sizes, small ones times: 10m is ten minutes. */
Test(options, rotation)
{
	expect_good("-p 1 -o x.pbp");
	cr_expect(!options.rotation.bytes && !options.rotation.ns && !options.rotation.keep);
	expect_good("-p 1 -o x.pbp -o x.html --rotate 10M --keep 3");
	cr_expect(options.rotation.bytes == 10000000 && !options.rotation.ns && options.rotation.keep == 3);
	expect_good("-p 1 -o x.pbp --rotate 10m");
	cr_expect(!options.rotation.bytes && options.rotation.ns == 600000000000ull);
	expect_good("-p 1 -o x --format pbp --rotate 1.5G");
	cr_expect_eq(options.rotation.bytes, 1500000000);
	expect_good("-p 1 -o x.pbp --rotate 64k");
	cr_expect_eq(options.rotation.bytes, 64000);
	expect_bad("-p 1 -o x.pbp --rotate 100");
	expect_bad("-p 1 -o x.pbp --rotate 63k");
	expect_bad("-p 1 -o x.pbp --rotate 500ms");
	expect_bad("-p 1 -o x.pbp --rotate -1M");
	expect_bad("-p 1 -o x.pbp --rotate M");
	expect_bad("-p 1 -o x.pbp --rotate 10Q");
	expect_bad("-p 1 -o x.pbp --keep 3");
	expect_bad("-p 1 -o x.pbp --rotate 1M --keep 0");
	expect_bad("-p 1 -o x.html --rotate 1M");
	expect_bad("-p 1 -o - --format pbp --rotate 1M");
	expect_good("-p 1 -o - --format pbp");
	expect_bad("-o - --format pbp -- a");
	expect_good("-o - --format jsonl -- a");
}

Test(options, report)
{
	const struct report_options *reading = &options.reading;

	expect_good("report x.pbp");
	cr_expect_eq(options.command, COMMAND_REPORT);
	cr_expect(reading->files.len == 1 && !strcmp(reading->files.items[0], "x.pbp"));
	cr_expect(!reading->from.kind && !reading->to.kind && !reading->apart_is_set && !options.quiet);
	expect_good("report x.1.pbp -q -o a.html x.2.pbp -o b.pb.gz -l 3 -- -x.pbp");
	cr_expect(reading->files.len == 3 && !strcmp(reading->files.items[2], "-x.pbp"));
	cr_expect(options.outputs.len == 2 && options.quiet && options.rows == 3);
	expect_good("report x.pbp -o - --format jsonl");
	cr_expect(options.quiet && options.outputs.items[0].writer == &jsonl_writer);
	expect_good("report x.pbp -p 12,13 -p 14 --thread pool-* --function Box.go --thread 7 --function stop");
	cr_expect(options.session.pids.len == 3 && options.session.pids.items[2] == 14);
	cr_expect(reading->threads.len == 2 && !strcmp(reading->threads.items[0], "pool-*"));
	cr_expect(reading->functions.len == 2 && !strcmp(reading->functions.items[1], "stop"));
	expect_good("report x.pbp --by function --by process --by thread");
	cr_expect(options.group == GROUP_FUNCTION && reading->apart_is_set && reading->apart.processes &&
		  reading->apart.threads && !reading->apart.containers);
	expect_good("report x.pbp --by merged");
	cr_expect(reading->apart_is_set && !reading->apart.processes && options.group == GROUP_LINE);
	expect_good("report x.pbp -t");
	cr_expect(reading->adds_threads && !reading->apart_is_set);
	expect_bad("report");
	expect_bad("report -o x.html");
	expect_bad("report x.pbp -o x.unknown");
	expect_bad("report x.pbp -d 5");
	expect_bad("report x.pbp --json");
	expect_bad("report x.pbp --by merged --by thread");
	expect_bad("report x.pbp --by user");
	expect_bad("report x.pbp -p 0");
	expect_bad("report x.pbp --thread=");
	expect_bad("report x.pbp --format html");
	expect_bad("report x.pbp --from 5 --to 5");
	expect_bad("report x.pbp --from 9999-01-01T00:00:00Z");
	expect_bad("report x.pbp --from 1969-12-31T23:59:59Z");
}

static void expect_time(const char *text, int kind, double seconds)
{
	struct report_time time;

	cr_assert_eq(parse_report_time(text, &time), 0, "%s", text);
	cr_expect_eq((int)time.kind, kind, "%s", text);
	cr_expect_eq(time.ns, (int64_t)(seconds * 1e9), "%s: %ld", text, (long)time.ns);
}

Test(options, report_times)
{
	static const char *const bad[] = {"",	    "-5",      "5x",	  "25:00",    "12:60", "12:00:61x",
					  "12:5:",  "2026-11", "2026-11-30", "12:00Zx", "noon",  "12:00:00.5.5",
					  "s", ".", "0x", "-0", "2026-02-30T10:00", "2026-04-31T10:00Z"};
	struct report_time time;

	setenv("TZ", "UTC-2", 1);
	tzset();
	expect_time("0", TIME_SINCE, 0);
	expect_time("0s", TIME_SINCE, 0);
	expect_time("0.0", TIME_SINCE, 0);
	expect_time("0.0004", TIME_SINCE, 0.0004);
	expect_time("0:00", TIME_OF_DAY, 0);
	expect_time("12.5", TIME_SINCE, 12.5);
	expect_time("2m", TIME_SINCE, 120);
	expect_time("13:05", TIME_OF_DAY, 13 * 3600 + 5 * 60);
	expect_time("13:05:30", TIME_OF_DAY, 13 * 3600 + 5 * 60 + 30);
	expect_time("13:05:30.25", TIME_OF_DAY, 13 * 3600 + 5 * 60 + 30.25);
	expect_time("2026-11-30T13:05:30Z", TIME_AT, 1796043930);
	expect_time("2026-11-30T13:05:30", TIME_AT, 1796043930 - 7200);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_eq(parse_report_time(bad[i], &time), -EINVAL, "%s", bad[i]);
}

/* Of what began at that time of the day, so many seconds after it. */
static void expect_since(const char *text, const char *start, double seconds)
{
	struct report_time time, began;
	int64_t got;

	cr_assert_eq(parse_report_time(text, &time) ?: parse_report_time(start, &began), 0, "%s", text);
	got = report_time__since(&time, (uint64_t)began.ns);
	cr_expect_eq(got, (int64_t)(seconds * 1e9), "%s of %s: %ld", text, start, (long)got);
}

/* A time of the day is that of the next day where it is long over when the recording begins. */
Test(options, times_of_day)
{
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	expect_since("13:05:30", "2026-11-30T13:00:00", 330);
	expect_since("13:05:30.5", "2026-11-30T13:00:00.25", 330.25);
	expect_since("13:00", "2026-11-30T13:05:00", -300);
	expect_since("12:30", "2026-11-30T13:05:00", -2100);
	expect_since("02:00", "2026-11-30T13:00:00", 13 * 3600);
	expect_since("11:30", "2026-11-30T13:00:00", 22.5 * 3600);
	expect_since("00:10", "2026-12-31T23:50:00", 1200);
	expect_since("12.5", "2026-11-30T13:00:00", 12.5);
	expect_since("2026-11-30T12:00:00Z", "2026-11-30T12:00:00", 3600);
	/* The clocks are put forward at two, and back at three. */
	expect_since("13:00", "2026-03-29T01:00:00", 11 * 3600);
	expect_since("13:00", "2026-10-24T15:00:00", 23 * 3600);
}

Test(options, diff)
{
	expect_good("diff a.pbp b.pbp");
	cr_expect_eq(options.command, COMMAND_DIFF);
	cr_expect(options.reading.files.len == 2 && !strcmp(options.reading.files.items[1], "b.pbp"));
	expect_good("diff -o x.html a.pbp -l 3 b.pbp -q");
	cr_expect(options.outputs.len == 1 && options.rows == 3 && options.quiet);
	expect_bad("diff a.pbp");
	expect_bad("diff a.pbp b.pbp c.pbp");
	expect_bad("diff a.pbp b.pbp -o x.json");
	expect_bad("diff a.pbp b.pbp -o x.html -o y.html");
	expect_bad("diff a.pbp b.pbp -p 1");
}

Test(options, help)
{
	static const char *const words[] = {
		"--pid",	  "--duration", "--rate",      "--output",  "--format",	 "--line",
		"--function",	  "--threads",	"--limit",     "--quiet",   "--verbose", "--kernel-frames",
		"--subprocesses", "--all",	"--by",	       "--as-root", "--exclude", "--comm",
		"--user",	  "--help",	"--version",   "doctor",    "record",	 ".collapsed",
		".folded",	  "--cgroup",	"--container", "--rotate", "--keep",	".pbp",	    "--from",
		"--to",		  "diff",	"heatmap",     "gecko",
	};
	char text[16384];
	FILE *out;
	size_t len;

	cr_redirect_stdout();
	out = cr_get_redirected_stdout();
	options__print_help();
	fflush(stdout);
	len = fread(text, 1, sizeof(text) - 1, out);
	text[len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		cr_expect(strstr(text, words[i]), "%s", words[i]);
	cr_expect(!strstr(text, "debug-"));
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += !!line)
		cr_expect_leq(strcspn(line, "\n"), 80, "%.40s", line);
}
