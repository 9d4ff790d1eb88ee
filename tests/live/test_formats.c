/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What reads the files elsewhere reads them: pstats of every Python, json, pprof (tests/readers.py), and a
 * browser, in which the page is used as a person would (tests/viewer.py). Of profiles that no process made,
 * and of a process. What the files hold to the byte is the business of tests/unit/test_formats.c.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMATS 8
static const char *const formats[FORMATS] = {"flamegraph", "collapsed", "pstats", "speedscope",
					     "pprof",	   "jsonl",	"heatmap",   "gecko"};
static const char *const suffixes[FORMATS] = {"html",  "collapsed", "pstats",	   "json",
					      "pb.gz", "jsonl",	    "heatmap.html", "gecko.json"};

/* Runs a command to its end, which has to be a good one. */
#define run_well(...) run_command((const char *const[]){__VA_ARGS__, NULL})
static const char *run_command(const char *const *argv)
{
	struct child *child = child__start(&(struct child_config){.argv = argv});

	check(child__wait(child, 120), "%s %s does not end", argv[0], argv[1]);
	check(child__code(child) == 0, "%s %s: exit code %d\n%s%s", argv[0], argv[1], child__code(child),
	      child__out(child), child__err(child));
	return child__out(child);
}

/* FOLDER/NAME.SUFFIX of a profile of made.h. */
static void make(const char *folder, const char *name, const char *format, const char *suffix)
{
	char program[CHILD_PATH], path[CHILD_PATH];

	snprintf(program, sizeof(program), "%.*s/profiles",
		 (int)(strrchr(profiler_path(), '/') - profiler_path()), profiler_path());
	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
	run_well(program, name, format, path);
}

static void make_file(const char *folder, const char *name, size_t format)
{
	make(folder, name, formats[format], suffixes[format]);
}

/* All formats, in another folder, from FOLDER/NAME.pbp; what their readers say. */
static const char *report_and_read(const char *folder, const char *name)
{
	const char *again = scratch_folder("");
	char recording[CHILD_PATH], paths[FORMATS][CHILD_PATH];

	snprintf(recording, sizeof(recording), "%s/%s.pbp", folder, name);
	for (size_t format = 0; format < FORMATS; format++)
		snprintf(paths[format], CHILD_PATH, "%s/%s.%s", again, name, suffixes[format]);
	run_well(profiler_path(), "report", recording, "-q", "-o", paths[0], "-o", paths[1], "-o", paths[2],
		 "-o", paths[3], "-o", paths[4], "-o", paths[5], "-o", paths[6], "-o", paths[7]);
	return run_well("python3", "tests/readers.py", again, name);
}

/* Those of a recording, too. */
LIVE_TEST(formats, made_profiles)
{
	static const char *const names[] = {"tiny", "shop", "threads", "waits", "hostile", "3000"};
	const char *folder = scratch_folder(""), *want, *got;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (size_t format = 0; format < FORMATS; format++)
			make_file(folder, names[i], format);
		want = run_well("python3", "tests/readers.py", folder, names[i]);
		make(folder, names[i], "pbp", "pbp");
		got = report_and_read(folder, names[i]);
		check(!strcmp(want, got), "%s: %s, and of its recording %s", names[i], want, got);
	}
}

/* So many that some formats have to leave out the smallest ones: no sample goes by that. */
LIVE_TEST(formats, many_stacks)
{
	const char *folder = scratch_folder("");

	for (size_t format = 0; format < FORMATS; format++)
		make_file(folder, "100000", format);
	run_well("python3", "tests/readers.py", folder, "100000");
}

/* The words of its command, and then those. */
static struct child *start_python(const struct python *python, const char *const *words)
{
	static char command[sizeof(python->command)];
	const char *argv[24];
	size_t count = 0;

	strcpy(command, python->command);
	for (char *word = strtok(command, " "); word; word = strtok(NULL, " "))
		argv[count++] = word;
	while (*words)
		argv[count++] = *words++;
	argv[count] = NULL;
	return child__start(&(struct child_config){.argv = argv});
}

