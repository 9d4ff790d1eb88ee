/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time off the CPU: how much of it, in which line, and why. Totals are compared with the clock of the target,
 * or with the time of the run, so that it does not matter how busy the machine is.
 */
#include "service.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds of the stacks that begin with these names, and end in `reason` if that is not NULL. */
static double seconds_of(const struct run *run, const char *names, const char *reason)
{
	uint64_t sum = 0;
	size_t len = strlen(names);

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		char text[1024] = "";

		for (size_t frame = 0; frame < stack->len && strlen(text) < 800; frame++) {
			strncat(text, stack->frames[frame].name, 100);
			strcat(text, ";");
		}
		if (!strncmp(text, names, len) && (!names[0] || text[len] == ';') &&
		    (!reason || !strcmp(stack__leaf(stack)->name, reason)))
			sum += stack->weight;
	}
	return sum / 1e6;
}

static double total(const struct run *run)
{
	return run->stacks.total / 1e6;
}

static void check_near(double got, double want, double percent, const char *what)
{
	check(fabs(got - want) <= want * percent / 100 + 0.001, "%s: %.4f s, should be %.4f", what, got,
	      want);
}

/* The duration as the report has it; one decimal there, so it is read from the JSON. */
static double elapsed(const char *report)
{
	char *text = read_text(report);
	const char *at = strstr(text, "\"duration_s\": ");
	double seconds = at ? strtod(at + 14, NULL) : -1;

	free(text);
	check(seconds > 0, "%s has no duration", report);
	return seconds;
}

/* How far a total may be off, in percent. The readv engine is late for its ticks on a busy machine. */
static double allowed(void)
{
	return by_readv() ? 12 : 1;
}

struct timed {
	struct run *run;
	double elapsed;
};

static struct timed profile_time(const struct target *target, const char *mode, double seconds,
				 const char *option)
{
	const char *folder = scratch_folder("");
	char pid[16], duration[16], file[CHILD_PATH], report[CHILD_PATH];
	const char *words[24] = {"-p", pid,  "-d",  duration, "--mode",	  mode,	 "-o",
				 file, "-r", "499", "-q",     "--report", report};
	size_t count = 13;
	struct timed timed;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(duration, sizeof(duration), "%.3f", seconds);
	snprintf(file, sizeof(file), "%s/time.collapsed", folder);
	snprintf(report, sizeof(report), "%s/time.json", folder);
	if (by_readv())
		words[count++] = "--engine=readv";
	if (option)
		words[count++] = option;
	timed.run = profiler__finish(profiler__start(words), file);
	check(timed.run->code == 0, "exit code %d", timed.run->code);
	timed.elapsed = elapsed(report);
	return timed;
}

static bool is_on_line(const struct stack *stack, const char *function, const char *reason, unsigned int line)
{
	return stack->len >= 2 && !strcmp(stack->frames[stack->len - 1].name, reason) &&
	       !strcmp(stack->frames[stack->len - 2].name, function) &&
	       stack->frames[stack->len - 2].line == line;
}

static double seconds_on_line(const struct run *run, const char *function, const char *reason,
			      const char *mark)
{
	unsigned int line;
	uint64_t sum = 0;

	marked_lines("waits.py", mark, &line, 1);
	for (size_t i = 0; i < run->stacks.len; i++)
		if (is_on_line(&run->stacks.items[i], function, reason, line))
			sum += run->stacks.items[i].weight;
	return sum / 1e6;
}

static const struct {
	const char *function, *names, *reason, *mark;
} WAYS[] = {{"nap", "<module>;run;nap", "[sleep]", "NAP"},
	    {"take", "<module>;run;take", "[lock]", "TAKE"},
	    {"watch", "<module>;run;watch", "[I/O: epoll_wait]", "WATCH"},
	    {"receive", "<module>;run;receive", "[I/O: recvfrom]", "RECEIVE"}};

