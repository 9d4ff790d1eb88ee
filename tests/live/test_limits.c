/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the profiler takes, and what it does when it cannot keep up: memory, wake-ups, a full ring buffer,
 * several profilers at once, one after another.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Hardly a stack twice: memory stays within bounds, and no sample is left out of the profile. */
EACH_KIND(limits, stacks_without_end)
{
	struct run *run =
		profile(start(python, "wide.py"), .seconds = 2, .rate = "4999", .min_samples = 1000);

	check(run->report.resident_mb > 0 && run->report.resident_mb < 64, "%.1f MB resident",
	      run->report.resident_mb);
	check(percent(run, stacks__with(&run->stacks, "f0")) > 1, "f0 was never seen");
}

EACH_KIND(limits, three_in_a_row)
{
	struct target *target = start(python, "spin.py");

	for (int i = 0; i < 3; i++)
		check_share(profile(target, .seconds = 0.2, .min_samples = 20), "<module>;outer;middle;spin",
			    100, 1);
}

EACH_KIND(limits, two_at_once)
{
	struct target *target = start(python, "spin.py");
	const char *folder = scratch_folder("");
	char pid[16], file[2][CHILD_PATH];
	struct child *children[2];

	snprintf(pid, sizeof(pid), "%d", target->pid);
	for (int i = 0; i < 2; i++) {
		snprintf(file[i], sizeof(file[i]), "%s/%d.collapsed", folder, i);
		children[i] = profiler("-p", pid, "-d", "1", "-r", i ? "999" : "499", "-o", file[i]);
	}
	for (int i = 0; i < 2; i++) {
		struct run *run = profiler__finish(children[i], file[i]);

		check_written(run);
		check_share(run, "<module>;outer;middle;spin", 100, 1);
		check(run->report.given > 0.9 * (i ? 999 : 499), "%.1f Hz given", run->report.given);
	}
}

/* Two processes in one run, each with its stacks. */
LIVE_TEST(limits, two_targets)
{
	struct target *spin = start(pick("3.15", "debian"), "spin.py");
	struct target *fib = start(pick("3.13", "debian"), "fib.py");
	char pids[32], file[CHILD_PATH];
	struct run *run;

	snprintf(pids, sizeof(pids), "%d,%d", spin->pid, fib->pid);
	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	run = profiler__finish(profiler("-p", pids, "-d", "1", "-r", "999", "-o", file), file);
	check_written(run);
	check(stacks__with(&run->stacks, "spin") && stacks__with(&run->stacks, "fib"),
	      "one of the two has no samples");
	for (size_t i = 0; i < run->stacks.len; i++)
		check(!stack__count(&run->stacks.items[i], "spin") ||
			      !stack__count(&run->stacks.items[i], "fib"),
		      "a stack of both: %s", stack__text(&run->stacks.items[i]));
}

/* A profiler that does not get to read for a while: what is lost is counted, what is not is right. */
LIVE_TEST(limits, reader_that_sleeps)
{
	struct target *target = start(pick("3.15", "debian"), "chains.py", .args = {"200"});
	char pid[16], file[CHILD_PATH];
	struct child *child;
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	child = profiler("-v", "-p", pid, "-r", "20k", "-o", file);
	check(child__wait_message(child, "first sample", 30), "no first sample: %s", child__err(child));
	kill(child->pid, SIGSTOP);
	pause_for(4);
	kill(child->pid, SIGCONT);
	pause_for(0.3);
	kill(child->pid, SIGINT);
	run = profiler__finish(child, file);
	check_written(run);
	check(run->report.samples + run->report.lost > 0.9 * 20000 * run->report.cpu_s,
	      "%.0f taken and %.0f lost in %.3f s of CPU at 20 kHz", run->report.samples, run->report.lost,
	      run->report.cpu_s);
	for (size_t i = 0; i < run->stacks.len; i++)
		check(!stack__count(&run->stacks.items[i], "x") || !stack__count(&run->stacks.items[i], "y"),
		      "a stack of both chains: %s", stack__text(&run->stacks.items[i]));
}

/* At each of many attaches the threads are in another state. */
EACH_PYTHON(limits, attach_again_and_again)
{
	struct target *target = start(python, "tasks.py", .args = {"thread"});
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", target->pid);
	for (int i = 0; i < 15; i++) {
		struct run *run = profiler_run("-p", pid, "-d", "0.05", "-r", "999", "-q");

		check(run->code == 0 || strstr(run->err, "no samples"), "attach %d: exit code %d", i + 1,
		      run->code);
	}
}
