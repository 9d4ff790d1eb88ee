/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings (.pbp) of a process: they say the same as the profile that is written beside them, as a whole
 * and in part; what was recorded before the profiler was killed is there; files that are rotated can be read
 * by themselves.
 */
#include "harness.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WRITTEN = 0, FAILED = 1, PARTIAL = 5 };

#define TRIES 3 /* on a machine that does not let a program run for a while */

static char pid_text[16];

static struct target *start_program(const char *program)
{
	struct target *target = start(pick("3.15", "debian"), program);

	snprintf(pid_text, sizeof(pid_text), "%d", target->pid);
	return target;
}

/* A file of a folder that goes with the test; valid for some calls more. */
static const char *path_of(const char *folder, const char *name)
{
	static char paths[8][CHILD_PATH];
	static size_t next;
	char *path = paths[next++ % 8];

	snprintf(path, CHILD_PATH, "%s/%s", folder, name);
	return path;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a file in the order of their texts: that of stacks of equal weight is no one's business. */
static char *sorted_lines(const char *path)
{
	char *text = read_text(path), *copy = strdup(text), *save = NULL, *at = text;
	size_t count = 0, room = strlen(text) / 2 + 1;
	char **lines = calloc(room, sizeof(*lines));

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		lines[count++] = line;
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s\n", lines[i]);
	free(lines);
	free(copy);
	return text;
}

static void check_same(const char *one, const char *other)
{
	char *a = sorted_lines(one), *b = sorted_lines(other);
	size_t at = 0;

	while (a[at] && a[at] == b[at])
		at++;
	check(!strcmp(a, b), "%s and %s differ:\n%.300s\n---\n%.300s", one, other, a + at, b + at);
	check(*a, "%s is empty", one);
	free(a);
	free(b);
}

/* What `report` writes of a recording. */
#define report_of(file, ...) report_into((file), (const char *const[]){__VA_ARGS__, NULL})
static struct run *report_into(const char *file, const char *const *options)
{
	const char *argv[16] = {"report", file};
	size_t count = 2;

	while (*options)
		argv[count++] = *options++;
	return profiler__finish(profiler__start(argv), NULL);
}

static void parse(struct stacks *stacks, const char *path)
{
	const char *fault = stacks__parse(stacks, path);

	check(!fault, "%s: %s", path, fault);
}

/* Of threads and processes that are told apart, or not: as they were in the run. */
static void check_as_profile(const char *engine)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp"),
		   *want = path_of(folder, "x.collapsed"), *got = path_of(folder, "y.collapsed");
	struct run *run;
	char taken[64];

	start_program("parallel.py");
	run = profiler__finish(profiler("-p", pid_text, "-d", "1", "-r", "499", "-q", "-t", "--by", "process",
					"-o", file, "-o", want, "--engine", engine),
			       want);
	check(run->code == WRITTEN && run->report.samples > 0, "exit code %d, %g samples", run->code,
	      run->report.samples);
	snprintf(taken, sizeof(taken), "  samples    %.0f taken, %.0f lost, ", run->report.samples,
		 run->report.lost);
	run = report_of(file, "-o", got, "-l", "2");
	check(run->code == WRITTEN && strstr(run->err, taken), "not %s but (%d) %s", taken, run->code,
	      run->err);
	check(strstr(run->out, "self%") && strstr(run->out, "work"), "no table: %s", run->out);
	check_same(want, got);

	/* What is read stays. */
	run = report_of(file, "-q", "-o", file);
	check(run->code == FAILED && strstr(run->err, "it is what is read"), "(%d) %s", run->code, run->err);

	/* A recording of a recording is the same one. */
	run = report_of(file, "-q", "-o", path_of(folder, "z.pbp"));
	check(run->code == WRITTEN, "%s", run->err);
	run = report_of(path_of(folder, "z.pbp"), "-q", "-o", got);
	check(run->code == WRITTEN && strstr(run->err, taken), "not %s but (%d) %s", taken, run->code,
	      run->err);
	check_same(want, got);
}

LIVE_TEST(record, as_the_profile)
{
	check_as_profile("bpf");
}

LIVE_TEST(record, as_the_profile_by_readv)
{
	check_as_profile("readv");
}

/* Waits with their exact lengths, CPU time as the kernel counts it: the sums differ by what rounding leaves.
 */
LIVE_TEST(record, times)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp"),
		   *want = path_of(folder, "x.collapsed"), *got = path_of(folder, "y.collapsed");
	struct stacks of_run, of_report;
	struct run *run;
	double sum, other;

	start_program("duty.py");
	run = profiler__finish(profiler("-p", pid_text, "-d", "2", "-r", "499", "-q", "--mode", "wall", "-o",
					file, "-o", want),
			       NULL);
	check(run->code == WRITTEN, "exit code %d: %s", run->code, run->err);
	run = report_of(file, "-q", "-o", got);
	check(run->code == WRITTEN, "exit code %d: %s", run->code, run->err);
	parse(&of_run, want);
	parse(&of_report, got);
	sum = (double)of_run.total;
	other = (double)of_report.total;
	check(other > 0.999 * sum && other < 1.001 * sum, "%g and %g us", sum, other);
	sum = (double)stacks__with(&of_run, "[sleep]");
	other = (double)stacks__with(&of_report, "[sleep]");
	check(sum > 0 && other > 0.999 * sum && other < 1.001 * sum, "sleep: %g and %g us", sum, other);
}

