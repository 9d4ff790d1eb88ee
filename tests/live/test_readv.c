/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What only the readv engine has: it serves where BPF is not permitted, it can stop threads or use the frame
 * marker, and it says what it did. That its profiles are right is for all other tests, which run on it as
 * well (PYBPFPROF_ENGINE=readv).
 */
#include "harness.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOT_PERMITTED = 4 };

/* Becomes another user, and then a program that was that user's from its start, which its owner may read. */
static const char as_another_user[] = "import os, sys\n"
				      "if os.getuid() == 0:\n"
				      "    os.chmod(os.path.dirname(sys.argv[0]), 0o755)\n"
				      "    os.setgid(65534)\n"
				      "    os.setuid(65534)\n"
				      "    os.execv(sys.executable, [sys.executable] + sys.argv)\n"
				      "def inner():\n"
				      "    while True: sum(range(200))\n"
				      "def outer():\n"
				      "    inner()\n"
				      "print('ready', flush=True)\n"
				      "outer()\n";

static struct run *run_words(const char *const *argv, const char *file)
{
	return profiler__finish(child__start(&(struct child_config){.argv = argv}), file);
}

#define words(...) run_words((const char *const[]){__VA_ARGS__, NULL}, NULL)

static const char *pid_text(pid_t pid)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return text;
}

static void check_has(const char *text, const char *what)
{
	check(strstr(text, what), "\"%s\" is not in: %s", what, text);
}

/* --- where BPF is not permitted --- */

/* Those of pyenv lie in a home that others may not enter. */
EACH_WITH_TABLE(readv, an_ordinary_user)
{
	struct target *target = start(python, "user.py", .text = as_another_user);
	char file[CHILD_PATH];
	const char *argv[] = {"setpriv",
			      "--reuid=65534",
			      "--regid=65534",
			      "--clear-groups",
			      public_profiler(),
			      "-p",
			      pid_text(target->pid),
			      "-d",
			      "1",
			      "-r",
			      "500",
			      "-o",
			      "-",
			      NULL};
	struct run *run = run_words(argv, NULL);

	snprintf(file, sizeof(file), "%s/profile", scratch_folder(""));
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	check_has(run->err, "using the readv engine: not permitted to load BPF: missing CAP_BPF");
	check_has(run->err, "sudo");
	check_has(run->err, "by the readv engine");
	check_has(run->out, "<module> (");
	check_has(run->out, ";outer (");
	check_has(run->out, ";inner (");
}

LIVE_TEST(readv, bpf_that_is_asked_for_is_not_replaced)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py");
	struct run *run =
		words("capsh", "--drop=cap_bpf,cap_perfmon,cap_sys_admin", "--", "-c", "exec \"$0\" \"$@\"",
		      profiler_path(), "-p", pid_text(target->pid), "-d", "0.3", "-q", "--engine=bpf");

	check(run->code == NOT_PERMITTED, "exit code %d: %s", run->code, run->err);
	check_has(run->err, "CAP_BPF");
}

LIVE_TEST(readv, process_of_another_user)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py");
	struct run *run =
		words("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", public_profiler(), "-p",
		      pid_text(target->pid), "-d", "0.3", "-q", "--engine=readv");

	check(run->code == NOT_PERMITTED, "exit code %d: %s", run->code, run->err);
	check_has(run->err, "CAP_SYS_PTRACE");
}

/* --- threads --- */

/* 200 threads asleep beside a busy one: they are not what is sampled, and they cost next to nothing. */
EACH_KIND(readv, many_idle_threads)
{
	struct run *run =
		profile(start(python, "fixedwork.py", .args = {"--frames", "30", "--threads", "200"}),
			.seconds = 2, .args = {"--engine=readv"});

	check(percent(run, stacks__with(&run->stacks, "work")) > 98, "work is in %.2f %%",
	      percent(run, stacks__with(&run->stacks, "work")));
	check(run->report.given < 1100, "%.0f Hz given", run->report.given);
}

/* 800 threads that each work for 2 ms now and then, 0.4 s in a second together: by turns they get what is
 * due. */
LIVE_TEST(readv, many_seldom_threads)
{
	static const char text[] = "import random, threading, time\n"
				   "def work():\n"
				   "    while True:\n"
				   "        time.sleep(random.random() * 8)\n"
				   "        end = time.thread_time() + 0.002\n"
				   "        while time.thread_time() < end: sum(range(100))\n"
				   "threading.stack_size(128 * 1024)\n"
				   "for _ in range(800): threading.Thread(target=work, daemon=True).start()\n"
				   "print('ready', flush=True)\n"
				   "time.sleep(1000)\n";
	struct run *run = profile(start(pick("3.11", "pyenv"), "seldom.py", .text = text), .seconds = 3,
				  .args = {"--engine=readv", "-r", "997"});

	/* Some 24 of them are met, each of which counts for 50. */
	check(run->report.given > 300, "%.0f Hz of 997 given", run->report.given);
}

