/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every way a run can end: what was sampled is written, the file is whole, the report says what happened, and
 * the target goes on as before.
 */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_S 30 /* for the first sample, on a busy machine */

/* A run without a duration, or with a long one, that is under way. */
struct recording {
	struct target *target;
	struct child *profiler;
	char file[CHILD_PATH], pid[16];
};

static struct recording record(struct target *target, const char *option, const char *value)
{
	struct recording recording = {.target = target};

	snprintf(recording.file, sizeof(recording.file), "%s/x.collapsed", scratch_folder(""));
	snprintf(recording.pid, sizeof(recording.pid), "%d", target->pid);
	recording.profiler =
		profiler("-v", "-r", "999", "-p", recording.pid, "-o", recording.file, option, value);
	check(child__wait_message(recording.profiler, "first sample", FIRST_S), "no first sample: %s",
	      child__err(recording.profiler));
	pause_for(0.2);
	return recording;
}

static struct run *finish(struct recording *recording, const char *end)
{
	struct run *run = profiler__finish(recording->profiler, recording->file);

	check_written(run);
	check(strstr(run->err, end), "the report does not say \"%s\"", end);
	return run;
}

/* -1: it is gone. */
static double cpu_seconds(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return -1;
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Until it has used so much more of CPU time; false: it has not in some 10 s. */
static bool works_for(pid_t pid, double seconds)
{
	double before = cpu_seconds(pid);

	for (int i = 0; i < 400 && before >= 0; i++) {
		double now = cpu_seconds(pid);

		if (now < 0 || now - before > seconds)
			return now >= 0;
		pause_for(0.025);
	}
	return false;
}

static bool goes_on(pid_t pid)
{
	return works_for(pid, 0) && !strchr("Tt", process_state(pid));
}

EACH_KIND(endings, signals)
{
	static const struct {
		int signal;
		const char *end;
	} endings[] = {{SIGINT, "stopped by Ctrl-C"},
		       {SIGTERM, "stopped by SIGTERM"},
		       {SIGHUP, "stopped by SIGHUP"}};
	struct target *target = start(python, "spin.py");

	for (size_t i = 0; i < 3; i++) {
		struct recording recording = record(target, NULL, NULL);
		struct run *run;

		kill(recording.profiler->pid, endings[i].signal);
		run = finish(&recording, endings[i].end);
		check_share(run, "<module>;outer;middle;spin", 100, 1);
		check(goes_on(target->pid), "the target does not go on");
	}
}

EACH_KIND(endings, snapshot)
{
	struct recording recording = record(start(python, "spin.py"), NULL, NULL);
	struct stacks snapshot;
	const char *fault;
	struct run *run;

	kill(recording.profiler->pid, SIGUSR1);
	check(child__wait_message(recording.profiler, "snapshot of ", FIRST_S), "no snapshot: %s",
	      child__err(recording.profiler));
	fault = stacks__parse(&snapshot, recording.file);
	check(!fault, "the snapshot %s", fault);
	pause_for(0.2);
	check(process_state(recording.profiler->pid), "the profiler ended");
	kill(recording.profiler->pid, SIGINT);
	run = finish(&recording, "stopped by Ctrl-C");
	check(number_before(run->err, " samples written") == snapshot.total, "the snapshot has %llu samples",
	      (unsigned long long)snapshot.total);
	check(snapshot.total && snapshot.total <= run->stacks.total, "%llu samples, then %llu",
	      (unsigned long long)snapshot.total, (unsigned long long)run->stacks.total);
}

EACH_KIND(endings, target_ends)
{
	struct recording recording = record(start(python, "shares.py", .args = {"1.5"}), NULL, NULL);
	struct run *run = finish(&recording, "the process has ended");

	check(percent(run, stacks__with(&run->stacks, "run")) > 80, "run has %.2f %%",
	      percent(run, stacks__with(&run->stacks, "run")));
}

EACH_KIND(endings, target_is_killed)
{
	struct recording recording = record(start(python, "spin.py"), "-d", "60");

	kill(recording.target->pid, SIGKILL);
	finish(&recording, "the process has ended");
}

static const char after_exec[] = "<module>;after";

EACH_PYTHON(endings, target_execs_into_python)
{
	struct recording recording = record(start(python, "execs.py", .args = {"100"}), "-d", "60");
	struct run *run;

	works_for(recording.target->pid, 0.1);
	kill(recording.target->pid, SIGUSR1);
	check(child__wait_line(recording.target->child, "after", FIRST_S), "the target did not exec: %s",
	      child__err(recording.target->child));
	/* Under the same pid, other addresses; the profiler finds the new runtime by itself. */
	works_for(recording.target->pid, 0.3);
	kill(recording.profiler->pid, SIGINT);
	run = finish(&recording, "became another program 1 time");
	check(percent(run, stacks__exactly(&run->stacks, "<module>;before")) > 5, "before has %.2f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>;before")));
	check(percent(run, stacks__exactly(&run->stacks, after_exec)) > 5, "after has %.2f %%",
	      percent(run, stacks__exactly(&run->stacks, after_exec)));
}