/* Of its whole life, by its own clock. */
EACH_PYTHON(offcpu, four_ways)
{
	char *text = read_text("tests/targets/waits.py");
	struct service *service = service__command(python, OPTIONS("-q", "-v", "--mode", "offcpu"), text);
	struct run *run;
	double taken[4], beside;

	if (by_readv())
		cr_skip("it finds a command late: four_ways_by_ticks");
	service__add(service, "1");
	run = service__run(service);
	free(text);
	check(run->code == 0, "exit code %d", run->code);
	check(strstr(run->out, "waits ") && sscanf(strstr(run->out, "waits "), "waits %lf %lf %lf %lf",
						   &taken[0], &taken[1], &taken[2], &taken[3]) == 4,
	      "the target said: %s", run->out);
	/* What it waited for a CPU on its way in and out is in the target's times, too. */
	beside = stacks__exactly(&run->stacks, "<module>;run;[waits for a CPU]") / 1e6 + 0.001;
	for (size_t i = 0; i < 4; i++) {
		double got = seconds_of(run, WAYS[i].names, NULL);
		double on_line = seconds_on_line(run, WAYS[i].function, WAYS[i].reason, WAYS[i].mark);

		check(got <= 1.01 * taken[i] && got + beside >= 0.99 * taken[i],
		      "%s: %.4f s (and %.4f beside), should be %.4f; the profiler said: %s", WAYS[i].function,
		      got, beside, taken[i], run->err);
		check(on_line > 0.2 * 0.99, "%s: only %.4f s %s on its line", WAYS[i].function, on_line,
		      WAYS[i].reason);
	}
}

/* A round takes 40 ms, so that it is met in the middle and all the same each has its quarter. */
EACH_KIND(offcpu, four_ways_by_ticks)
{
	struct target *target;
	struct timed timed;

	if (!by_readv())
		cr_skip("four_ways is exact");
	target = start(python, "waits.py", .args = {"1000", "0.01"});
	timed = profile_time(target, "offcpu", 0.6, NULL);
	check_near(total(timed.run), timed.elapsed, allowed(), "all of it");
	for (size_t i = 0; i < 4; i++) {
		double share = seconds_of(timed.run, WAYS[i].names, NULL) / total(timed.run);

		check(share > 0.1 && share < 0.4, "%s has %.1f %%", WAYS[i].function, 100 * share);
	}
}

/* No switch of it is ever seen. */
EACH_PYTHON(offcpu, asleep_all_along)
{
	struct timed timed = profile_time(start(python, "idle.py"), "offcpu", 0.5, NULL);
	unsigned int line;

	marked_lines("idle.py", "WAIT", &line, 1);
	check_near(seconds_of(timed.run, "<module>;wait", "[sleep]"), timed.elapsed, allowed(), "wait");
	check_near(total(timed.run), timed.elapsed, allowed(), "all of it");
	check(timed.run->stacks.items[0].frames[1].line == line, "line %u",
	      timed.run->stacks.items[0].frames[1].line);
}

/* By a signal before the run. */
LIVE_TEST(offcpu, stopped)
{
	struct target *target = start(pick("3.13", "debian"), "idle.py");
	struct timed timed;

	kill(target->pid, SIGSTOP);
	for (int i = 0; i < 100 && process_state(target->pid) != 'T'; i++)
		pause_for(0.05);
	timed = profile_time(target, "offcpu", 0.4, NULL);
	kill(target->pid, SIGCONT);
	check_near(seconds_of(timed.run, "<module>;wait", "[stopped]"), timed.elapsed, allowed(), "stopped");
}

static const char HELD_UP[] = "import fcntl, os, signal, threading, time, tempfile\n"
			      "file = tempfile.NamedTemporaryFile()\n"
			      "there, here = os.pipe()\n"
			      "parent = os.getpid()\n"
			      "if os.fork() == 0:\n"
			      "    signal.alarm(100)\n"
			      "    held = open(file.name, 'r+')\n"
			      "    fcntl.lockf(held, fcntl.LOCK_EX)\n"
			      "    os.write(here, b'.')\n"
			      "    os.close(here)\n"
			      "    while os.getppid() == parent: time.sleep(0.1)\n"
			      "    os._exit(0)\n"
			      "os.read(there, 1)\n"
			      "lock = threading.Lock()\n"
			      "lock.acquire()\n"
			      "def timed(): lock.acquire(timeout=1000)\n"
			      "def filed(): fcntl.lockf(open(file.name, 'r+'), fcntl.LOCK_EX)\n"
			      "def signalled(): signal.sigtimedwait([signal.SIGUSR1], 1000)\n"
			      "for f in (timed, filed): threading.Thread(target=f, daemon=True).start()\n"
			      "time.sleep(0.2)\n"
			      "print('ready', flush=True)\n"
			      "signalled()\n";