/* --- a profiler that does not get its turn --- */

/* For a second of three or four: in the midst of it, or to after its end. */
static struct run *profile_held_up(const struct target *target, const char *mode, const char *seconds)
{
	const char *folder = scratch_folder("");
	char file[CHILD_PATH], report[CHILD_PATH];
	struct child *child;

	snprintf(file, sizeof(file), "%s/profile", folder);
	snprintf(report, sizeof(report), "%s/report", folder);
	child = profiler("-p", pid_text(target->pid), "-d", seconds, "-r", "499", "--engine=readv", "--mode",
			 mode, "-q", "-v", "-o", file, "--report", report);
	check(child__wait_message(child, "process: ", 20), "it does not start: %s", child__err(child));
	pause_for(0.2);
	kill(child->pid, SIGSTOP);
	pause_for(1);
	kill(child->pid, SIGCONT);
	return profiler__finish(child, file);
}

/* As many may a process have before its CPU time is known to be worth them, since its clock is late. */
enum { LENT = 24 };

static void check_all_told(const struct run *run)
{
	double due = run->report.cpu_s * 499, told = run->report.samples + run->report.lost;

	check(run->report.lost > due / 4, "too few are lost: %s", run->err);
	check(fabs(told - due) < 0.1 * due + LENT, "%.0f told of, %.0f are due: %s", told, due, run->err);
}

/* What it missed is counted, whatever ran just before. */
LIVE_TEST(readv, held_up)
{
	static const char text[] = "import time\n"
				   "print('ready', flush=True)\n"
				   "while True:\n"
				   "    end = time.thread_time() + 0.03\n"
				   "    while time.thread_time() < end: sum(range(100))\n"
				   "    time.sleep(0.07)\n";
	struct target *target = start(pick("3.11", "pyenv"), "bursts.py", .text = text);

	check_all_told(profile_held_up(target, "cpu", "1.5"));
}

/* Where waits are told of, what it finds next stands for that time, running or not, be it at the end. */
LIVE_TEST(readv, held_up_to_the_end)
{
	struct target *target = start(pick("3.14", "debian"), "gil.py", .args = {"burn"});
	struct run *run = profile_held_up(target, "wall", "0.8");
	double told = run->stacks.total / 1e6 + run->report.lost / 499, cpu_s = run->report.cpu_s;

	check(fabs(told - 3 * run->report.wall_s) < 0.3, "%.3f s told of 3 threads: %s", told, run->err);
	told = number_before(run->err, " s on the CPU") + run->report.lost / 499;
	check(fabs(told - cpu_s) < 0.15 * cpu_s + LENT / 499.0, "%.3f s on the CPU: %s", told, run->err);
	check_all_told(profile_held_up(target, "cpu", "0.8"));
}

/* --- the time of threads --- */

static struct child *profile_wall(const struct target *target, const char *engine, const char *folder,
				  char *file)
{
	char report[CHILD_PATH];

	snprintf(file, CHILD_PATH, "%s/profile", folder);
	snprintf(report, sizeof(report), "%s/report", folder);
	return profiler("-p", pid_text(target->pid), "-d", "1.2", "-r", "99", "--engine", engine, "--mode",
			"wall", "-q", "-o", file, "--report", report);
}

/* Ten at a time, each of which lives for three ticks. */
LIVE_TEST(readv, short_lived_threads)
{
	static const char text[] = "import threading, time\n"
				   "def work():\n"
				   "    time.sleep(0.03)\n"
				   "def again():\n"
				   "    while True:\n"
				   "        thread = threading.Thread(target=work)\n"
				   "        thread.start()\n"
				   "        thread.join()\n"
				   "for _ in range(10): threading.Thread(target=again, daemon=True).start()\n"
				   "print('ready', flush=True)\n"
				   "time.sleep(1000)\n";
	struct target *target = start(pick("3.11", "pyenv"), "short.py", .text = text);
	char file[2][CHILD_PATH];
	struct child *exact = profile_wall(target, "bpf", scratch_folder(""), file[0]),
		     *ticks = profile_wall(target, "readv", scratch_folder(""), file[1]);
	double want = profiler__finish(exact, file[0])->stacks.total / 1e6;
	struct run *run = profiler__finish(ticks, file[1]);
	double told = run->stacks.total / 1e6;

	check(told > 0.85 * want && told < 1.1 * want, "%.3f s told of %.3f: %s", told, want, run->err);
}

