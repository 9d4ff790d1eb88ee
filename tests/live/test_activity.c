/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads are at, and what they are called: collections of garbage, exceptions, names. The program and
 * what is right of it: tests/targets/activity.py.
 */
#include "harness.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* As it stands in a collapsed file: what would end a frame or disturb a terminal is escaped. */
#define HOSTILE "wörker\\x3b1 \\x1b[31m\\x0a"

#define TRIES 3

static const char *engine_arg(void)
{
	return by_readv() ? "--engine=readv" : "--engine=bpf";
}

static const char *number(pid_t pid)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return text;
}

static bool is_of(const struct stack *stack, const char *thread)
{
	return stack->len && !strcmp(stack->frames[0].file, thread);
}

/* Weight of the stacks of a thread that end so; "": of all. */
static uint64_t of_thread(const struct run *run, const char *thread, const char *names)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < run->stacks.len; i++)
		if (is_of(&run->stacks.items[i], thread) &&
		    (!*names || stack__ends_in(&run->stacks.items[i], shown(names))))
			weight += run->stacks.items[i].weight;
	return weight;
}

static const struct stack_frame *frame_before(const struct stack *stack, const char *name)
{
	for (size_t i = 1; i < stack->len; i++)
		if (!strcmp(stack->frames[i].name, name))
			return &stack->frames[i - 1];
	return NULL;
}

static void check_collections(const struct run *run, const struct python *python)
{
	uint64_t all = stacks__with(&run->stacks, "[GC]"), wrong = 0;
	bool has_frame = python->minor >= 15;
	double said = number_before(run->err, "% collecting garbage");

	check(of_thread(run, "MainThread", "run;collect;[GC]") > 0, "no collection");
	/* From outside, a thread that waits for a CPU after that to take the GIL looks as if it ran. */
	check(of_thread(run, "MainThread", "run;collect;[GC]") >
		      (by_readv() ? 2 : 9) * of_thread(run, "MainThread", "run;collect"),
	      "collect without [GC]");
	check(of_thread(run, "MainThread",
			has_frame ? "run;drop;[GC];Garbage.__del__;finalize"
				  : "drop;Garbage.__del__;finalize;[GC]") > 0 ||
		      python->free_threaded,
	      "no finalizer");
	check(fabs(said - percent(run, all)) < 0.1, "%.1f %% are said to be collecting, and %.2f %% are",
	      said, percent(run, all));
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		const struct stack_frame *before = frame_before(stack, "[GC]");

		if (!before)
			continue;
		check(stack__count(stack, "[GC]") == 1, "%s", stack__text(stack));
		check(!has_frame || !strcmp(before->name, "collect") || !strcmp(before->name, "drop"), "%s",
		      stack__text(stack));
		if (!stack__count(stack, "collect") && !stack__count(stack, "drop"))
			wrong += stack->weight;
	}
	/* To 3.14 the others have some microseconds of the finalizer's time all the same. */
	check(wrong <= (has_frame || python->free_threaded ? 0 : 0.01 * run->stacks.total),
	      "%.2f %% collect where they do not", percent(run, wrong));
}

static void check_names(const struct run *run, const struct python *python)
{
	char long_name[801];
	uint64_t named = 0;

	for (size_t i = 0; i < 200; i++)
		long_name[i] = "long"[i % 4];
	long_name[200] = '\0';
	check(of_thread(run, HOSTILE, "Thread.run;spin") > 0,
	      "no thread with the name that is hard to print");
	check(of_thread(run, long_name, "Thread.run;spin") > 0, "no thread with the long name");
	check(of_thread(run, "before", "Thread.run;spin") > 0, "no thread with the plain name");
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		bool main = stack__count(stack, "run") && stack->len > 1 &&
			    !strcmp(stack->frames[1].name, "<module>");

		check(!main || is_of(stack, "MainThread"), "%s is of %s", stack__text(stack),
		      stack->frames[0].file);
		named += is_of(stack, "MainThread") || is_of(stack, HOSTILE) || is_of(stack, long_name) ||
					 is_of(stack, "before")
				 ? stack->weight
				 : 0;
	}
	check(named == run->stacks.total, "%.2f %% have a name", percent(run, named));
}

static bool is_handling(const struct stack *stack)
{
	return stack__count(stack, "handle") || stack__count(stack, "handle_around");
}

/* Two profilers at a time, which do not disturb each other. */
EACH_PYTHON(activity, is_told)
{
	struct target *target = start(python, "activity.py");
	char file[CHILD_PATH];
	struct child *child;
	struct run *run;
	uint64_t handled, generated;

	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	child = profiler("-p", number(target->pid), "-d", "0.8", "-r", "1999", "-o", file, "--mode",
			 "exception", engine_arg());
	run = profile(target, .args = {"-t"}, .collections = true, .seconds = 0.6, .rate = "1999", .min_samples = 300);
	check_collections(run, python);
	check_names(run, python);

	run = profiler__finish(child, file);
	check_written(run);
	handled = stacks__ending_in(&run->stacks, "run;handle;handled");
	generated = stacks__ending_in(&run->stacks, "run;handle_around;generated");
	check(percent(run, handled) > 25 && percent(run, generated) > 25,
	      "handled has %.2f %%, generated %.2f %%", percent(run, handled), percent(run, generated));
	check_each_stack(run, is_handling, "one without an exception");
	check(number_before(run->err, "% handling one") > 90, "%s", run->err);
	check(strstr(run->err, " of threads that neither handled nor raised an exception\n"), "%s", run->err);
}