EACH_OF(supported_pythons, formats, pstats)
{
	const char *folder = scratch_folder(python->root), *inside = folder + strlen(python->root);
	char path[CHILD_PATH];
	struct child *child;

	snprintf(path, sizeof(path), "%s/readers.py", folder);
	copy_file("tests/readers.py", path);
	make_file(folder, "shop", 2);
	make_file(folder, "hostile", 2);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/readers.py", inside);
		child = start_python(
			python, (const char *const[]){path, inside, i ? "hostile" : "shop", "pstats", NULL});
		check(child__wait(child, 60) && child__code(child) == 0, "%s: %s%s", python->version,
		      child__out(child), child__err(child));
		check(!strcmp(child__out(child), i ? "pstats 176 1777777760\n" : "pstats 100 1010101000\n"),
		      "%s: %s", python->version, child__out(child));
	}
}

static char pid_text[16];

static struct target *start_threads(void)
{
	struct target *target = start(pick("3.15", "debian"), "parallel.py");

	snprintf(pid_text, sizeof(pid_text), "%d", target->pid);
	return target;
}

/* All formats of one run say the same, which is what the report says. */
LIVE_TEST(formats, of_a_process)
{
	const char *folder = scratch_folder(""), *word, *again;
	char paths[FORMATS][CHILD_PATH], recording[CHILD_PATH], want[64];
	struct run *run;

	start_threads();
	for (size_t format = 0; format < FORMATS; format++)
		snprintf(paths[format], CHILD_PATH, "%s/x.%s", folder, suffixes[format]);
	snprintf(recording, sizeof(recording), "%s/x.pbp", folder);
	run = profiler__finish(profiler("-p", pid_text, "-d", "1", "-r", "499", "-q", "-t", "--by", "process",
					"-o", paths[0], "-o", paths[1], "-o", paths[2], "-o", paths[3], "-o",
					paths[4], "-o", paths[5], "-o", paths[6], "-o", paths[7], "-o",
					recording),
			       paths[1]);
	check(run->code == 0 && run->report.samples > 50, "exit code %d, %g samples", run->code,
	      run->report.samples);
	snprintf(want, sizeof(want), "html %.0f ", run->report.samples);
	word = run_well("python3", "tests/readers.py", folder, "x");
	check(strstr(word, want), "not %s but %s", want, word);
	again = report_and_read(folder, "x");
	check(!strcmp(word, again), "%s, and of the recording %s", word, again);
	word = read_text(paths[5]);
	check(strstr(word, "\"engine\": \"bpf\", \"mode\": \"cpu\", \"end\": \"duration over\", \"start\": \"2") &&
		      strstr(word, "\"rate_hz\": 499"),
	      "metadata: %.600s", word);
	check(strstr(word, "\"kind\":\"process\"") && strstr(word, "\"kind\":\"thread\""), "no roots: %.600s",
	      word);
}

/* Waits have their lengths, in milliseconds, and categories. */
LIVE_TEST(formats, gecko_of_waits)
{
	const char *folder = scratch_folder(""), *said;
	char path[CHILD_PATH];
	struct run *run;
	double seconds;

	start_threads();
	snprintf(path, sizeof(path), "%s/x.gecko.json", folder);
	run = profiler_run("-p", pid_text, "-d", "0.7", "-q", "--mode", "offcpu", "-o", path);
	check(run->code == 0, "exit code %d", run->code);
	seconds = number_before(run->err, " s off the CPU");
	said = run_well("python3", "tests/readers.py", folder, "x", "gecko.json");
	said = strrchr(said, ' ');
	check(said && seconds > 0 && atof(said) / 1e9 > 0.99 * seconds && atof(said) / 1e9 < 1.01 * seconds,
	      "%s ns, and the report says %g s", said ?: "no", seconds);
	said = read_text(path);
	check(strstr(said, "\"[GIL]\"") && strstr(said, "\"[lock]\""), "no waits: %.2000s", said);
}