/* "2026-11-30T13:05:30.123456Z" */
static const char *clock_text(double seconds)
{
	static char texts[4][64];
	static size_t next;
	char *text = texts[next++ % 4], *end;
	time_t whole = (time_t)seconds;

	end = text + strftime(text, 40, "%Y-%m-%dT%H:%M:%S", gmtime(&whole));
	sprintf(end, "%.6fZ", seconds - (double)whole);
	memmove(end, end + 1, strlen(end)); /* the 0 before the point */
	return text;
}

/* What lies before a moment by the clock, and after it. */
LIVE_TEST(record, in_part)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp"),
		   *part = path_of(folder, "y.folded");
	struct target *target = start_program("phases.py");
	struct child *child = profiler("-v", "-p", pid_text, "-r", "499", "-q", "-o", file);
	struct stacks stacks;
	const char *line, *at;
	struct run *run;

	check(child__wait_message(child, "first sample", 30), "no first sample: %s", child__err(child));
	pause_for(0.5);
	kill(target->pid, SIGUSR1);
	line = child__wait_line(target->child, "late ", 30);
	check(line, "it does not go on");
	at = clock_text(atof(line));
	pause_for(0.5);
	kill(child->pid, SIGINT);
	check(child__wait(child, 30) && child__code(child) == WRITTEN, "%s", child__err(child));

	run = report_of(file, "-q", "-o", part, "--to", at);
	check(run->code == WRITTEN, "--to %s: %s", at, run->err);
	parse(&stacks, part);
	check(stacks.total && stacks__with(&stacks, "late") <= 1, "--to %s: late is %llu of %llu", at,
	      (unsigned long long)stacks__with(&stacks, "late"), (unsigned long long)stacks.total);
	run = report_of(file, "-q", "-o", part, "--from", at);
	parse(&stacks, part);
	check(run->code == WRITTEN && stacks.total && stacks__with(&stacks, "early") <= 1,
	      "--from %s: early is %llu of %llu: %s", at, (unsigned long long)stacks__with(&stacks, "early"),
	      (unsigned long long)stacks.total, run->err);
	run = report_of(file, "-q", "-o", part, "--function", "early");
	parse(&stacks, part);
	check(run->code == WRITTEN && stacks__with(&stacks, "early") == stacks.total &&
		      !stacks__with(&stacks, "late"),
	      "--function: %s", run->err);
	run = report_of(file, "-p", "1");
	check(run->code == FAILED && strstr(run->err, "no samples in that part"), "-p 1: %d: %s", run->code,
	      run->err);
}

/* Nothing was written at an end that it did not have, and yet all is there but for the last second. */
LIVE_TEST(record, killed)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp"),
		   *got = path_of(folder, "y.jsonl");
	struct timespec now;
	struct run *run = NULL;

	start_program("spin.py");
	for (int i = 0; i < TRIES; i++) {
		struct child *child = profiler("-v", "-p", pid_text, "-r", "499", "-q", "-o", file);

		check(child__wait_message(child, "first sample", 30), "no first sample: %s",
		      child__err(child));
		pause_for(1.6);
		clock_gettime(CLOCK_REALTIME, &now);
		kill(child->pid, SIGKILL);
		check(child__wait(child, 30), "it lives");
		run = report_of(file, "-o", got, "-q", "--from",
				clock_text((double)now.tv_sec + (double)now.tv_nsec / 1e9 - 1));
		if (run->code == PARTIAL)
			break;
	}
	check(run->code == PARTIAL && strstr(run->err, "it was cut off"), "exit code %d: %s", run->code,
	      run->err);
	check(strstr(read_text(got), "\"end\": \"the recording was cut off\""), "%.400s", read_text(got));
	run = report_of(file, "-o", got, "-q");
	check(run->code == PARTIAL && strstr(read_text(got), "\"cpu_s\": null"), "of a second of CPU time: %.400s",
	      read_text(got));
}

/* Each by itself, the last ones only, and none in place of another. */
LIVE_TEST(record, rotated)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp"),
		   *there = path_of(folder, "x.0001.pbp");
	const char *files[8] = {"report"};
	struct run *run;
	double taken;
	glob_t found;
	size_t count;

	start_program("spin.py");
	write_file(there, "mine");
	run = profiler_run("-p", pid_text, "-d", "4", "-r", "499", "-q", "-o", file, "--rotate", "1s",
			   "--keep", "2");
	check(run->code == WRITTEN && strstr(run->err, ", the last of "), "exit code %d: %s", run->code,
	      run->err);
	check(!strcmp(read_text(there), "mine"), "the file that was there is not");
	check(!glob(path_of(folder, "x.*.pbp"), 0, NULL, &found) && found.gl_pathc == 3, "%zu files",
	      found.gl_pathc);
	for (count = 1; count < found.gl_pathc; count++) {
		files[count] = found.gl_pathv[count];
		run = report_of(files[count], "-q");
		check(run->code == WRITTEN, "%s: %s", files[count], run->err);
	}
	run = profiler__finish(profiler__start(files), NULL);
	check(run->code == WRITTEN && strstr(run->out, "spin.py"), "both: %d: %s%s", run->code, run->out,
	      run->err);
	taken = number_before(run->err, " taken");
	files[count] = files[1];
	run = profiler__finish(profiler__start(files), NULL);
	check(run->code == WRITTEN && strstr(run->err, "counts once") && number_before(run->err, " taken") == taken,
	      "named twice: %d: %s", run->code, run->err);
	globfree(&found);
}

