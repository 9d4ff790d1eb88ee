/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Targets that do not run: stopped, frozen, being debugged, over but not waited for. They are read as any
 * other; that nothing was sampled is told with the reason.
 */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 1 };

static char cgroup[CHILD_PATH]; /* that was made; "": none */

static int write_word(const char *file, const char *word)
{
	char path[CHILD_PATH + 64];
	int fd, err;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = fd < 0 || write(fd, word, strlen(word)) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

/* What is frozen the old way does not even die. */
static void thaw_and_clean_up(void)
{
	if (cgroup[0])
		write_word("freezer.state", "THAWED");
	clean_up();
	for (int i = 0; cgroup[0] && rmdir(cgroup) && errno == EBUSY && i < 1000; i++)
		pause_for(0.002);
}

#define STATE_TEST(name) Test(states, name, .fini = thaw_and_clean_up, .timeout = 240)

static const char *number(pid_t pid)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return text;
}

/* Half a second: no samples, by either engine. */
static struct run *sample_nothing(pid_t pid)
{
	struct service *service = service__profiled(OPTIONS("-d", "0.5", "-p"));
	struct run *run;

	service__add(service, number(pid));
	run = service__run(service);
	check(run->code == FAILED && strstr(run->err, "no samples: "), "exit code %d: %s", run->code,
	      run->err);
	check(access(service->file, F_OK), "there is a profile");
	check(!run->out[0], "stdout has: %s", run->out);
	return run;
}

#define check_said(text, words) check(strstr(text, words), "\"%s\" is not in: %s", words, text)

/* It is told at once, at the end, and by whoever else looks at it; its stacks are there. */
static void check_halted(struct target *target, const char *words, const char *thread)
{
	struct run *run = sample_nothing(target->pid);
	char said[512];

	snprintf(said, sizeof(said), "is %s: there is nothing to sample until it goes on", words);
	check_said(run->err, said);
	snprintf(said, sizeof(said), "no samples: the whole time process %d (%s", target->pid, "");
	check_said(run->err, said);
	snprintf(said, sizeof(said), " looks, one a second: %s; it is so now", words);
	check_said(run->err, said);
	run = profiler_run("dump", "-p", number(target->pid));
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	snprintf(said, sizeof(said), "It is %s\n", words);
	check_said(run->out, said);
	check_said(run->out, thread);
	check_said(run->out, " spin (");
	check_said(run->out, "two readings agree");
	run = profiler_run("dump", "--json", "-p", number(target->pid));
	snprintf(said, sizeof(said), "\"halted\": \"%s\"", words);
	check_said(run->out, said);
	run = profiler_run("doctor", "-p", number(target->pid));
	check(run->code == 0 && strstr(run->out, "  state  "), "exit code %d: %s%s", run->code, run->out,
	      run->err);
}

static void await_state(pid_t pid, char state)
{
	for (int i = 0; process_state(pid) != state && i < 5000; i++)
		pause_for(0.002);
	check(process_state(pid) == state, "it is in state %c", process_state(pid));
}

/* --- by a signal --- */

STATE_TEST(stopped)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");

	kill(target->pid, SIGSTOP);
	await_state(target->pid, 'T');
	check_halted(target, "stopped by a signal (SIGSTOP or the like)", " stopped\n");
	check(process_state(target->pid) == 'T', "it goes on");
	kill(target->pid, SIGCONT);
	profile(target, .seconds = 0.3, .min_samples = 50);
}

/* ... while it is being sampled. What was sampled before and is sampled after makes a profile. */
STATE_TEST(stopped_meanwhile)
{
	struct target *target = start(pick("3.13", "debian"), "spin.py");
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-p"));
	struct child *child;
	struct run *run;

	service__add(service, number(target->pid));
	child = service__begin(service);
	check(child__wait_message(child, "first sample", 60), "no sample: %s", child__err(child));
	kill(target->pid, SIGSTOP);
	check(child__wait_message(child, "is stopped by a signal", 30), "it is not told: %s",
	      child__err(child));
	kill(target->pid, SIGCONT);
	check(child__wait_message(child, "is no longer stopped by a signal", 30), "it is not told: %s",
	      child__err(child));
	kill(child->pid, SIGINT);
	run = service__finish(child, service);
	check_profile(run, 0);
	check_said(run->err, "  halted     process ");
	check(!strstr(run->err, "it is so now"), "it says: %s", run->err);
}

/* Its interpreter is not ready, and will not be. */
STATE_TEST(stopped_at_its_start)
{
	const struct python *python = pick("3.14", "debian");
	struct run *run;
	int status;
	pid_t pid = start_stopped(python, "pass");

	await_state(pid, 'T');
	run = profiler_run("-p", number(pid), "-d", "0.3");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(run->code == FAILED, "exit code %d: %s", run->code, run->err);
	check_said(run->err, "; it is stopped by a signal");
}

/* --- by its cgroup --- */

