/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The report to the letter, for given counts. What it says of the profiler's own cost is only looked at for
 * its shape.
 */
#include "run/report.h"

#include "os/proc.h"
#include "run/gil.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct process processes[2];
static struct process *list[] = {&processes[0], &processes[1]};
static struct report report;
static struct buf text;

static void start(void)
{
	processes[0] = (struct process){.pid = 12, .command = "python3 app.py", .cpu_end_ns = 5000000000};
	processes[1] = (struct process){.pid = 13, .command = "worker", .cpu_end_ns = 1000000000};
	report = (struct report){.processes = list,
				 .process_count = 1,
				 .rate_hz = 99,
				 .max_frames = 64,
				 .wall_ns = 10040000000,
				 .engine = "bpf",
				 .knows_kernel = true,
				 .losses = {{0, "ring buffer full"}, {0, "ring buffer full for a new stack"}},
				 .loss_count = 2,
				 .end = "Ctrl-C"};
}

static void stop(void)
{
	buf__free(&text);
}

TestSuite(report, .init = start, .fini = stop);

/* The text without its last line, which tells the cost. */
static const char *format(void)
{
	char *cost;

	text.len = 0;
	report__format(&report, &text);
	cr_assert(!text.err && text.len && text.data[text.len - 1] == '\n');
	text.data[text.len - 1] = '\0';
	cost = strrchr(text.data, '\n');
	cr_assert(cost && !strncmp(cost, "\n  cost       profiler ", 23), "%s", text.data);
	cost[1] = '\0';
	return text.data;
}

static void expect(const char *want)
{
	cr_expect_str_eq(format(), want);
}

/* Is a line, or a part of one, there? */
static void expect_part(const char *part, bool there)
{
	cr_expect_eq(!!strstr(format(), part), there, "'%s' in:\n%s", part, text.data);
}

Test(report, an_ordinary_run)
{
	report.counts.samples = 495;
	report.counts.status[PBP_STATUS_COMPLETE] = 495;
	report.counts.attached = 480;
	report.counts.in_kernel = 10;
	expect("495 samples of process 12 (python3 app.py) in 10.0 s by the bpf engine (Ctrl-C)\n"
	       "  samples    495 taken, 0 lost, 0 truncated, 0 unverified, 0 without Python frames\n"
	       "  rate       99 Hz of CPU time asked, 99.0 given; the process used 5.000 s of CPU in 10.04 "
	       "s\n"
	       "  state      97.0% holding the GIL, 0.0% collecting garbage, 0.0% with an exception set, "
	       "2.0% in the kernel\n");
}

/* What was not asked for was taken all the same, in the time of the process. */
Test(report, samples_left_out)
{
	report.counts.samples = 95;
	expect_part("  kept ", false);
	report.counts.left_out_threads = 300;
	expect_part("\n  kept       95 of 395 samples (24.1%); left out: 300 of threads that were not asked "
		    "for\n",
		    true);
	report.counts.left_out_exceptions = 100;
	report.counts.raising = 19;
	report.counts.handling = 76;
	report.only_exceptions = true;
	expect_part("\n  kept       95 of 495 samples (19.2%); left out: 300 of threads that were not asked "
		    "for, 100 of threads "
		    "that neither handled nor raised an exception\n",
		    true);
	expect_part(" CPU time asked, 99.0 given", true);
	expect_part(" 20.0% with an exception set, 80.0% handling one, ", true);
	report.counts.samples = 0;
	text.len = 0;
	report__explain_empty(&report, &text);
	buf__addc(&text, '\0');
	cr_expect_str_eq(
		text.data,
		"no samples that were asked for: of 400 that were taken all were left out, 300 of threads "
		"that were not asked for, 100 of threads that neither handled nor raised an exception");
	report.counts.left_out_threads = report.counts.left_out_exceptions = 0;
	report.counts.samples = 9;
	expect_part("\n  kept       9 of 9 samples (100.0%)\n", true);
}

Test(report, whose_collection_is_not_known)
{
	report.counts.samples = 9;
	processes[0].attached = true;
	processes[0].target.layout.collector = PBP_COLLECTOR_UNKNOWN;
	expect_part(", who collected garbage is not known, ", true);
	processes[0].target.layout.collector = PBP_COLLECTOR_FRAME;
	expect_part(", 0.0% collecting garbage, ", true);
	processes[0] = (struct process){0};
}

