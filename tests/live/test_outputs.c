/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a profile cannot go: full disks, closed pipes, paths that cannot be written. Said in words and by the
 * exit code; what was there before stays.
 */
#include "harness.h"

#include "base/util.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2 };

static const struct python *newest(void)
{
	return pick("3.15", "debian");
}

static char pid_text[16];

static struct target *start_spin(void)
{
	struct target *target = start(newest(), "spin.py");

	snprintf(pid_text, sizeof(pid_text), "%d", target->pid);
	return target;
}

/* One line, before anything was sampled. */
static void check_path_refused(const struct run *run, const char *path, const char *why)
{
	check(run->code == FAILED, "%s: exit code %d", path, run->code);
	check(strstr(run->err, path) && strstr(run->err, why), "%s, %s are not in: %s", path, why, run->err);
	check(!strstr(run->err, " taken"), "it was sampled all the same: %s", run->err);
}

LIVE_TEST(outputs, paths)
{
	const char *folder = scratch_folder("");
	char path[CHILD_PATH];

	start_spin();
	snprintf(path, sizeof(path), "%s/missing/x.collapsed", folder);
	check_path_refused(profiler_run("-p", pid_text, "-d", "5", "-o", path), path, "No such file");
	snprintf(path, sizeof(path), "%s/folder.collapsed", folder);
	check(!mkdir(path, 0755), "mkdir");
	check_path_refused(profiler_run("-p", pid_text, "-d", "5", "-o", path), path, "directory");
	check_path_refused(profiler_run("-p", pid_text, "-d", "5", "-o", "/proc/x.collapsed"), "/proc/x.collapsed",
		      "");
	snprintf(path, sizeof(path), "%s/file", folder);
	write_file(path, "");
	strcat(path, "/x.collapsed");
	check_path_refused(profiler_run("-p", pid_text, "-d", "5", "-o", path), path, "Not a directory");
}

static bool is_there(const char *folder, const char *pattern)
{
	char path[CHILD_PATH];
	glob_t found;
	bool any;

	snprintf(path, sizeof(path), "%s/%s", folder, pattern);
	any = !glob(path, GLOB_PERIOD, NULL, &found);
	if (any)
		globfree(&found);
	return any;
}

/* The second one would take the place of the first. */
LIVE_TEST(outputs, named_twice)
{
	static const char *const names[] = {"x.pbp", "x.gecko.json", "x.json", "report"};
	const char *folder = scratch_folder("");
	char one[CHILD_PATH], other[CHILD_PATH];

	start_spin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(one, sizeof(one), "%s/%s", folder, names[i]);
		snprintf(other, sizeof(other), "%s/./%s", folder, names[i]);
		check_path_refused(profiler_run("-p", pid_text, "-d", "5", "-o", one,
						strcmp(names[i], "report") ? "-o" : "--report", other),
				   other, "another output");
	}
	check(!is_there(folder, "*x*") && !is_there(folder, "*report*"), "a file is left");
}

/* Ctrl-C while a FIFO has no reader yet: nothing half made is left. */
LIVE_TEST(outputs, stopped_at_a_fifo)
{
	const char *folder = scratch_folder("");
	char page[CHILD_PATH], fifo[CHILD_PATH];
	struct child *child;

	start_spin();
	snprintf(page, sizeof(page), "%s/x.html", folder);
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	check(!mkfifo(fifo, 0600), "mkfifo");
	child = profiler("-p", pid_text, "-o", page, "-o", fifo);
	for (int i = 0; i < 300 && !is_there(folder, ".x.html.*"); i++)
		pause_for(0.1);
	check(is_there(folder, ".x.html.*"), "it does not begin: %s", child__err(child));
	kill(child->pid, SIGUSR1); /* there is nothing yet */
	pause_for(0.1);
	kill(child->pid, SIGINT);
	check(child__wait(child, 30) && child__code(child) == 128 + SIGINT, "it goes on, or ended before");
	check(!is_there(folder, "*x.html*"), "a file is left");
}

LIVE_TEST(outputs, several_and_stdout)
{
	const char *folder = scratch_folder("");
	char one[CHILD_PATH], two[CHILD_PATH];
	struct stacks stacks;
	struct run *run;
	const char *fault;

	start_spin();
	snprintf(one, sizeof(one), "%s/x.folded", folder);
	snprintf(two, sizeof(two), "%s/x.txt", folder);
	run = profiler__finish(profiler("-p", pid_text, "-d", "0.5", "-r", "999", "-q", "-o", one, "-o", "-",
					"--format", "collapsed", "-o", two),
			       one);
	check_written(run);
	fault = stacks__parse(&stacks, two);
	check(!fault && stacks.total == run->stacks.total, "%s %s: %llu samples", two, fault ?: "differs",
	      (unsigned long long)stacks.total);
	fault = stacks__parse(&stacks, run->child->out);
	check(!fault && stacks.total == run->stacks.total, "stdout %s: %llu samples", fault ?: "differs",
	      (unsigned long long)stacks.total);
}

