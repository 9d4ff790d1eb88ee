/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --clock tick: the same profile as by timers of our own, where the target does not run in step with the
 * kernel's tick; and what is said where it does.
 */
#include "service.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ticks a second, as the argument of -r. */
static const char *tick_rate(void)
{
	static char text[24];
	struct timespec step;

	clock_getres(CLOCK_MONOTONIC_COARSE, &step);
	snprintf(text, sizeof(text), "%ld", (1000000000 + step.tv_nsec / 2) / step.tv_nsec);
	return text;
}

/* One that works all the time, at every tick and at some of them. */
LIVE_TEST(clock, shares)
{
	struct target *target;
	struct run *run;
	double asked = atof(tick_rate());

	if (by_readv())
		cr_skip("it has a timer of its own");
	target = start(pick("3.13", "debian"), "shares.py");
	run = profile(target, .rate = tick_rate(), .min_samples = 200, .args = {"--clock", "tick", "--function"});
	check_share(run, "<module>;run;a", 70, 13);
	check_share(run, "<module>;run;b", 20, 11);
	check_share(run, "<module>;run;c", 10, 9);
	check(fabs(run->report.given - asked) < 0.25 * asked, "%.1f Hz given", run->report.given);
	check(strstr(run->err, "  clock      the kernel's tick, "), "it says: %s", run->err);
	check(strstr(run->err, "% in system calls\n"), "it says: %s", run->err);
	run = profile(target, .rate = "60", .min_samples = 40, .args = {"--clock", "tick"});
	check(run->report.given > 40 && run->report.given < 80, "%.1f Hz given", run->report.given);
}

/* From its first frame on, several threads that come and go. */
LIVE_TEST(clock, command)
{
	static const char text[] = BURN "import threading\n"
					"def job(): burn(0.1)\n"
					"for _ in range(10):\n"
					"    thread = threading.Thread(target=job)\n"
					"    thread.start(); thread.join()\n";
	struct service *service;
	struct run *run;
	double given;

	if (by_readv())
		cr_skip("it has a timer of its own");
	service = service__command(pick("3.14", "debian"), OPTIONS("-q", "--clock", "tick", "-r", "100"), text);
	run = service__run(service);
	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "job")) > 75, "job has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "job")));
	given = number_before(run->err, " given");
	check(given > 60 && given < 150, "%.1f Hz given", given);
}

/* What instep.py was asked to do, in the order in which it tells. */
struct told {
	double used[2];
	double met[2];
};

static struct told ask(struct target *target)
{
	struct told told;
	const char *line;

	kill(target->pid, SIGTERM);
	line = child__wait_line(target->child, "used", 30);
	check(line && sscanf(line, "%lf %lf met %lf %lf", &told.used[0], &told.used[1], &told.met[0],
			     &told.met[1]) == 4,
	      "it does not say what is true: %s", child__out(target->child));
	return told;
}

static double share(double part, double other)
{
	return part + other > 0 ? 100 * part / (part + other) : 0;
}

static double share_between(const struct run *run)
{
	return share(stacks__exactly(&run->stacks, "<module>;run;work;between"),
		     stacks__exactly(&run->stacks, "<module>;run;work;across"));
}

/* Half of the time between ticks: timers of our own see it, the kernel's tick sees the other half. */
LIVE_TEST(clock, in_step_with_the_tick)
{
	const struct python *python = pick("3.13", "debian");
	struct target *target;
	struct told told;
	struct run *run;

	if (by_readv())
		cr_skip("it has a timer of its own");
	target = start(python, "instep.py");
	run = profile(target, .signal = SIGUSR1, .args = {"--clock=perf", "--function"});
	told = ask(target);
	check(fabs(share_between(run) - share(told.used[0], told.used[1])) < 12,
	      "%.1f %% between ticks by timers, in truth %.1f", share_between(run),
	      share(told.used[0], told.used[1]));

	target = start(python, "instep.py");
	run = profile(target, .rate = tick_rate(), .min_samples = 100, .signal = SIGUSR1,
		      .args = {"--clock=tick", "--function"});
	told = ask(target);
	check(fabs(share_between(run) - share(told.met[0], told.met[1])) < 20,
	      "%.1f %% between ticks by the tick, which met %.1f", share_between(run),
	      share(told.met[0], told.met[1]));
}

/* ... and that is told. */
LIVE_TEST(clock, never_met)
{
	struct target *target;
	struct told told;
	struct run *run;
	char pid[16];
	double met;

	if (by_readv())
		cr_skip("it has a timer of its own");
	target = start(pick("3.14", "debian"), "instep.py", .args = {"between"});
	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = profiler_run("-p", pid, "-d", "2", "-r", tick_rate(), "--clock", "tick", "-q");
	told = ask(target);
	met = told.met[0] / (told.used[0] * atof(tick_rate()));
	if (met > 0.5)
		cr_skip("on a busy machine it does not keep in step: met at %.2f of its time", met);
	check(strstr(run->err, "in step with"), "met at %.2f of its time; it says: %s", met, run->err);
}

/* What cannot be is refused, with the reason. */
LIVE_TEST(clock, refused)
{
	struct target *target = start(pick("3.14", "debian"), "idle.py");
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", target->pid);
	check_refused(profiler_run("-p", pid, "-d", "1", "-r", "2000", "--clock", "tick"), 1,
		      "times a second, so that is the highest rate; -r 2000 takes --clock perf");
	check_refused(profiler_run("-p", pid, "--clock", "tick", "--engine=readv"), 2,
		      "--clock tick: only with the bpf engine");
	check_refused(profiler_run("-p", pid, "--clock", "tick", "--mode", "offcpu"), 2,
		      "--clock: --mode offcpu is not sampled");
}