/* SIGUSR1: recordings are up to date, and the table is printed where there is no file. */
LIVE_TEST(record, snapshot)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp"),
		   *want = path_of(folder, "x.collapsed"), *got = path_of(folder, "y.collapsed");
	struct stacks stacks, snapshot;
	struct child *child;
	struct run *run;

	start_program("spin.py");
	child = profiler("-v", "-p", pid_text, "-r", "499", "-q", "-o", file, "-o", want);
	check(child__wait_message(child, "first sample", 30), "no first sample: %s", child__err(child));
	pause_for(0.3);
	kill(child->pid, SIGUSR1);
	check(child__wait_message(child, "snapshot of ", 30), "no snapshot: %s", child__err(child));
	run = report_of(file, "-q", "-o", got);
	parse(&snapshot, want);
	parse(&stacks, got);
	check(run->code == PARTIAL && stacks.total >= snapshot.total,
	      "%d: %llu samples, and of the recording %llu", run->code, (unsigned long long)snapshot.total,
	      (unsigned long long)stacks.total);
	kill(child->pid, SIGINT);
	check(child__wait(child, 30) && child__code(child) == WRITTEN, "%s", child__err(child));

	child = profiler("-v", "-p", pid_text, "-r", "499");
	check(child__wait_message(child, "first sample", 30), "no first sample: %s", child__err(child));
	pause_for(0.3);
	kill(child->pid, SIGUSR1);
	check(child__wait_message(child, " printed", 30), "no snapshot: %s", child__err(child));
	check(strstr(child__out(child), "self%") && strstr(child__out(child), "spin.py"), "no table: %s",
	      child__out(child));
	kill(child->pid, SIGINT);
	check(child__wait(child, 30) && child__code(child) == WRITTEN, "%s", child__err(child));
}

/* Ctrl-C while it still reads: nothing half made is left. */
LIVE_TEST(record, report_is_stopped)
{
	const char *folder = scratch_folder(""), *fifo = path_of(folder, "fifo");
	const char *words[] = {"report", fifo, "-o", path_of(folder, "x.html"), NULL};
	struct child *child;
	glob_t found;
	int begun = 1;

	check(!mkfifo(fifo, 0600), "mkfifo");
	child = profiler__start(words);
	for (int i = 0; i < 300 && begun; i++) {
		begun = glob(path_of(folder, ".x.html.*"), 0, NULL, &found);
		if (begun)
			pause_for(0.1);
		else
			globfree(&found);
	}
	check(!begun, "it does not begin: %s", child__err(child));
	kill(child->pid, SIGINT);
	check(child__wait(child, 30) && child__code(child) == 128 + SIGINT, "it goes on");
	check(glob(path_of(folder, ".x*"), 0, NULL, &found) == GLOB_NOMATCH, "a file is left");
}

LIVE_TEST(record, refused)
{
	const char *folder = scratch_folder(""), *file = path_of(folder, "x.pbp");
	struct child *reader;
	struct run *run;

	write_file(file, "no recording, but a text that is longer than its head");
	run = report_of(file, "-q");
	check(run->code == FAILED && strstr(run->err, "it is no recording"), "%d: %s", run->code, run->err);
	run = report_of(path_of(folder, "missing.pbp"), "-q");
	check(run->code == FAILED && strstr(run->err, "No such file"), "%d: %s", run->code, run->err);
	run = report_of(folder, "-q");
	check(run->code == FAILED && strstr(run->err, "directory"), "%d: %s", run->code, run->err);
	start_program("spin.py");
	run = profiler_run("-p", pid_text, "-d", "0.3", "-q", "-o", "/dev/full", "--format", "pbp");
	check(run->code == FAILED && strstr(run->err, "No space"), "%d: %s", run->code, run->err);
	/* A reader that goes away has but a part. */
	check(!mkfifo(path_of(folder, "fifo"), 0600), "mkfifo");
	reader = child__start(&(struct child_config){
		.argv = (const char *const[]){"head", "-c", "8", path_of(folder, "fifo"), NULL}});
	run = profiler_run("-p", pid_text, "-d", "2.2", "-q", "-o", path_of(folder, "fifo"), "--format", "pbp");
	check(child__wait(reader, 30), "head does not end");
	check(run->code == FAILED && strstr(run->err, "Broken pipe") && strstr(run->err, "wrote a part of "), "%d: %s",
	      run->code, run->err);
}