/* A stop in the middle is told as such, and afterwards each waits for the same as before. */
LIVE_TEST(offcpu, stopped_meanwhile)
{
	static const struct {
		const char *names, *reason;
	} ways[] = {{"timed", "[lock]"}, {"filed", "[lock]"}, {"signalled", "[sleep]"}};
	struct target *target = start(pick("3.13", "debian"), "held_up.py", .text = HELD_UP);
	const char *folder = scratch_folder("");
	char pid[16], file[CHILD_PATH];
	struct child *child;
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(file, sizeof(file), "%s/x.collapsed", folder);
	child = profiler("-p", pid, "--mode", "offcpu", "-r", "99", "-o", file, "-v",
			 by_readv() ? "--engine=readv" : "--engine=bpf");
	check(child__wait_message(child, "process: ", 20), "it does not start: %s", child__err(child));
	pause_for(0.2);
	kill(target->pid, SIGSTOP);
	pause_for(0.3);
	kill(target->pid, SIGCONT);
	pause_for(0.3);
	kill(child->pid, SIGINT);
	run = profiler__finish(child, file);
	for (size_t i = 0; i < 3; i++) {
		double stopped = 0, waited = 0, other = 0;

		for (size_t k = 0; k < run->stacks.len; k++) {
			const struct stack *stack = &run->stacks.items[k];
			const char *leaf = stack__leaf(stack)->name;
			double *sum = !strcmp(leaf, "[stopped]")	? &stopped
				      : !strcmp(leaf, ways[i].reason) ? &waited
								      : &other;

			*sum += stack__count(stack, ways[i].names) ? stack->weight / 1e6 : 0;
		}
		check(stopped > 0.2 && waited > 0.3, "%s: stopped for %.3f s, %s for %.3f", ways[i].names, stopped,
		      ways[i].reason, waited);
		check(other < 0.05 * (stopped + waited), "%s: %.3f s of something else: %s", ways[i].names, other,
		      run->out);
	}
}

#define THREADS 20

EACH_KIND(offcpu, wall_is_all_the_time_of_all_threads)
{
	struct target *target = start(python, "crowd.py", .args = {"20"});
	struct timed timed = profile_time(target, "wall", 0.6, NULL);
	double points = allowed(), on_cpu;

	check_near(total(timed.run), (THREADS + 2) * timed.elapsed, points, "all of it");
	check_near(seconds_of(timed.run, "<module>;start;wait", "[sleep]"), timed.elapsed, points, "main");
	on_cpu = total(timed.run);
	for (size_t i = 0; i < timed.run->stacks.len; i++)
		if (stack__leaf(&timed.run->stacks.items[i])->name[0] == '[')
			on_cpu -= timed.run->stacks.items[i].weight / 1e6;
	check(on_cpu > 0.02 * timed.elapsed && on_cpu < 0.8 * timed.elapsed, "%.3f s on the CPU", on_cpu);
}

/* Snapshots and the end: what goes on is counted once. */
LIVE_TEST(offcpu, snapshots)
{
	struct target *target = start(pick("3.13", "debian"), "idle.py");
	const char *folder = scratch_folder("");
	char pid[16], file[CHILD_PATH], report[CHILD_PATH];
	struct stacks stacks;
	struct child *child;
	struct run *run;
	double began;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(file, sizeof(file), "%s/x.collapsed", folder);
	snprintf(report, sizeof(report), "%s/x.json", folder);
	child = profiler("-p", pid, "--mode", "offcpu", "-o", file, "-q", "-v", "--report", report);
	check(child__wait_message(child, "process: ", 20), "it does not start: %s", child__err(child));
	pause_for(0.3);
	began = seconds_now();
	for (int i = 0; i < 3; i++) {
		kill(child->pid, SIGUSR1);
		for (int turn = 0; turn < 200 && access(file, F_OK); turn++)
			pause_for(0.05);
		check(child__wait_message(child, "snapshot of 1 samples", 20), "no snapshot: %s",
		      child__err(child));
		check(!stacks__parse(&stacks, file), "%s", file);
		unlink(file);
		pause_for(0.1);
	}
	check(stacks.total / 1e6 > 0.2 && stacks.total / 1e6 < seconds_now() - began + 20, "%.3f s",
	      stacks.total / 1e6);
	kill(child->pid, SIGINT);
	run = profiler__finish(child, file);
	check_near(total(run), elapsed(report), 1, "in the end");
}