static void check_frozen(const char *const *folders, const char *file, const char *on)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py");
	char path[CHILD_PATH + 64], words[CHILD_PATH + 64], name[64];

	snprintf(name, sizeof(name), "pybpfprof-test-%d", getpid());
	for (; *folders; folders++) {
		snprintf(cgroup, sizeof(cgroup), "%s/%s", *folders, name);
		snprintf(path, sizeof(path), "%s/%s", cgroup, file);
		if (!mkdir(cgroup, 0755) && !access(path, W_OK))
			break;
		rmdir(cgroup);
		cgroup[0] = '\0';
	}
	if (!*folders)
		cr_skip_test("no cgroup can be made here that freezes");
	check(!write_word("cgroup.procs", number(target->pid)), "it cannot be moved into %s", cgroup);
	check(!write_word(file, on), "it cannot be frozen");
	pause_for(0.1);
	snprintf(words, sizeof(words), "frozen with its cgroup /%s", name);
	check_halted(target, words, " frozen\n");
}

STATE_TEST(frozen)
{
	static const char *const folders[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};

	check_frozen(folders, "cgroup.freeze", "1");
}

STATE_TEST(frozen_the_old_way)
{
	static const char *const folders[] = {"/sys/fs/cgroup/freezer", NULL};

	check_frozen(folders, "freezer.state", "FROZEN");
}

/* --- by a debugger, which is this test --- */

STATE_TEST(traced)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	char words[128], tracer[64];
	struct run *run;
	int status;

	prctl(PR_SET_NAME, "a debugger");
	snprintf(tracer, sizeof(tracer), "process %d (a debugger) traces it", getpid());
	check(!ptrace(PTRACE_SEIZE, target->pid, 0, 0), "it cannot be traced");
	/* As long as it runs, that is nobody's business but of him who wants to trace it, too. */
	run = profile(target, .seconds = 0.5);
	check(!strstr(run->err, "halted") && !strstr(run->err, "traces it"), "it says: %s", run->err);
	run = profiler_run("-p", number(target->pid), "-d", "0.3", "--engine=readv", "--blocking");
	check(run->code == FAILED, "exit code %d: %s", run->code, run->err);
	check_said(run->err, "--blocking");
	check_said(run->err, tracer);

	check(!ptrace(PTRACE_INTERRUPT, target->pid, 0, 0) &&
		      waitpid(target->pid, &status, __WALL) == target->pid,
	      "it does not stop");
	snprintf(words, sizeof(words), "stopped while %s", tracer);
	check_halted(target, words, " stopped\n");
	ptrace(PTRACE_DETACH, target->pid, 0, 0);
}

/* --- over, or nearly --- */

STATE_TEST(zombie)
{
	char expected[64];
	struct run *run;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	check(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT), "it does not end");
	snprintf(expected, sizeof(expected), "is a zombie: process %d, its parent, has not", getpid());
	run = profiler_run("-p", number(pid), "-d", "0.3");
	check_refused(run, FAILED, expected);
	check_refused(profiler_run("-p", number(pid), "-s", "-d", "0.3"), FAILED, "is a zombie");
	check_refused(profiler_run("dump", "-p", number(pid)), FAILED, expected);
	check_refused(profiler_run("doctor", "-p", number(pid)), FAILED, expected);
	waitpid(pid, NULL, 0);
}

/* The kernel holds it until its child calls exec. The child, which has its memory, is a process of its own.
 */
STATE_TEST(in_vfork)
{
	struct target *target = start(pick("3.14", "debian"), "vforked.py");
	struct run *run;

	await_state(target->pid, 'D');
	run = sample_nothing(target->pid);
	check_said(run->err, "uninterruptible sleep");
	run = profiler_run("dump", "-p", number(target->pid));
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	check_said(run->out, " wait_in_vfork (");
}

/* --- threads of processes that are found --- */

static double share(const struct run *run, const char *names)
{
	return percent(run, stacks__ending_in(&run->stacks, shown(names)));
}

#define FOUND .wrapper = {"sh", "-c", "\"$0\" \"$@\" & wait"}

STATE_TEST(found_without_its_main_thread)
{
	struct target *target = start(pick("3.13", "debian"), "mainexit.py", FOUND);
	struct run *run = profile(target, .args = {"-s", "-t"}, .min_samples = 100);

	check(share(run, "Thread.run;work;work.<locals>.inner") > 95, "the workers have %.2f %%",
	      share(run, "Thread.run;work;work.<locals>.inner"));
}

/* Ids and addresses of thread states are used again; the name is the function's, so that both have to agree.
 */
STATE_TEST(found_with_ids_that_repeat)
{
	struct target *target = start(pick("3.14", "debian"), "threads_churn.py", .args = {"redblue"}, FOUND);
	struct run *run =
		profile(target, .args = {"-s", "-t"}, .rate = "4999", .seconds = 1.5, .min_samples = 1000);
	double red = share(run, "Thread.run;red"), blue = share(run, "Thread.run;blue");

	check(red + blue > (by_readv() ? 10 : 30), "red and blue have %.2f %%", red + blue);
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		check(!stack__count(stack, "red") || !stack__count(stack, "blue"),
		      "a stack of two threads: %s", stack__text(stack));
		/* "thread N (red)" is parsed as that of a file. */
		check(stack->len < 2 || !stack__count(stack, "red") || strcmp(stack->frames[1].file, "blue"),
		      "red in the thread that is called blue: %s", stack__text(stack));
	}
}

/* One dies at every moment; the one that lives keeps its share. */
STATE_TEST(found_with_threads_that_end)
{
	struct target *target = start(pick("3.15", "debian"), "threads_churn.py", FOUND);
	struct run *run = profile(target, .args = {"-s"}, .rate = "1999", .min_samples = 500);

	check(share(run, "Thread.run;long") > 20, "long has %.2f %%", share(run, "Thread.run;long"));
}