/* At the kernel's tick: what it has met is told if that cannot be by chance. */
Test(report, clock)
{
	report.counts.samples = report.counts.in_kernel = 371;
	expect_part("  clock ", false);
	report.tick_hz = 250;
	expect_part("\n  clock      the kernel's tick, 250 a second; it met 75% of the CPU time: what runs in step "
		    "with it has a wrong share; use --clock perf\n",
		    true);
	expect_part("100.0% in system calls\n", true);
	report.counts.samples = 372;
	expect_part("\n  clock      the kernel's tick, 250 a second\n", true);
	report.counts.samples = 619;
	expect_part("it met 125% of", true);
	report.counts.samples = 618;
	expect_part("it met ", false);
	report.counts.samples = 0;
	processes[0].cpu_end_ns = 200000000;
	expect_part("it met ", false);
	processes[0].cpu_end_ns = 300000000;
	expect_part("it met 0% of", true);
}

Test(report, lines_under_the_jit)
{
	report.counts.samples = 495;
	expect_part("  marker ", false);
	report.unmarked = 2;
	expect_part("\n  marker     not in 2 processes, read without: Python has one from 3.15 on\n", true);
	expect_part("  lines ", false);
	report.counts.approximate = 99;
	expect_part("\n  lines      of 99 samples (20.0%) approximate, marked ~: in code that the JIT made\n",
		    true);
}

Test(report, everything_that_can_happen)
{
	report.process_count = 2;
	processes[0].execs = 1;
	processes[1].execs = 3;
	report.counts = (struct symbolize_counts){
		.samples = 1000,
		.status = {[PBP_STATUS_COMPLETE] = 900,
			   [PBP_STATUS_DEEP] = 60,
			   [PBP_STATUS_FRAME_FAULT] = 10,
			   [PBP_STATUS_NO_TARGET] = 1,
			   [PBP_STATUS_NO_TSTATE] = 20,
			   [PBP_STATUS_TSTATE_FAULT] = 4,
			   [PBP_STATUS_NO_FRAMES] = 5},
		.tails_completed = 55,
		.truncated = 2,
		.unverified = 13,
		.unreadable = 7,
		.pruned = 6,
		.unknown_stack = 3,
		.attached = 500,
		.collecting = 10,
		.in_kernel = 333,
	};
	report.losses[0].count = 40;
	report.losses[1].count = 7;
	expect("1000 samples of 2 processes in 10.0 s by the bpf engine (Ctrl-C)\n"
	       "  samples    1000 taken, 50 lost (40 ring buffer full, 7 ring buffer full for a new stack, 3 "
	       "stack not known), "
	       "2 truncated, 13 unverified, 7 with code freed before it was read, 6 beyond the profile's "
	       "size limit, "
	       "30 without Python frames (1 where no Python was found in the process (yet), "
	       "20 of native threads, which have no Python thread state, "
	       "4 with a thread state that was not readable, "
	       "5 of threads without frames, starting, ending or idle)\n"
	       "  deep       55 stacks over 64 frames completed and verified from user space\n"
	       "  rate       99 Hz of CPU time asked, 175.0 given; they used 6.000 s of CPU in 10.04 s\n"
	       "  state      50.0% holding the GIL, 1.0% collecting garbage, 0.0% with an exception set, "
	       "33.3% in the kernel\n"
	       "  exec       process 12 became another program 1 time; now python3 app.py\n"
	       "  exec       process 13 became another program 3 times; now worker\n");
}

/* What is not known is not said to be 0 %. */
Test(report, no_gil_to_tell_of)
{
	report.counts.samples = 495;
	processes[0].target.layout.ts_attached = PBP_NONE;
	expect_part("  state      who held the GIL is not known, 0.0% collecting garbage, ", true);
	processes[0].target.layout.gil_tstate = 0x1000;
	expect_part("  state      0.0% holding the GIL, 0.0% collecting garbage, ", true);
}