/* What is told of one thread state is not told of the other once more. */
LIVE_TEST(readv, thread_in_two_interpreters)
{
	static const char text[] = "import time, _xxsubinterpreters as interpreters\n"
				   "other = interpreters.create()\n"
				   "print('ready', flush=True)\n"
				   "while True:\n"
				   "    time.sleep(0.3)\n"
				   "    interpreters.run_string(other, 'import time; time.sleep(0.1)')\n";
	struct target *target = start(pick("3.11", "pyenv"), "two.py", .text = text);
	char file[CHILD_PATH];
	struct run *run = profiler__finish(profile_wall(target, "readv", scratch_folder(""), file), file);
	double told = run->stacks.total / 1e6;

	check(fabs(told - run->report.wall_s) < 0.15, "%.3f s told of: %s", told, run->err);
}

/* --- stopping threads --- */

static void check_runs(pid_t pid)
{
	char state;

	for (int i = 0; i < 100; i++) {
		state = process_state(pid);
		if (state == 'R' || state == 'S')
			return;
		usleep(10000);
	}
	check(false, "the target is in state %c", state);
}

EACH_WITH_TABLE(readv, blocking)
{
	struct target *target = start(python, "chains.py");
	struct run *run =
		profile(target, .seconds = 3, .rate = "1999", .args = {"--engine=readv", "--blocking"});
	double x = percent(run, stacks__with(&run->stacks, "x"));
	double y = percent(run, stacks__with(&run->stacks, "y"));

	check(x > 20 && fabs(x - y) < 10, "x is in %.2f %%, y in %.2f %%", x, y);
	/*
	 * Those that did not stop in time are read as they run. 3.13t specialises no calls, so that what was called is
	 * not to be told there by the caller's bytecode (py/unwind_known.c).
	 */
	check(number_before(run->err, " torn") <
		      (python->free_threaded && python->minor == 13 ? 0.2 : 0.02) * run->report.samples,
	      "torn: %s", run->err);
	check_runs(target->pid);
}

LIVE_TEST(readv, blocking_and_killed)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py");

	for (int i = 0; i < 8; i++) {
		struct child *child = profiler("-p", pid_text(target->pid), "-d", "60", "-r", "20000", "-q",
					       "--engine=readv", "--blocking");

		usleep(300000 + i * 7919);
		kill(child->pid, SIGKILL);
		child__wait(child, 10);
		check_runs(target->pid);
	}
}

/* --- the frame marker --- */

static struct run *run_marked(struct target *target)
{
	return words(profiler_path(), "-p", pid_text(target->pid), "-d", "0.5", "-r", "999", "-q",
		     "--engine=readv", "--frame-marker", "--stats");
}

LIVE_TEST(readv, frame_marker)
{
	struct target *target = start(pick("3.15", "debian"), "deep.py", .args = {"3000"});
	static const int signals[] = {SIGINT, SIGTERM, SIGSEGV, SIGABRT};
	struct run *run = profile(target, .args = {"--engine=readv", "--frame-marker"});

	check(percent(run, stacks__with(&run->stacks, "down")) > 99, "down is in %.2f %%",
	      percent(run, stacks__with(&run->stacks, "down")));
	run = run_marked(target);
	check(run->code == 0, "its own marker was left: %s", run->err);
	check(number_before(run->err, " stacks read down to one") > 50, "the marker was not used: %s",
	      run->err);
	/* On every way out that leaves time for it, it is taken away. */
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct child *child = profiler("-p", pid_text(target->pid), "-d", "60", "-r", "999", "-q",
					       "--engine=readv", "--frame-marker");

		usleep(700000);
		kill(child->pid, signals[i]);
		child__wait(child, 10);
		run = run_marked(target);
		check(run->code == 0, "after signal %d: %s", signals[i], run->err);
	}
}

LIVE_TEST(readv, frame_marker_of_another_profiler)
{
	struct target *target = start(pick("3.15", "debian"), "deep.py", .args = {"3000"});
	struct child *first = profiler("-p", pid_text(target->pid), "-d", "60", "-r", "999", "-q",
				       "--engine=readv", "--frame-marker");
	struct run *run;

	usleep(700000);
	run = run_marked(target);
	check(run->code == 1, "exit code %d: %s", run->code, run->err);
	check_has(run->err, "another profiler");
	kill(first->pid, SIGINT);
	check(child__wait(first, 10), "it does not end");
	run = run_marked(target);
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
}

/* --- what it says --- */

LIVE_TEST(readv, statistics)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py");
	struct run *run = profile(target, .args = {"--engine=readv", "--stats"});

	check(number_before(run->err, " calls, ") > 0, "no calls: %s", run->err);
	check(number_before(run->err, " predicted, ") > 0.9 * number_before(run->err, " read: "),
	      "the stacks of a program that does one thing are not predicted: %s", run->err);
	check(!strstr(run->err, "in the kernel"), "it cannot know: %s", run->err);
}
