/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads: with and without the GIL, asleep, short-lived, of C code.
 */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Weight of the stacks that have both. */
static uint64_t with_both(const struct run *run, const char *a, const char *b)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < run->stacks.len; i++)
		if (stack__count(&run->stacks.items[i], a) && stack__count(&run->stacks.items[i], b))
			weight += run->stacks.items[i].weight;
	return weight;
}

/* A thread that runs C code with the GIL released keeps its Python stack. */
EACH_PYTHON(threads, c_code_without_the_gil)
{
	struct run *run = profile(start(python, "gilfree.py"), .seconds = 0.7);
	double holding = number_before(run->err, python->free_threaded ? "% attached" : "% holding the GIL");

	check(percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;crunch"))) > 99,
	      "crunch has %.2f %%",
	      percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;crunch"))));
	check(holding >= 0 && holding < 5, "%.1f %% hold the GIL", holding);
	check(run->report.samples + run->report.lost > 0.9 * 999 * run->report.cpu_s,
	      "%.0f samples of %.3f s of CPU at 999 Hz", run->report.samples, run->report.cpu_s);
}

EACH_PYTHON(threads, asleep)
{
	struct run *run = profile(start(python, "sleepy.py", .args = {"6"}), .seconds = 0.7);

	check_share(run, "<module>;busy", 100, 0.5);
	check(!with_both(run, shown("Thread.run"), "in_sleep") &&
		      !with_both(run, shown("Thread.run"), "in_queue"),
	      "a sleeping thread has samples");
}

/* Others come and go at full speed meanwhile. */
EACH_KIND(threads, that_start_and_end)
{
	struct run *run = profile(start(python, "threads_churn.py"), .rate = "1999", .min_samples = 500);
	double share = percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;long")));

	check(share > 20, "long has %.2f %%", share);
	/* Without a GIL they start and end at once, and that takes longer: each has a heap of its own to give back. */
	check(run->report.without_python < (python->free_threaded ? 0.5 : 0.2) * run->report.samples,
	      "%.0f of %.0f have no Python frames", run->report.without_python, run->report.samples);
}

static void check_halves(struct run *run, const char *born)
{
	double born_share = stacks__with(&run->stacks, born),
	       main_share = stacks__with(&run->stacks, "main_part");
	double percent_born = 100 * born_share / (born_share + main_share);
	double points = by_readv() ? 17 : 7; /* from outside a thread has to be found first */

	check(fabs(percent_born - 50) < points, "%s has %.1f %% of the two", born, percent_born);
	/* Threads that have been woken up and wait for a CPU look from outside as if they ran, in threading's code. */
	check(percent(run, born_share + main_share) > (by_readv() ? 45 : 80) - run->stolen,
	      "%s and main_part have %.1f %%, %.1f %% are stolen", born, percent(run, born_share + main_share),
	      run->stolen);
}

/* Threads that are started during the run, and live for less than a tick, have their share. */
EACH_KIND(threads, that_take_turns_with_main)
{
	struct run *run = profile(start(python, "born.py", .args = {"turns", "3"}), .rate = "199",
				  .min_samples = by_readv() ? 300 : 600);

	/*
	 * Without a GIL the main thread does not wait for it when it is woken up, but for a CPU, if there is none. From
	 * outside it looks as if it ran then.
	 */
	if (by_readv() && python->free_threaded)
		check(stacks__with(&run->stacks, "job") && stacks__with(&run->stacks, "main_part"),
		      "a function is missing");
	else
		check_halves(run, "job");
}

EACH_KIND(threads, started_during_the_run)
{
	check_halves(
		profile(start(python, "born.py", .args = {"worker"}), .rate = "499", .seconds = 2,
			.min_samples = by_readv() ? 700 : 1500),
		"worker");
}

EACH_KIND(threads, that_do_nothing)
{
	struct run *run = profile(start(python, "threads_churn.py", .args = {"empty"}), .rate = "4999",
				  .min_samples = 500);

	check(!stacks__with(&run->stacks, "long") && !stacks__with(&run->stacks, "red"),
	      "functions that do not run");
	check(stacks__with(&run->stacks, "run_one"), "the main thread has no samples");
}

/* One thread at a time, named as its function: ids and addresses of thread states are used again. */
EACH_KIND(threads, whose_ids_repeat)
{
	struct run *run = profile(start(python, "threads_churn.py", .args = {"redblue"}), .rate = "4999",
				  .seconds = 1.5, .min_samples = 1000, .args = {"-t"});
	uint64_t red = stacks__ending_in(&run->stacks, shown("Thread.run;red"));
	uint64_t blue = stacks__ending_in(&run->stacks, shown("Thread.run;blue"));

	/* From outside, many of these threads of some 0.2 ms are over before they are found. */
	check(percent(run, red + blue) > (by_readv() ? 10 : 30), "red and blue have %.2f %%", percent(run, red + blue));
	check(fabs(100.0 * red / (red + blue) - 50) < (by_readv() ? 10 : 6), "red has %.2f %% of the two",
	      100.0 * red / (red + blue));
	check(!with_both(run, "red", "blue") && !with_both(run, "red", "run_one") &&
		      !with_both(run, "blue", "run_one"),
	      "a stack of two threads");
}

EACH_KIND(threads, whose_names_are_ever_new)
{
	struct run *run = profile(start(python, "threads_churn.py", .args = {"jobs"}), .rate = "1999",
				  .seconds = 2, .min_samples = 500);

	check(stacks__ending_in(&run->stacks, shown("Thread.run;job")), "job was never seen");
	check(run->report.resident_mb < 48, "%.1f MB resident", run->report.resident_mb);
}

/* To the kernel the process is a zombie; its memory can be read through any other thread. */
EACH_KIND(threads, whose_main_thread_has_exited)
{
	struct run *run = profile(start(python, "mainexit.py"), .min_samples = 100);
	uint64_t work = stacks__ending_in(&run->stacks, shown("Thread.run;work;work.<locals>.inner"));

	check(percent(run, work) > 95, "the workers have %.2f %%", percent(run, work));
	check(strstr(run->err, "mainexit.py)"), "it is not told which program it is: %s", run->err);
}

/* --- without a GIL --- */

static void check_parallel(const struct run *run, double least_attached)
{
	double left = percent(run, stacks__with(&run->stacks, "left"));
	double right = percent(run, stacks__with(&run->stacks, "right"));
	double attached = number_before(run->err, "% attached");

	check(left + right > 98 && fabs(left - right) < 16, "left has %.2f %%, right %.2f %%", left, right);
	check(!with_both(run, "left", "right"), "a stack of two threads");
	check(percent(run, stacks__ending_in(&run->stacks, "work")) > 90, "work has %.2f %%",
	      percent(run, stacks__ending_in(&run->stacks, "work")));
	check(attached > least_attached - run->stolen && !strstr(run->err, "holding the GIL"),
	      "%.1f %% are attached, %.1f %% stolen", attached, run->stolen);
	check(fabs(run->report.given - 1999) < 120 + 19.99 * run->stolen, "%.1f Hz given, %.1f %% stolen",
	      run->report.given, run->stolen);
}

/* Samples go by CPU time, of two CPUs where they are to be had; PYTHON_GIL=1 gives such a build a GIL. */
EACH_OF(free_threaded_pythons, threads, in_parallel)
{
	static const char *const settings[] = {"PYTHON_GIL=0", "PYTHON_GIL=1"};

	for (int i = 0; i < 2; i++) {
		struct target *target = start(python, "parallel.py", .env = {settings[i]});
		struct run *run = profile(target, .rate = "1999", .min_samples = 1500);

		/* One that has just waited for the GIL may wait for a CPU next, which looks as if it ran. */
		check_parallel(run, i && by_readv() ? 60 : 97);
		if (i)
			check(run->report.cpu_s < 1.1 * run->report.wall_s, "one at a time: %.2f s of CPU in %.2f s",
			      run->report.cpu_s, run->report.wall_s);
		target__end(target);
	}
}

/* One profile of two processes, of which one has a GIL. */
EACH_OF(free_threaded_pythons, threads, with_and_without_the_gil)
{
	struct target *with = start(pick("3.13", "debian"), "spin.py"), *without = start(python, "parallel.py");
	char pids[32], file[CHILD_PATH];
	struct run *run;

	snprintf(pids, sizeof(pids), "%d,%d", with->pid, without->pid);
	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	run = profiler__finish(profiler("-p", pids, "-d", "1", "-r", "499", "-o", file,
					by_readv() ? "--engine=readv" : "--engine=bpf"),
			       file);
	check_written(run);
	check(strstr(run->err, "% holding the GIL or attached, "), "%s", run->err);
	check(stacks__with(&run->stacks, "middle") && stacks__with(&run->stacks, "left") &&
		      stacks__with(&run->stacks, "right"),
	      "a function is missing");
}