/* A free-threaded build has no GIL to hold. */
Test(report, free_threaded)
{
	report.counts.samples = 200;
	report.counts.attached = 190;
	processes[0].target.offsets.free_threaded = true;
	expect_part("  state      95.0% attached, 0.0% collecting garbage, ", true);
	expect_part("GIL", false);
	report.process_count = 2;
	expect_part("  state      95.0% holding the GIL or attached, 0.0% collecting garbage, ", true);
	processes[1].target.offsets.free_threaded = true;
	expect_part("  state      95.0% attached, ", true);
}

Test(report, one_of_each)
{
	report.counts.samples = 1;
	report.counts.tails_completed = 1;
	report.wakeups = 1;
	expect_part("1 sample of process", true);
	expect_part("1 stack over", true);
	text.len = 0;
	report__format(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, " 1 wake-up\n"), "%s", text.data);
	report.wakeups = 2;
	text.len = 0;
	report__format(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, " 2 wake-ups\n"), "%s", text.data);
}

/* What is not known is not told as 0. */
Test(report, unknown)
{
	processes[0].cpu_end_ns = 9999999;
	expect_part(
		"99 Hz of CPU time asked, n/a given (too little CPU time to say); the process used 0.010 s",
		true);
	expect_part("0.0 given", false);
	expect_part("state", false);
	processes[0].cpu_end_ns = 10000000;
	expect_part("n/a", false);
	report.counts.samples = 1;
	expect_part("state", true);
	report.tick_ns = 0;
	report.wall_ns = 0; /* nothing divides by it */
	format();
}

Test(report, lost_samples_were_given)
{
	report.counts.samples = 300;
	report.losses[0].count = 195;
	expect_part("99.0 given", true);
}

Test(report, cost)
{
	double share;

	report.tick_ns = 1234;
	report.ticks = 56;
	report__format(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, "; in the kernel 1.23 us a tick, 56 ticks\n"));
	cr_expect(!strstr(text.data, " 0.0 MB resident"), "%s", text.data);
	report.wall_ns = 1000;
	text.len = 0;
	report__format(&report, &text);
	buf__addc(&text, '\0');
	cr_assert_eq(sscanf(strstr(text.data, " s CPU (") ?: "", " s CPU (%lf%% of a CPU)", &share), 1);
	cr_expect(share > 0 && share <= 100, "of a short run: %s", text.data);
	report.wall_ns = 0;
	report__format(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(!strstr(text.data + strlen(text.data) + 1, "nan"), "no time has passed");
}

/* ---- why there is nothing ---- */

static const char *explain(void)
{
	text.len = 0;
	report__explain_empty(&report, &text);
	buf__addc(&text, '\0');
	cr_assert(!text.err && !strchr(text.data, '\n'));
	return text.data;
}

static char process_state(pid_t pid)
{
	struct proc_stat stat;

	return proc__stat(pid, &stat) ? 0 : stat.state;
}

/* There was time, but none that was asked for. */
Test(report, nothing_but_waits_for_work)
{
	report.counts = (struct symbolize_counts){.hidden_ns = 1500000000, .unknown_stack = 3};
	report.hides_idle = true;
	cr_expect(strstr(explain(), "no samples: the 1.500 s of ") &&
			  strstr(explain(), " were all waits for work, which --idle=hide leaves out"),
		  "%s", explain());
	cr_assert(report__lost(&report), "some were lost as well");
	report.hides_idle = false;
	cr_expect(!strstr(explain(), "were lost"), "%s", explain());
	report.counts.hidden_ns = 0;
	cr_expect(strstr(explain(), "were lost"), "%s", explain());
}

Test(report, idle_process)
{
	int status;
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	cr_assert_gt(child, 0);
	while (process_state(child) != 'S')
		usleep(1000);
	processes[0].pid = child;
	processes[0].cpu_start_ns = 1000000;
	processes[0].cpu_end_ns = 1250000;
	cr_expect(strstr(explain(), "(python3 app.py) used 0.000250 s of CPU in 10.04 s and is sleeping now; "
				    "CPU time is what is sampled, one sample each 10.1 ms of it"),
		  "%s", text.data);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	cr_expect_str_eq(strstr(explain(), " used"),
			 " used 0.000250 s of CPU in 10.04 s; CPU time is what is sampled, "
			 "one sample each 10.1 ms of it");
}

