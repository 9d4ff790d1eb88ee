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
	double holding = number_before(run->err, "% holding the GIL");

	check(percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;crunch"))) > 99,
	      "crunch has %.2f %%",
	      percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;crunch"))));
	check(holding >= 0 && holding < 5, "%.1f %% hold the GIL", holding);
	check(run->report.samples + run->report.lost > 0.9 * 999 * run->report.cpu_s,
	      "%.0f samples of %.3f s of CPU at 999 Hz", run->report.samples, run->report.cpu_s);
}

/* By thread: each of the four has its share, and together they are all of one CPU. */
EACH_PYTHON(threads, that_want_the_gil)
{
	struct run *run = profile(start(python, "gil.py"), .seconds = 1.5, .rate = "1999",
				  .min_samples = 1000, .args = {"-t"});
	const char *seen[8];
	double shares[8] = {0};
	size_t threads = 0;

	check(percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;spin"))) > 97,
	      "spin has %.2f %%", percent(run, stacks__ending_in(&run->stacks, shown("Thread.run;spin"))));
	for (size_t i = 0; i < run->stacks.len; i++) {
		const char *name = run->stacks.items[i].frames[0].name;
		size_t at = 0;

		if (strcmp(stack__leaf(&run->stacks.items[i])->name, "spin"))
			continue;
		while (at < threads && strcmp(seen[at], name))
			at++;
		if (at == threads && threads < 8)
			seen[threads++] = name;
		if (at < 8)
			shares[at] += percent(run, run->stacks.items[i].weight);
	}
	check(threads == 4, "%zu threads have samples", threads);
	for (size_t i = 0; i < threads; i++)
		check(shares[i] > 10 && shares[i] < 45, "%s has %.2f %%", seen[i], shares[i]);
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
	check(run->report.without_python < 0.2 * run->report.samples, "%.0f of %.0f have no Python frames",
	      run->report.without_python, run->report.samples);
}

static void check_halves(struct run *run, const char *born)
{
	double born_share = stacks__with(&run->stacks, born),
	       main_share = stacks__with(&run->stacks, "main_part");
	double percent_born = 100 * born_share / (born_share + main_share);
	double points = by_readv() ? 17 : 7; /* from outside a thread has to be found first */

	check(fabs(percent_born - 50) < points, "%s has %.1f %% of the two", born, percent_born);
	check(percent(run, born_share + main_share) > 80, "%s and main_part have %.1f %%", born,
	      percent(run, born_share + main_share));
}

/* Threads that are started during the run, and live for less than a tick, have their share. */
EACH_KIND(threads, that_take_turns_with_main)
{
	check_halves(
		profile(start(python, "born.py", .args = {"turns", "3"}), .rate = "199",
			.min_samples = by_readv() ? 300 : 600),
		"job");
}

EACH_KIND(threads, started_during_the_run)
{
	check_halves(
		profile(start(python, "born.py", .args = {"worker"}), .rate = "499",
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
	check(fabs(100.0 * red / (red + blue) - 50) < 6, "red has %.2f %% of the two",
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
}