/* --- one version is enough --- */

static struct run *profile_threads(struct target *target, const char *a, const char *b, const char *c,
				   const char *d)
{
	return profile(target, .args = {"-t", a, b, c, d}, .seconds = 0.4, .min_samples = 20);
}

/* What is kept and what is left out is all that was taken. */
static void check_kept(const struct run *run)
{
	const char *line = strstr(run->err, "  kept       ");
	double kept = 0, all = 0, left = 0;

	check(line && sscanf(line,
			     "  kept %lf of %lf samples (%*f%%); left out: %lf of threads that were not "
			     "asked",
			     &kept, &all, &left) == 3,
	      "%s", run->err);
	check(kept == run->report.samples && kept + left == all && left > 0, "%.0f and %.0f of %.0f", kept,
	      left, all);
	/* It is the process's CPU time, all the same. */
	check(run->report.given > 0.7 * 999, "%.1f Hz given", run->report.given);
}

LIVE_TEST(activity, of_some_threads)
{
	struct target *target = start(pick("3.13", "debian"), "activity.py");
	struct run *run = profile_threads(target, "--thread", "bef*", "--thread", "wö[rst]ker;*");

	check(percent(run, of_thread(run, "before", "") + of_thread(run, HOSTILE, "")) == 100,
	      "others are there");
	check(of_thread(run, "before", "") && of_thread(run, HOSTILE, ""), "one is missing");
	check_kept(run);
	run = profile_threads(target, "--main-thread", NULL, NULL, NULL);
	check(of_thread(run, "MainThread", "") == run->stacks.total, "others are there");
	check_kept(run);
	run = profile_threads(target, "--thread", number(target->pid), "--no-gc", NULL);
	check(of_thread(run, "MainThread", "") == run->stacks.total, "others are there");
	check(!stacks__with(&run->stacks, "[GC]") && stacks__ending_in(&run->stacks, "run;collect"),
	      "[GC] is there");
	run = profiler_run("-p", number(target->pid), "-d", "0.3", "--thread", "nobody", engine_arg());
	check(run->code == 1 && strstr(run->err, "no samples that were asked for: of "), "exit code %d: %s",
	      run->code, run->err);
}

/* Waits are told of by thread, too, and the time of others is left out. */
LIVE_TEST(activity, of_some_threads_by_the_clock)
{
	struct target *target = start(pick("3.14", "debian"), "activity.py");
	char file[CHILD_PATH];
	struct run *run;
	double seconds, left_out;

	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	/* On a busy machine the profiler may not be run for a while at the start or the end. */
	for (int i = 0; i < TRIES; i++) {
		run = profiler__finish(profiler("-p", number(target->pid), "-d", "0.5", "-t", "--thread",
						"before", "--mode", "wall", "-o", file, engine_arg()),
				       file);
		seconds = run->stacks.total / 1e6;
		left_out = number_before(run->err, " s\n  time ");
		if (fabs(seconds - run->report.wall_s) < 0.06 && fabs(left_out - 3 * seconds) < 0.2)
			break;
	}
	/* Of short waits that were not walked it may not be known whose they were. */
	check(run->code == 0 && percent(run, of_thread(run, "before", "")) > 99, "others are there: %s",
	      run->err);
	check(fabs(seconds - run->report.wall_s) < (by_readv() ? 0.15 : 0.06), "%.3f of %.3f s", seconds,
	      run->report.wall_s);
	check(fabs(left_out - 3 * seconds) < (by_readv() ? 0.45 : 0.2),
	      "%.3f s are left out, and %.3f are not", left_out, seconds);
}

LIVE_TEST(activity, renamed_meanwhile)
{
	struct target *target = start(pick("3.13", "debian"), "activity.py");
	char file[CHILD_PATH];
	struct child *child;
	struct run *run;

	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	child = profiler("-p", number(target->pid), "-r", "999", "-t", "-v", "-o", file, engine_arg());
	check(child__wait_message(child, "first sample", 60), "no sample: %s", child__err(child));
	pause_for(0.5);
	kill(target->pid, SIGUSR1);
	pause_for(1);
	kill(child->pid, SIGINT);
	run = profiler__finish(child, file);
	check_written(run);
	check(of_thread(run, "before", "") && of_thread(run, "after", ""),
	      "before has %.0f, after %.0f samples", (double)of_thread(run, "before", ""),
	      (double)of_thread(run, "after", ""));
}