/* At every look it was kept from running, or only at some. */
Test(report, halted_process)
{
	processes[0].halts = (struct process_halts){
		.looks = 4, .halted = 4, .now = true, .last = {.kind = HALT_FROZEN, .cgroup = "/a\033[1m"}};
	processes[0].cpu_end_ns = 0;
	cr_expect_str_eq(explain(),
			 "no samples: the whole time process 12 (python3 app.py) was frozen with its "
			 "cgroup /a\\x1b[1m");
	expect_part("  halted     process 12 in 4 of 4 looks, one a second: frozen with its cgroup "
		    "/a\\x1b[1m; it is so now\n",
		    true);
	processes[0].halts.last.kind = HALT_STOPPED;
	processes[0].inner_pid = 7;
	cr_expect_str_eq(
		explain(),
		"no samples: the whole time process 12 [7 inside] (python3 app.py) was stopped by a signal "
		"(SIGSTOP or the like); kill -CONT 12 lets it go on");
	processes[0].halts.halted = 3;
	cr_expect_str_eq(
		explain(),
		"no samples: process 12 [7 inside] (python3 app.py) used 0.000000 s of CPU in 10.04 s and "
		"is stopped by a signal (SIGSTOP or the like) now; CPU time is what is sampled, one sample "
		"each 10.1 ms of it");
	processes[0].halts.now = false;
	expect_part("  halted     process 12 [7 inside] in 3 of 4 looks, one a second: stopped by a signal "
		    "(SIGSTOP or the like)\n",
		    true);
	processes[0].halts.halted = 0;
	expect_part("  halted ", false);
}

/* With that much CPU time there is another reason, which is not passed off as idleness. */
Test(report, busy_process_without_samples)
{
	report.process_count = 2;
	cr_expect_str_eq(
		explain(),
		"no samples: 2 processes used 6.000000 s of CPU in 10.04 s, so there should be some: "
		"this is a fault of the profiler or the kernel");
	report.tick_hz = 250;
	cr_expect_str_eq(explain(),
			 "no samples: 2 processes used 6.000000 s of CPU in 10.04 s; the kernel's ticks have met "
			 "none of it, so that it is in step with them: use --clock perf");
	report.tick_hz = 0;
	/* Some ticks may come late, or fall where no thread is to be seen. */
	processes[0].cpu_end_ns = 30000000;
	processes[1].cpu_end_ns = 0;
	cr_expect(strstr(explain(), "one sample each 10.1 ms of it"), "%s", text.data);
	processes[0].cpu_end_ns = 102000000;
	cr_expect(strstr(explain(), "a fault of the profiler"), "%s", text.data);
	report.losses[1].count = 12;
	cr_expect_str_eq(explain(), "no samples: all 12 were lost");
}

/* Processes that were found, and what else there was. */
Test(report, processes_that_were_found)
{
	report.counts.samples = 300;
	report.counts.exited = 4;
	report.counts.skipped = 1;
	report.followed = true;
	report.process_count = 2;
	processes[0].samples = 100;
	processes[1].samples = 200;
	processes[1].execs = 1;
	report.other_processes = 3;
	expect_part(" 4 of processes that ended before all was read,", true);
	expect_part("  process    13 (worker): 200 samples, 1.000 s of CPU\n"
		    "  process    12 (python3 app.py): 100 samples, 5.000 s of CPU\n"
		    "  others     3 processes found that were not profiled, not Python; 1 sample of them "
		    "left out\n",
		    true);
	expect_part("300 samples of 2 Python processes in", true);
	expect_part("  exec ", false);
	report.denied = 1;
	report.unsupported = 1;
	expect_part("  others     3 processes found that were not profiled (1 not permitted to read, 1 of a "
		    "version or build that is not supported, the others not Python); 1 sample of them left out\n",
		    true);
	report.ended_unknown = 1;
	expect_part(
		" not supported, 1 ended before it was known what they were); 1 sample of them left out\n",
		true);
	cr_expect_eq(report__not_python(&report), 0);
	report.knows_kernel = false;
	expect_part("  others     3 processes found that were not profiled (1 not permitted to read, 1 of a version or "
		    "build that is not supported, 1 ended before it was known what they were)\n",
		    true);
	report.knows_kernel = true;
	report.ended_unknown = 2;
	cr_expect_eq(report__not_python(&report), 0);
	report.ended_unknown = 1;
	report.denied = 9;
	report.denied_pythons = 2;
	report.denied_names = "14 (python a.py), 15 (python b.py)";
	expect_part("  others     11 processes found", true);
	expect_part(" (9 not permitted to read: Python by the name are 14 (python a.py), 15 (python b.py), 1 "
		    "of a",
		    true);
}