/* What goes on has no end yet; its file is whole all the same. What is settled now and then has its mode from the first. */
LIVE_TEST(formats, snapshot)
{
	const char *folder = scratch_folder(""), *text;
	char path[CHILD_PATH], samples[CHILD_PATH];
	struct child *child;

	start_threads();
	snprintf(path, sizeof(path), "%s/%%p.jsonl", folder);
	snprintf(samples, sizeof(samples), "%s/x.gecko.json", folder);
	child = profiler("-v", "-p", pid_text, "-r", "499", "-q", "--mode", "wall", "-o", path, "-o", samples);
	check(child__wait_message(child, "first sample", 30), "no first sample: %s", child__err(child));
	for (int i = 0; i < 300 && !strstr(child__err(child), "snapshot of "); i++) {
		kill(child->pid, SIGUSR1);
		pause_for(0.1);
	}
	snprintf(strstr(path, "%p"), sizeof(path) / 2, "%s.jsonl", pid_text);
	text = read_text(path);
	check(strstr(text, "\"end\": null") && !strstr(text, "\"duration_s\": 0.00") &&
		      strstr(text, "\"type\":\"end\""),
	      "%s: %.600s", path, text);
	/* What needs every sample is made of those that were taken so far. */
	text = read_text(samples);
	check(strstr(text, "\"end\": null"), "%s: %.600s", samples, text);
	run_well("python3", "tests/readers.py", folder, "x", "gecko.json");
	kill(child->pid, SIGINT);
	check(child__wait(child, 30) && child__code(child) == 0, "%s", child__err(child));
	text = read_text(path);
	check(strstr(text, "\"end\": \"stopped by Ctrl-C\""), "%s: %.600s", path, text);
	text = read_text(samples);
	check(strstr(text, "\"end\": \"stopped by Ctrl-C\""), "%s: %.600s", samples, text);
	run_well("python3", "tests/readers.py", folder, "x", "gecko.json");
}

/* Those that are texts may go to stdout, whose reader may have seen enough; none hides that a device is full.
 */
LIVE_TEST(formats, streams)
{
	struct run *run;

	start_threads();
	for (size_t format = 0; format < FORMATS; format++) {
		bool binary = !strcmp(formats[format], "pstats") || !strcmp(formats[format], "pprof");
		bool is_page = !strcmp(formats[format], "flamegraph") || !strcmp(formats[format], "heatmap");
		const char *begin = is_page ? "<!DOCTYPE html>" : "{";

		run = profiler_run("-p", pid_text, "-d", "0.2", "-r", "499", "--format", formats[format],
				   "-o", "-");
		check(run->code == 0, "%s: exit code %d", formats[format], run->code);
		check(binary || !strcmp(formats[format], "collapsed") ||
			      !strncmp(run->out, begin, strlen(begin)),
		      "%s: %.80s", formats[format], run->out);
		run = profiler_run("-p", pid_text, "-d", "0.2", "-r", "499", "-q", "--format",
				   formats[format], "-o", "/dev/full");
		check(run->code == 1 && strstr(run->err, "No space"), "%s: exit code %d: %s", formats[format],
		      run->code, run->err);
	}
}

/* --- the page --- */

/* Debian's, Fedora's, Google's. */
static const char *browser(void)
{
	static const char *const names[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser",
					    "/usr/bin/google-chrome"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!access(names[i], X_OK))
			return names[i];
	return NULL;
}

static void view(const char *test, size_t format, const char *const *names)
{
	const char *folder = scratch_folder("");

	if (!browser())
		cr_skip_test("no browser: scripts/setup --test installs one where Debian's packages are");
	for (; *names; names++)
		make_file(folder, *names, format);
	run_well("python3", "tests/viewer.py", browser(), folder, test);
}