static const char GIL[] = "import threading\n"
			  "def burn():\n"
			  "    while True: sum(range(200))\n"
			  "for _ in range(2): threading.Thread(target=burn, daemon=True).start()\n"
			  "print('ready', flush=True)\n"
			  "threading.Event().wait(100)\n";

/* Of two threads that want to run, one waits for the GIL at any time; or for a CPU, once it has been woken to
 * ask. */
EACH_KIND(offcpu, gil)
{
	struct target *target = start(python, "gil.py", .text = GIL);
	struct timed timed = profile_time(target, "wall", 0.6, NULL);
	double waited = seconds_of(timed.run, "", "[GIL]");

	check_near(total(timed.run) + timed.run->report.lost / 499, 3 * timed.elapsed, allowed() + 1,
		   "three threads");
	/* The readv engine looks at the thread a moment before it reads its stack. */
	for (size_t i = 0; i < timed.run->stacks.len && !by_readv(); i++)
		check(strcmp(stack__leaf(&timed.run->stacks.items[i])->name, "[GIL]") ||
			      stack__count(&timed.run->stacks.items[i], "burn"),
		      "for the GIL: %s", stack__text(&timed.run->stacks.items[i]));
	if (python->free_threaded)
		check(waited == 0, "%.3f s for a GIL that is not there", waited);
	else
		check(waited > 0.05 * timed.elapsed && waited < 1.1 * timed.elapsed, "%.3f s for the GIL",
		      waited);
}

/* Tens of thousands of switches a second: not all are walked, and the sum is exact all the same. */
LIVE_TEST(offcpu, storm)
{
	struct target *target = start(pick("3.14", "debian"), "pingpong.py");
	struct timed timed = profile_time(target, "offcpu", 1.5, NULL);
	double asked = seconds_of(timed.run, "<module>;run;ask", NULL);

	check(total(timed.run) <= timed.elapsed * 1.001, "%.3f s off the CPU in %.3f", total(timed.run),
	      timed.elapsed);
	check(asked > 0.8 * total(timed.run), "ask has %.3f of %.3f s", asked, total(timed.run));
	check(seconds_of(timed.run, "<module>;run", NULL) > 0.97 * total(timed.run), "run has %.3f of %.3f s",
	      seconds_of(timed.run, "<module>;run", NULL), total(timed.run));
	check(by_readv() || strstr(timed.run->err, "they stand for"), "it says: %s", timed.run->err);
}

static const char SELDOM[] = "import os, time\n"
			     "there, back = os.pipe(), os.pipe()\n"
			     "if os.fork() == 0:\n"
			     "    os.close(there[1])\n"
			     "    while True:\n"
			     "        byte = os.read(there[0], 1)\n"
			     "        if not byte: os._exit(0)\n"
			     "        if byte == b's': time.sleep(0.25)\n"
			     "        os.write(back[1], b'.')\n"
			     "os.close(there[0])\n"
			     "def quick():\n"
			     "    os.write(there[1], b'q')\n"
			     "    os.read(back[0], 1)\n"
			     "def slow():\n"
			     "    os.write(there[1], b's')\n"
			     "    os.read(back[0], 1)\n"
			     "taken = 0\n"
			     "for _ in range(4):\n"
			     "    for _ in range(20000): quick()\n"
			     "    t = time.monotonic()\n"
			     "    slow()\n"
			     "    taken += time.monotonic() - t\n"
			     "print('slow %.6f' % taken, flush=True)\n";