LIVE_TEST(outputs, full_device)
{
	static const char *const words[] = {"--help", "--version", "doctor"};
	struct run *run;

	start_spin();
	run = profiler_run("-p", pid_text, "-d", "0.3", "-r", "999", "-q", "-o", "/dev/full", "--format",
			   "collapsed");
	check(run->code == FAILED, "exit code %d", run->code);
	check(strstr(run->err, "/dev/full") && strstr(run->err, "No space"), "it does not say so: %s",
	      run->err);
	run = profiler__finish(
		child__start(&(struct child_config){
			.argv = (const char *const[]){profiler_path(), "-p", pid_text, "-d", "0.3", "-r",
						      "999", NULL},
			.out = "/dev/full"}),
		NULL);
	check(run->code == FAILED && strstr(run->err, "No space"), "stdout: exit code %d: %s", run->code,
	      run->err);
	check(run->report.samples > 0, "no report: %s", run->err);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		run = profiler__finish(
			child__start(&(struct child_config){
				.argv = (const char *const[]){profiler_path(), words[i], NULL},
				.out = "/dev/full"}),
			NULL);
		check(run->code == FAILED && strstr(run->err, "No space"), "%s: exit code %d: %s", words[i],
		      run->code, run->err);
	}
}

LIVE_TEST(outputs, binary_on_a_terminal)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct run *run;

	check(master >= 0 && !grantpt(master) && !unlockpt(master), "no terminal");
	run = profiler__finish(
		child__start(&(struct child_config){
			.argv = (const char *const[]){profiler_path(), "-p", "1", "-o", "-", "--format",
						      "pprof", NULL},
			.out = ptsname(master)}),
		NULL);
	check(run->code == FAILED && strstr(run->err, "a terminal shows nothing else"), "exit code %d: %s",
	      run->code, run->err);
	close(master);
}

/* A file system of 64 KiB; a profile that is larger. The one that was there before stays as it was. */
LIVE_TEST(outputs, full_disk)
{
	struct target *target = start(newest(), "deep.py", .args = {"5000"});
	static const char script[] =
		"cd \"$1\" && mount -t tmpfs -o size=64k none . && cd \"$1\" && echo before >old.collapsed "
		"&&\n"
		"\"$2\" -p \"$3\" -d 0.5 -r 499 -q -o new.collapsed -o old.collapsed; echo \"code $?\"\n"
		"ls -A; echo \"old: $(cat old.collapsed)\"";
	struct child *child;

	snprintf(pid_text, sizeof(pid_text), "%d", target->pid);
	child = child__start(&(struct child_config){
		.argv = (const char *const[]){"unshare", "-m", "sh", "-c", script, "sh", scratch_folder(""),
					      profiler_path(), pid_text, NULL}});
	check(child__wait(child, 60), "it does not end");
	check(!strcmp(child__out(child), "code 1\nold.collapsed\nold: before\n"), "after it: %s",
	      child__out(child));
	check(strstr(child__err(child), "No space left") && strstr(child__err(child), "new.collapsed"),
	      "it does not say so: %s", child__err(child));
}

/* The reader of stdout has seen enough: no failure, no noise. And one that is gone from the start. */
LIVE_TEST(outputs, closed_pipe)
{
	for (int early = 0; early < 2; early++) {
		struct target *target = start(newest(), "deep.py", .args = {"5000"});
		struct child_config config = {
			.argv = (const char *const[]){profiler_path(), "-p", pid_text, "-d", "0.5", "-r",
						      "499", "-o", "-", "--format", "collapsed", NULL}};
		char head[64];
		int fds[2];
		struct child *child;
		struct run *run;

		snprintf(pid_text, sizeof(pid_text), "%d", target->pid);
		check(!pipe2(fds, O_CLOEXEC), "pipe");
		config.out_fd = fds[1];
		child = child__start(&config);
		close(fds[1]);
		if (!early)
			check(read(fds[0], head, sizeof(head)) > 0, "nothing came");
		close(fds[0]);
		run = profiler__finish(child, NULL);
		check(run->code == 0, "exit code %d", run->code);
		check(!strstr(run->err, "error") && !strstr(run->err, "ipe"), "it complains: %s", run->err);
		check(run->report.samples > 0, "no report: %s", run->err);
	}
}

LIVE_TEST(outputs, replaced_by_rename)
{
	const char *folder = scratch_folder("");
	char file[CHILD_PATH], link[CHILD_PATH];
	struct stat before, after;
	struct run *run;

	start_spin();
	snprintf(file, sizeof(file), "%s/x.collapsed", folder);
	snprintf(link, sizeof(link), "%s/link.collapsed", folder);
	write_file(file, "before\n");
	check(!chmod(file, 0640) && !chown(file, 65534, 65534) && !symlink("x.collapsed", link) &&
		      !stat(file, &before),
	      "setting up");
	run = profiler__finish(profiler("-p", pid_text, "-d", "0.5", "-r", "999", "-o", link), link);
	check_written(run);
	check(!lstat(link, &after) && S_ISLNK(after.st_mode), "the link is no link any more");
	check(!stat(file, &after) && after.st_mode == before.st_mode && after.st_uid == before.st_uid,
	      "owner or mode have changed");
	check(after.st_ino != before.st_ino, "the file was written in place");
}