/* A test of viewer.py and the profiles that it looks at. */
#define VIEWER_TEST(name, ...)                                                                               \
	LIVE_TEST(formats, page_##name)                                                                      \
	{                                                                                                    \
		view(#name, 0, (const char *const[]){__VA_ARGS__, NULL});                                    \
	}
/* ... of the heatmap. */
#define HEATMAP_TEST(name, ...)                                                                              \
	LIVE_TEST(formats, heatmap_##name)                                                                   \
	{                                                                                                    \
		view("heatmap_" #name, 6, (const char *const[]){__VA_ARGS__, NULL});                         \
	}

VIEWER_TEST(figures, "shop")
VIEWER_TEST(zoom, "shop")
VIEWER_TEST(search, "shop")
VIEWER_TEST(views, "shop")
VIEWER_TEST(lines, "shop")
VIEWER_TEST(addresses, "shop")
VIEWER_TEST(labels, "shop")
VIEWER_TEST(one, "tiny")
VIEWER_TEST(deep, "deep")
VIEWER_TEST(threads, "threads", "crowd")
VIEWER_TEST(waits, "waits", "shop")
VIEWER_TEST(hostile, "hostile")
VIEWER_TEST(themes, "hostile")
VIEWER_TEST(small, "shop", "hostile", "100000")
VIEWER_TEST(many, "100000")
VIEWER_TEST(pruned, "600000")

/* --- what changed --- */

static const char *made_recording(const char *folder, const char *name)
{
	static char paths[2][CHILD_PATH];
	static size_t next;
	char program[CHILD_PATH], *path = paths[next++ % 2];

	snprintf(program, sizeof(program), "%.*s/profiles",
		 (int)(strrchr(profiler_path(), '/') - profiler_path()), profiler_path());
	snprintf(path, CHILD_PATH, "%s/%s.pbp", folder, name);
	run_well(program, name, "pbp", path);
	return path;
}

LIVE_TEST(formats, diff)
{
	const char *folder = scratch_folder(""), *base = made_recording(folder, "shop");
	const char *new = made_recording(folder, "changed");
	char page[CHILD_PATH];
	struct run *run;

	snprintf(page, sizeof(page), "%s/diff.html", folder);
	run = profiler_run("diff", base, new, "-l", "5", "-o", page);
	check(run->code == 0, "exit code %d", run->code);
	check(strstr(run->out, "\n  +22.0   0.0%  22.0%     0.0   148.1   +22.0  new   cached      /srv/shop/cache.py:2\n"),
	      "no new function: %s", run->out);
	check(strstr(run->out, "\n  -13.0  13.0%   0.0%    87.5     0.0   -13.0  gone  price       /srv/shop/price.py:12\n"),
	      "none that is gone: %s", run->out);
	/* The same one of two versions of Python, where it lies in the new one. */
	check(strstr(run->out, "\n  -20.0  40.0%  20.0%   269.4   134.7   -20.0        raw_decode  "
			       "/usr/lib/python3.13/json/decoder.py:350\n"),
	      "not less: %s", run->out);
	check(strstr(run->out, "\n  +18.0  27.0%  45.0%   181.8   303.0   +18.0        total       /srv/shop/tree.py:5\n"),
	      "not more: %s", run->out);
	check(strstr(run->out, "... and "), "too many rows: %s", run->out);
	check(strstr(run->err, "base ") && strstr(run->err, "new ") && strstr(run->err, "wrote "), "%s", run->err);
	if (browser())
		run_well("python3", "tests/viewer.py", browser(), folder, "diff");
	check(profiler_run("diff", base, page)->code == 1, "a page is read as a recording");
	check(profiler_run("diff", base)->code == 2, "one recording");
}

/* What is of other time is no change of it; the engine and the rate are told. Formats of time say the same, too. */
LIVE_TEST(formats, diff_of_modes)
{
	static const char *const modes[] = {"cpu", "wall", "offcpu", "cpu", "gil"};
	const char *folder = scratch_folder("");
	char paths[5][CHILD_PATH];
	struct run *run;

	start_threads();
	for (int i = 0; i < 5; i++) {
		snprintf(paths[i], CHILD_PATH, "%s/%d.pbp", folder, i);
		run = profiler_run("-p", pid_text, "-d", "0.4", "-r", i == 3 ? "199" : "499", "-q", "--mode", modes[i],
				   "-o", paths[i]);
		check(run->code == 0, "exit code %d", run->code);
	}
	report_and_read(folder, "1");
	for (int i = 1; i < 3; i++) {
		run = profiler_run("diff", paths[0], paths[i]);
		check(run->code == 2 && strstr(run->err, "cannot be compared") && !run->out[0], "%s: exit code %d: %s%s",
		      modes[i], run->code, run->out, run->err);
	}
	check(profiler_run("diff", paths[1], paths[2])->code == 2, "all time and time off the CPU");
	run = profiler_run("diff", paths[2], paths[4]);
	check(run->code == 2 && strstr(run->err, "(offcpu, gil)"), "offcpu and gil: exit code %d: %s", run->code,
	      run->err);
	run = profiler_run("diff", paths[0], paths[3]);
	check(run->code == 0 && strstr(run->err, "they differ in rate: 499, 199 Hz"), "exit code %d: %s", run->code,
	      run->err);
	check(strstr(run->out, "file:line"), "no table: %s", run->out);
}

/* --- the heatmap's page --- */

HEATMAP_TEST(figures, "shop")
HEATMAP_TEST(hostile, "hostile")
HEATMAP_TEST(themes, "shop")
HEATMAP_TEST(small, "shop", "100000")