EACH_PYTHON(endings, target_execs_into_another_program)
{
	static const char text[] = "import os, signal\n"
				   "told = []\n"
				   "signal.signal(signal.SIGUSR1, lambda *_: told.append(True))\n"
				   "print('ready', flush=True)\n"
				   "while not told: sum(range(200))\n"
				   "os.execv('/bin/sh', ['sh', '-c', 'echo after; while :; do :; done'])\n";
	struct target *target = start(python, "execsh.py", .text = text);
	struct recording recording = record(target, "-d", "60");
	struct run *run;

	works_for(target->pid, 0.1);
	kill(target->pid, SIGUSR1);
	check(child__wait_line(target->child, "after", FIRST_S), "the target did not exec");
	works_for(target->pid, 0.3);
	kill(recording.profiler->pid, SIGINT);
	run = finish(&recording, "became another program 1 time");
	check(stacks__ending_in(&run->stacks, "<module>"), "no sample of the Python before");
	check(run->report.without_python > 0, "the shell's samples are not counted");
	check(goes_on(target->pid), "the target does not go on");
}

/* The wall clock decides, however many threads there are. */
EACH_KIND(endings, duration_with_400_threads)
{
	struct target *target = start(python, "fixedwork.py", .args = {"--threads", "400"});
	double begin = seconds_now(), took;
	struct run *run = profile(target, .min_samples = 50);

	took = seconds_now() - begin;
	check(run->report.wall_s > 0.9, "the run took %.2f s", run->report.wall_s);
	check(took < 15, "%.1f s for a run of one second", took);
	check(strstr(run->err, "duration over"), "the report does not say so");
	check(stacks__ending_in(&run->stacks, "descend;work"), "no sample in work");
}

/* The profiler dies: the target does not notice, and can be profiled again. */
EACH_KIND(endings, profiler_is_killed)
{
	struct target *target = start(python, "spin.py");
	struct recording recording = record(target, NULL, NULL);

	kill(recording.profiler->pid, SIGKILL);
	check(child__wait(recording.profiler, 10), "the profiler is not killed");
	check(goes_on(target->pid), "the target does not go on");
	check(access(recording.file, F_OK), "a half-made profile is left");
	profile(target, .seconds = 0.3, .min_samples = 20);
}

/* Nothing used the CPU, so there is nothing to write, and the reason is said. */
EACH_KIND(endings, idle_target)
{
	struct target *target = start(python, "idle.py");
	char pid[16], file[CHILD_PATH];
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	for (int stopped = 0; stopped < 2; stopped++) {
		if (stopped)
			kill(target->pid, SIGSTOP);
		run = profiler__finish(profiler("-p", pid, "-d", "0.3", "-o", file), file);
		check(run->code == 1, "exit code %d", run->code);
		check(strstr(run->err, "no samples") && strstr(run->err, "of CPU"), "it says no reason");
		check(strstr(run->err, stopped ? "stopped by a signal" : "sleeping"),
		      "it does not say what the process does");
		check(access(file, F_OK), "an empty file is left");
		check(!run->out[0], "stdout has \"%s\"", run->out);
	}
}

/* Ctrl-C while the profile is being written into a pipe that nobody reads: the second one is the end. */
LIVE_TEST(endings, second_interrupt)
{
	struct target *target = start(pick("3.15", "debian"), "deep.py", .args = {"9000"});
	char pid[16], pipe[CHILD_PATH];
	struct child *child;
	int reader;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(pipe, sizeof(pipe), "%s/pipe", scratch_folder(""));
	check(!mkfifo(pipe, 0600), "mkfifo");
	reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	child = profiler("-v", "-p", pid, "-r", "999", "-o", pipe, "--format", "collapsed");
	check(child__wait_message(child, "first sample", FIRST_S), "no first sample: %s", child__err(child));
	pause_for(0.3);
	kill(child->pid, SIGINT);
	check(!child__wait(child, 2), "it ended before the profile was read: %s", child__err(child));
	kill(child->pid, SIGINT);
	check(child__wait(child, 10), "the second Ctrl-C is not the end");
	check(child__code(child) == 128 + SIGINT, "it ended with %d", child__code(child));
	close(reader);
}