/* Of more threads than CPUs some are ready to run, and asleep in nothing, when they are attached to. */
LIVE_TEST(offcpu, ready_before)
{
	static const char text[] = "import hashlib, threading, time\n"
				   "data = bytes(1 << 22)\n"
				   "def work():\n"
				   "    while True: hashlib.sha256(data)\n"
				   "for _ in range(8): threading.Thread(target=work, daemon=True).start()\n"
				   "print('ready', flush=True)\n"
				   "time.sleep(1000)\n";
	struct target *target = start(pick("3.11", "pyenv"), "busy.py", .text = text);
	struct timed timed = profile_time(target, "offcpu", 0.4, "--engine=bpf");

	check(seconds_of(timed.run, "[stack not taken]", "[in the kernel]") == 0, "they waited for no CPU");
	check_near(total(timed.run) + timed.run->report.cpu_s, 9 * timed.elapsed, 5, "nine threads");
}

/* Waits that look like all the short ones before, and are not: while they last they are read from outside. */
LIVE_TEST(offcpu, long_among_short)
{
	struct service *service =
		service__command(pick("3.13", "debian"), OPTIONS("-q", "--mode", "offcpu"), SELDOM);
	struct run *run = service__run(service);
	double taken, without = seconds_of(run, "[stack not taken]", NULL);

	check(run->code == 0, "exit code %d", run->code);
	check(strstr(run->out, "slow ") && sscanf(strstr(run->out, "slow "), "slow %lf", &taken) == 1,
	      "the target said: %s", run->out);
	check_near(seconds_of(run, "<module>;slow", NULL), taken, by_readv() ? 12 : 5, "slow");
	check(without < 0.05 * total(run), "%.3f of %.3f s without a stack", without, total(run));
}

LIVE_TEST(offcpu, idle_ones_hidden)
{
	struct target *target = start(pick("3.14", "debian"), "workers.py");
	struct timed timed = profile_time(target, "wall", 0.7, "--idle=hide");
	double points = allowed();

	check_near(total(timed.run), timed.elapsed, points, "without idle ones");
	check_near(seconds_of(timed.run, "<module>;wait", "[sleep]"), timed.elapsed, points, "main");
	check_near(number_before(timed.run->err, " s hidden"), 8 * timed.elapsed, points, "hidden");
	timed = profile_time(target, "wall", 0.7, "--idle=show");
	check_near(total(timed.run), 9 * timed.elapsed, points, "with idle ones");
	target = start(pick("3.8", "pyenv"), "workers.py", .args = {"busy"});
	timed = profile_time(target, "wall", 0.4, "--idle=hide");
	check_near(total(timed.run), 2 * timed.elapsed, points, "and a loop that is kept waiting");
	check_near(number_before(timed.run->err, " s hidden"), 7 * timed.elapsed, points, "hidden then");
}

/* Children that are asleep are told of from their birth on. */
LIVE_TEST(offcpu, subprocesses)
{
	static const char text[] = "import os, time\n"
				   "def child(): time.sleep(0.5)\n"
				   "def parent():\n"
				   "    if os.fork() == 0:\n"
				   "        child()\n"
				   "        os._exit(0)\n"
				   "    os.wait()\n"
				   "parent()\n";
	struct service *service =
		service__command(pick("3.13", "debian"), OPTIONS("-q", "-s", "--mode", "offcpu"), text);
	struct run *run = service__run(service);
	double child = 0, parent = 0;

	check(run->code == 0, "exit code %d", run->code);
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		if (stack__ends_in(stack, "parent;child;[sleep]"))
			child += stack->weight / 1e6;
		if (stack__ends_in(stack, "<module>;parent;[child process]"))
			parent += stack->weight / 1e6;
	}
	check(child >= (by_readv() ? 0.4 : 0.495) && child < 0.6, "the child slept for %.3f s", child);
	check(parent >= (by_readv() ? 0.3 : 0.49) && parent < 2, "its parent waited for %.3f s", parent);
}

LIVE_TEST(offcpu, thread_names)
{
	struct target *target = start(pick("3.14", "debian"), "crowd.py", .args = {"3"});
	struct timed timed = profile_time(target, "wall", 0.5, "-t");
	size_t threads = 0;

	for (size_t i = 0; i < timed.run->stacks.len; i++) {
		const struct stack *stack = &timed.run->stacks.items[i];
		const char *name = stack->frames[0].name;

		check(!strncmp(name, "thread ", 7) && !strstr(name, "()"), "a thread without a name: %s",
		      stack__text(stack));
		if (stack__count(stack, "doze"))
			threads++;
	}
	check(threads == 3, "%zu threads doze", threads);
}