/* Those that came and went are not said to be no Python. */
Test(report, processes_that_ended_soon)
{
	report.counts.samples = 300;
	report.counts.skipped = 28;
	report.followed = true;
	report.other_processes = 25;
	report.ended_unknown = 20;
	expect_part("  others     25 processes found that were not profiled (20 ended before it was known "
		    "what they were, "
		    "the others not Python); 28 samples of them left out\n",
		    true);
	report.other_processes = 20;
	expect_part("not Python", false);
}

/* A daemon outlives its command, and is not sampled to its end. */
Test(report, processes_that_go_on)
{
	report.counts.samples = 300;
	report.followed = true;
	expect_part("  going on ", false);
	report.going_on = 2;
	expect_part("\n  going on   2 Python processes that the command started: no longer profiled\n", true);
	text.len = 0;
	report__format_json(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, "\"processes_going_on\": 2,"), "%s", text.data);
}

/* Too many to be told one by one. */
Test(report, processes_of_the_past)
{
	report.counts.samples = 300;
	report.followed = true;
	report.past = (struct processes_past){.pythons = 999, .cpu_ns = 2000000000};
	expect_part("300 samples of 1000 Python processes in", true);
	expect_part("they used 7.000 s of CPU", true);
	expect_part("  process ", false);
	expect_part("  others ", false);
	expect_part(" at most ", false);
	report.cpu_unknown = 7;
	expect_part(" Hz of CPU time asked, at most ", true);
	expect_part("\n             7 of them used more before ending, and it is not known how much\n", true);
}

Test(report, containers)
{
	struct container web = {.id = "0123456789abcdef", .name = "web", .label = "web (0123456789ab)"};
	struct report_container sums[] = {{&web, 2, 300, 3000000000}, {NULL, 1, 1, 1000000000}};

	report.counts.samples = 301;
	report.followed = true;
	report.left = 2;
	report.containers = sums;
	report.container_count = 2;
	processes[0].container = &web;
	expect_part("  container  web (0123456789ab): 2 processes, 300 samples, 3.000 s of CPU\n"
		    "  container  none (host): 1 process, 1 sample, 1.000 s of CPU\n"
		    "  left       2 processes while profiled, by being put into another cgroup\n",
		    true);
	text.len = 0;
	report__format_json(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, "\"execs\": 0, \"container\": \"0123456789abcdef\","), "%s", text.data);
	cr_expect(strstr(text.data,
			 "\"containers\": [{\"processes\": 2, \"id\": \"0123456789abcdef\", "
			 "\"name\": \"web\", \"samples\": 300, \"cpu_s\": 3.000000}, {\"processes\": 1, "
			 "\"id\": null, \"name\": null, \"samples\": 1, \"cpu_s\": 1.000000}], "
			 "\"processes_left\": 2"),
		  "%s", text.data);
	/* Where nobody is in one, nothing is said of them. */
	report.containers = &sums[1];
	report.container_count = 1;
	expect_part("container", false);
}

/* The table of processes is full: that some are missing is said. */
Test(report, processes_beyond_the_limit)
{
	report.counts.samples = 300;
	report.followed = true;
	expect_part("  limits ", false);
	report.beyond = 1;
	expect_part("\n  limits     1 process was not followed: no room for more than 16384 at a time\n", true);
	report.beyond = 20;
	expect_part("\n  limits     20 processes were not followed: ", true);
}

/* For programs: one object, whatever the target is called. */
Test(report, as_json)
{
	const char *text_end;

	processes[0] = (struct process){.pid = 12, .command = "a \"b\"\\x1b[0m", .cpu_end_ns = 2000000000};
	report.losses[0].count = 3;
	report.counts.samples = 196;
	report.unwind.readings = 7;
	text.len = 0;
	report__format_json(&report, &text);
	cr_assert(!text.err && text.len > 2);
	buf__addc(&text, '\0');
	text_end = text.data + text.len - 3;
	cr_expect(text.data[0] == '{' && !strcmp(text_end, "}\n"), "%s", text.data);
	cr_expect(strstr(text.data, "\"command\": \"a \\\"b\\\"\\\\x1b[0m\""), "%s", text.data);
	cr_expect(strstr(text.data, "\"lost\": {\"total\": 3, \"ring buffer full\": 3"), "%s", text.data);
	cr_expect(strstr(text.data, "\"rate_given_hz\": 99.5"), "%s", text.data);
	cr_expect(strstr(text.data, "\"stacks\": {\"read\": 7"), "%s", text.data);
	report.processes = NULL;
	report.process_count = 0;
	report.knows_kernel = false;
	text.len = 0;
	report__format_json(&report, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, "\"rate_given_hz\": null") && strstr(text.data, "\"in_kernel\": null"), "%s",
		  text.data);
}

/* ---- profiles of time ---- */

static struct profile profile;

static uint32_t add_frame(const char *function, bool wait)
{
	return frame_table__add(
		&profile.frames,
		&(struct frame){.function = strtab__add(profile.strings, function, strlen(function)),
				.kind = FRAME_SPECIAL,
				.wait = wait});
}

static void add_time(const char *reason, uint64_t ns)
{
	uint32_t node = trie__child(&profile.trie, TRIE_ROOT, add_frame("f", false));

	trie__add(&profile.trie, reason ? trie__child(&profile.trie, node, add_frame(reason, true)) : node,
		  ns);
}

Test(report, time)
{
	cr_assert_eq(profile__init(&profile, 100), 0);
	add_time("[sleep]", 2000000000);
	add_time("[I/O: read]", 5500000000);
	report.mode = ENGINE_OFFCPU;
	report.profile = &profile;
	report.counts.samples = report.counts.waits = 20;
	report.counts.in_kernel = 20;
	report.waits.found = 1;
	expect("7.500 s off the CPU of process 12 (python3 app.py) in 10.0 s by the bpf engine (Ctrl-C)\n"
	       "  samples    20 taken, 0 lost, 0 truncated, 0 unverified, 0 without Python frames\n"
	       "  time       5.500 s I/O: read, 2.000 s sleep\n"
	       "  waits      20 told of; 1 thread asleep before it began\n"
	       "  CPU        not sampled; the process used 5.000 s of CPU in 10.04 s\n");

	add_time(NULL, 1000000000);
	report.mode = ENGINE_WALL;
	report.counts.samples = 119;
	report.counts.attached = 99;
	report.waits =
		(struct report_waits){.skipped = 180, .skipped_ns = 400000000, .lost = 2, .lost_ns = 1000000};
	report.counts.status[PBP_STATUS_NOT_WALKED] = 3;
	report.losses[2] = (struct engine_loss){2, "waits: ring buffer full"};
	report.loss_count = 3;
	report.hides_idle = true;
	report.counts.hidden_ns = 1500000000;
	expect("8.500 s of process 12 (python3 app.py) in 10.0 s by the bpf engine (Ctrl-C)\n"
	       "  samples    119 taken, 2 lost (2 waits: ring buffer full), 0 truncated, 0 unverified, 0 "
	       "without Python "
	       "frames\n"
	       "  time       1.000 s on the CPU, 5.500 s I/O: read, 2.000 s sleep\n"
	       "  waits      20 told of; of the short ones 1 in 10.0: they stand for 180 more, of 0.400 s in "
	       "all; "
	       "3 without their stack; 2 lost, of 0.001 s\n"
	       "  idle       1.500 s hidden, of pools, event loops and servers that waited for work "
	       "(--idle=show)\n"
	       "  rate       99 Hz of CPU time asked, 19.8 given; the process used 5.000 s of CPU in 10.04 "
	       "s\n"
	       "  state      100.0% holding the GIL, 0.0% collecting garbage, 0.0% with an exception set, "
	       "20.2% in the "
	       "kernel\n");
	profile__free(&profile);
}

/* --- of GILs --- */

static struct gil gil;
static struct estimate estimate;

/* Thread `tid` held it from 0 on, asleep, or waited for it then. */
static void add_gil(pid_t tid, uint64_t ns, bool waits)
{
	struct pbp_sample sample = {.tgid = 12,
				    .tid = tid,
				    .flags = waits ? 0 : PBP_SAMPLE_ATTACHED,
				    .comm = "pool\x1b"};
	struct sample_share share = {.time_ns = ns,
				     .reason = waits ? WAIT_GIL : WAIT_SLEEP,
				     .lock = waits ? 0x5000 : 0};

	gil__add(&gil, &processes[0], trie__child(&profile.trie, TRIE_ROOT, add_frame("f", false)), &sample, &share);
}

Test(report, gil)
{
	cr_assert_eq(profile__init(&profile, 100), 0);
	cr_assert_eq(gil__init(&gil, &profile, &estimate, trie__child(&profile.trie, TRIE_ROOT, 0)), 0);
	cr_assert_eq(vec__push(&processes[0].gils.items, (py_addr)0x5000), 0);
	add_gil(21, 2000000000, false);
	add_gil(22, 1500000000, true);
	add_gil(23, 2500000000, true);
	cr_assert_eq(gil__settle(&gil), 0);
	report.mode = ENGINE_GIL;
	report.profile = &profile;
	report.gil = &gil;
	report.counts.samples = report.counts.waits = 3;
	expect("6.000 s holding the GIL or waiting for it, of process 12 (python3 app.py) in 10.0 s by the bpf engine "
	       "(Ctrl-C)\n"
	       "  samples    3 taken, 0 lost, 0 truncated, 0 unverified, 0 without Python frames\n"
	       "  time       4.000 s waits for the GIL, 2.000 s holds the GIL: sleep\n"
	       "  waits      3 told of\n"
	       "  GIL        held 2.000 s, on the CPU 0.000 and off it 2.000; waited for 4.000 s, of which 0.500 with the "
	       "holder not seen\n"
	       "  thread     23 (pool\\x1b): held 0.000 s, waited 2.500 s\n"
	       "  thread     21 (pool\\x1b): held 2.000 s (2.000 s of it off the CPU), waited 0.000 s\n"
	       "  thread     22 (pool\\x1b): held 0.000 s, waited 1.500 s\n"
	       "  rate       99 Hz of CPU time asked, 0.0 given; the process used 5.000 s of CPU in 10.04 s\n");
	/* Samples of other things were given, too, and tell what the rest of the CPU time was. */
	report.counts.hidden = 495;
	expect_part("99.0 given", true);
	expect_part("holder not seen; 5.000 s on the CPU without it\n", true);
	report.counts.left_out_threads = 1;
	expect_part("without it", false);
	report.counts.left_out_threads = 0;
	for (pid_t tid = 31; tid < 131; tid++)
		add_gil(tid, 1000000, true);
	cr_assert_eq(gil__settle(&gil), 0);
	expect_part("\n  threads    87 more: held 0.000 s, waited 0.087 s\n", true);
	expect_part("  no GIL ", false);
	processes[0].target.offsets.free_threaded = true;
	processes[0].gils.items.len = 0;
	processes[0].had_gil = true; /* with PYTHON_GIL=1; it has ended since, and all that was read of it is gone */
	expect_part("  no GIL ", false);
	processes[0].had_gil = false;
	expect_part("\n  no GIL     in 1 process that is free-threaded: stop-the-world pauses of 0.000 s in all\n", true);
	gil__free(&gil);
	estimate__free(&estimate);
	py_gils__free(&processes[0].gils);
	profile__free(&profile);
}

Test(report, no_gil)
{
	report.gil = &gil;
	cr_expect_str_eq(explain(),
			 "no samples: no thread of process 12 (python3 app.py) held a GIL or waited for one in 10.04 s");
	processes[0].target.offsets.free_threaded = true;
	cr_expect_str_eq(explain(), "no samples: no thread of process 12 (python3 app.py) held a GIL or waited for one in "
				    "10.04 s; free-threaded builds have none, and no stop-the-world pause was seen");
}
