/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is in a cgroup, of version 2 and 1: what is put there later, or in one that is made later, too; what
 * is taken out, not any more; and nobody else.
 */
#include "groups.h"
#include "service.h"

#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILED = 1, NOT_PYTHON = 3 };

static struct target *spin_in(const char *group)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");

	enter_group(group, target->pid);
	return target;
}

static void put_into(const char *group, const char *name, const char *text)
{
	char path[CHILD_PATH];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	write_file(path, text);
}

static void put_number_into(const char *group, const char *name, pid_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	put_into(group, name, text);
}

/* pybpfprof --cgroup GROUP ..., until its first sample */
static struct child *begin(struct service *service)
{
	struct child *child = service__begin(service);

	check(child__wait_message(child, "first sample", 60), "no first sample: %s", child__err(child));
	return child;
}

static void check_spins(const struct run *run, const struct target *target, uint64_t least)
{
	uint64_t weight = of_process(run, target->pid, "spin");

	check(weight >= least, "process %d has %llu samples: %s", target->pid, (unsigned long long)weight,
	      run->err);
}

static void check_absent(const struct run *run, const struct target *target)
{
	check(!of_process(run, target->pid, NULL), "process %d is in the profile: %s", target->pid, run->err);
}

/* Somebody else, one there from the start, and what comes later: into it, and into one below that is made
 * later. */
static void check_members(const char *mount)
{
	const char *group = make_group(mount, NULL);
	struct target *stranger = start(pick("3.13", "debian"), "spin.py");
	struct target *first = spin_in(group), *second, *third;
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-d", "3", "--cgroup", group));
	struct child *child = begin(service);
	struct run *run;

	second = spin_in(group);
	third = spin_in(make_group(make_group(group, "late"), "r"));
	run = service__finish(child, service);
	check_profile(run, 0);
	check_spins(run, first, 10);
	check_spins(run, second, 10);
	check_spins(run, third, 10);
	check_absent(run, stranger);
}

GROUP_TEST(cgroups, unified)
{
	check_members(unified_mount());
}

GROUP_TEST(cgroups, legacy)
{
	check_members(legacy_mount());
}

/* A process that is told when it is in, out, and in again. */
#define STAGES                                                                                               \
	"import os, signal\n"                                                                                \
	"stage = 0\n"                                                                                        \
	"def next_stage(*ignored):\n"                                                                        \
	"    global stage\n"                                                                                 \
	"    stage += 1\n"                                                                                   \
	"signal.signal(signal.SIGUSR1, next_stage)\n"                                                        \
	"signal.alarm(100)\n"                                                                                \
	"def inside():\n"                                                                                    \
	"    while stage == 0: sum(range(200))\n"                                                            \
	"def outside():\n"                                                                                   \
	"    while stage == 1: sum(range(200))\n"                                                            \
	"def again():\n"                                                                                     \
	"    print('again', flush=True)\n"                                                                   \
	"    while stage == 2: sum(range(200))\n"                                                            \
	"print('ready', flush=True)\n"                                                                       \
	"inside(); outside(); again()\n"

static void check_moves(const char *mount)
{
	const char *group = make_group(mount, NULL), *other = make_group(mount, "pybpfprof-live-other");
	struct target *stays = spin_in(group);
	struct target *moves = target__start(
		&(struct start){.python = pick("3.14", "debian"), .program = "moves.py", .text = STAGES});
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-d", "5", "--cgroup", group));
	struct child *child;
	struct run *run;

	enter_group(group, moves->pid);
	child = begin(service);
	pause_for(0.5);
	enter_group(other, moves->pid);
	check(child__wait_message(child, "is not in the cgroup any more", 3), "it does not notice: %s",
	      child__err(child));
	kill(moves->pid, SIGUSR1);
	pause_for(0.5);
	kill(moves->pid, SIGUSR1);
	check(child__wait_line(moves->child, "again", 10), "the target does not go on");
	enter_group(group, moves->pid);
	run = service__finish(child, service);
	check_profile(run, 0);
	check_spins(run, stays, 10);
	check(stacks__with(&run->stacks, "inside") > 5 && stacks__with(&run->stacks, "again") > 5,
	      "inside has %llu samples, again %llu: %s",
	      (unsigned long long)stacks__with(&run->stacks, "inside"),
	      (unsigned long long)stacks__with(&run->stacks, "again"), run->err);
	check(!stacks__with(&run->stacks, "outside"), "outside has %llu samples: %s",
	      (unsigned long long)stacks__with(&run->stacks, "outside"), run->err);
	check(strstr(run->err, "1 process while profiled"), "it does not say that one left: %s", run->err);
}

/* Their time off the CPU, too: a thread that is in there sleeps for the whole time, and one that is not counts for
 * nothing. */
GROUP_TEST(cgroups, waits)
{
	static const char text[] = "import signal, time\n"
				   "signal.alarm(100)\n"
				   "def waits():\n"
				   "    while True: time.sleep(0.05)\n"
				   "print('ready', flush=True)\n"
				   "waits()\n";
	struct start start = {.python = pick("3.14", "debian"), .program = "waits.py", .text = text};
	const char *group = make_group(unified_mount(), NULL);
	struct target *member = target__start(&start), *stranger = target__start(&start);
	struct run *run;

	enter_group(group, member->pid);
	run = service__run(
		service__profiled(OPTIONS("-q", "--mode", "offcpu", "-d", "2", "--cgroup", group)));
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	/* Microseconds. */
	check(stacks__with(&run->stacks, "waits") > 1700000 && stacks__with(&run->stacks, "waits") < 2200000,
	      "it has waited for %llu us: %s", (unsigned long long)stacks__with(&run->stacks, "waits"), run->err);
	check_absent(run, stranger);
	/* One that is taken to be asleep all along would come to the same time. */
	if (!by_readv())
		check(number_before(run->err, " told of") > 20, "it was not told of them: %s", run->err);
}

GROUP_TEST(cgroups, moves)
{
	check_moves(unified_mount());
}

GROUP_TEST(cgroups, moves_of_v1)
{
	check_moves(legacy_mount());
}

/* What its members start is in it, too. */
GROUP_TEST(cgroups, forks)
{
	const char *group = make_group(unified_mount(), NULL);
	struct target *target = start(pick("3.14", "debian"), "forks.py", .args = {"1", "2"});
	struct run *run;

	enter_group(group, target->pid); /* the child that it has already stays where it is */
	run = service__run(service__profiled(OPTIONS("-q", "-d", "4", "--cgroup", group)));
	check_profile(run, 0);
	check(processes_with(run, "child") == 1, "%zu children: %s", processes_with(run, "child"), run->err);
	check(stacks__with(&run->stacks, "child") > 10, "child has %llu samples: %s",
	      (unsigned long long)stacks__with(&run->stacks, "child"), run->err);
}

/* Started in it by somebody outside, as some supervisors do: neither a fork of a member nor a move. */
static pid_t spin_started_in(const char *group)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	char line[2 * CHILD_PATH];
	pid_t pid;

	snprintf(line, sizeof(line), "exec %s -c 'while True: sum(range(200))' >/dev/null 2>&1",
		 pick("3.14", "debian")->command);
	args.cgroup = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	close(args.cgroup);
	check(pid > 0, "clone3: %s", strerror(errno));
	return pid;
}

GROUP_TEST(cgroups, started_in_it)
{
	const char *group = make_group(unified_mount(), NULL);
	struct target *first = spin_in(group);
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-d", "3", "--cgroup", group));
	struct child *child = begin(service);
	pid_t pid = spin_started_in(group);
	struct run *run = service__finish(child, service);

	check_profile(run, 0);
	check_spins(run, first, 10);
	check(of_process(run, pid, "<module>") >= 10, "process %d has %llu samples: %s", pid,
	      (unsigned long long)of_process(run, pid, "<module>"), run->err);
}

/* With names that are to be escaped somewhere, one within the other, and asked for twice: each sample counts
 * once. */
GROUP_TEST(cgroups, nested_with_odd_names)
{
	const char *group = make_group(unified_mount(), NULL);
	const char *odd = make_group(group, "a \\040\\x2db\t\x1b[31m (deleted)");
	struct target *outer = spin_in(group), *inner = spin_in(make_group(odd, "in"));
	struct run *run = service__run(service__profiled(
		OPTIONS("-q", "-d", "2", "--cgroup", group, "--cgroup", odd, "--cgroup", odd)));
	double given;

	check_profile(run, 0);
	check_spins(run, outer, 10);
	check_spins(run, inner, 10);
	given = number_before(run->err, " given");
	check(given < 1200, "%.1f samples a second were given: %s", given, run->err);
	run = service__run(service__profiled(OPTIONS("-q", "-d", "1", "--cgroup", odd)));
	check_profile(run, 0);
	check_spins(run, inner, 10);
	check_absent(run, outer);
}

/* By the end of its path, if only one has it. */
GROUP_TEST(cgroups, found_by_name)
{
	const char *group = make_group(unified_mount(), NULL);
	struct target *target = spin_in(make_group(group, "pybpfprof-live.slice"));
	struct run *run =
		service__run(service__profiled(OPTIONS("-q", "-d", "1", "--cgroup", "pybpfprof-live.slice")));

	check_profile(run, 0);
	check_spins(run, target, 10);
	make_group(make_group(group, "other"), "pybpfprof-live.slice");
	run = service__run(service__profiled(OPTIONS("-q", "-d", "1", "--cgroup", "pybpfprof-live.slice")));
	check(run->code == FAILED, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "several have that name") && strstr(run->err, "/other/pybpfprof-live.slice"),
	      "it says: %s", run->err);
}

/* Nobody in it is an error, and so is no Python. */
GROUP_TEST(cgroups, empty)
{
	const char *group = make_group(unified_mount(), NULL);
	struct child *sleeper =
		child__start(&(struct child_config){.argv = (const char *const[]){"sleep", "100", NULL}});
	struct run *run = service__run(service__profiled(OPTIONS("-d", "1", "--cgroup", group)));

	check(run->code == FAILED && strstr(run->err, "no process is in that cgroup"), "exit code %d: %s",
	      run->code, run->err);
	run = service__run(
		service__profiled(OPTIONS("-d", "1", "--cgroup", "/sys/fs/cgroup/no-such-cgroup")));
	check(run->code == FAILED && strstr(run->err, "no such directory"), "exit code %d: %s", run->code,
	      run->err);
	run = service__run(service__profiled(OPTIONS("-d", "1", "--cgroup", "/tmp")));
	check(run->code == FAILED && strstr(run->err, "no directory of a cgroup"), "exit code %d: %s",
	      run->code, run->err);
	enter_group(group, sleeper->pid);
	run = service__run(service__profiled(OPTIONS("-d", "1", "--cgroup", group)));
	check(run->code == NOT_PYTHON &&
		      strstr(run->err, "no Python that can be profiled was found in the cgroup"),
	      "exit code %d: %s", run->code, run->err);
}

/* Threads of one process in several: it is where its main thread is, as a whole. */
GROUP_TEST(cgroups, of_threads)
{
	static const char text[] = "import signal, threading\n"
				   "signal.alarm(100)\n"
				   "def elsewhere():\n"
				   "    while True: sum(range(200))\n"
				   "def inside():\n"
				   "    while True: sum(range(200))\n"
				   "threading.Thread(target=elsewhere, daemon=True).start()\n"
				   "print('ready', flush=True)\n"
				   "inside()\n";
	const char *group = make_group(unified_mount(), NULL);
	const char *first = make_group(group, "first"), *second = make_group(group, "second");
	struct target *target = target__start(
		&(struct start){.python = pick("3.14", "debian"), .program = "threads.py", .text = text});
	struct proc_tasks tasks;
	struct run *run;

	enter_group(group, target->pid);
	check(!proc__tasks(target->pid, &tasks) && tasks.tids.len == 2, "no threads of %d", target->pid);
	put_into(first, "cgroup.type", "threaded");
	put_into(second, "cgroup.type", "threaded");
	put_number_into(first, "cgroup.threads", target->pid);
	put_number_into(second, "cgroup.threads", tasks.tids.items[0] + tasks.tids.items[1] - target->pid);
	vec__free(&tasks.tids);
	run = service__run(service__profiled(OPTIONS("-q", "-d", "1", "--cgroup", first)));
	check_profile(run, 0);
	check(stacks__with(&run->stacks, "inside") > 5 && stacks__with(&run->stacks, "elsewhere") > 5,
	      "inside has %llu samples, elsewhere %llu: %s",
	      (unsigned long long)stacks__with(&run->stacks, "inside"),
	      (unsigned long long)stacks__with(&run->stacks, "elsewhere"), run->err);
	run = service__run(service__profiled(OPTIONS("-q", "-d", "1", "--cgroup", second)));
	check(run->code == FAILED && strstr(run->err, "only threads"), "exit code %d: %s", run->code,
	      run->err);
}

/* The run ends with the last of them, if it was not for a time. */
GROUP_TEST(cgroups, its_end)
{
	const char *group = make_group(unified_mount(), NULL);
	struct target *target = spin_in(group);
	struct service *service = service__profiled(OPTIONS("-q", "-v", "--cgroup", group));
	struct child *child = begin(service);
	struct run *run;

	pause_for(0.5);
	target__end(target);
	run = service__finish(child, service);
	check_profile(run, 0);
	check_spins(run, target, 10);
	check(strstr(run->err, "all processes have ended"), "it says: %s", run->err);
}

/* As a service that is started again: another cgroup of the same name. */
GROUP_TEST(cgroups, made_anew)
{
	const char *group = make_group(unified_mount(), NULL);
	struct target *first = spin_in(group), *second;
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-d", "4", "--cgroup", group));
	struct child *child = begin(service);
	struct run *run;

	pause_for(0.5);
	target__end(first);
	remove_group(group);
	second = spin_in(make_group(unified_mount(), NULL));
	run = service__finish(child, service);
	check_profile(run, 0);
	check_spins(run, first, 10);
	check_spins(run, second, 10);
}

/* Whoever else runs is not interrupted: the program runs for members only, and not on CPUs where none does.
 */
GROUP_TEST(cgroups, only_members_are_interrupted)
{
	const char *group;
	struct run *run;
	double ticks;

	if (by_readv())
		cr_skip_test("SKIPPED: the readv engine has no timers");
	group = make_group(unified_mount(), NULL);
	for (long i = sysconf(_SC_NPROCESSORS_ONLN); i > 0; i--)
		start(pick("3.13", "debian"), "spin.py");
	spin_in(group);
	run = service__run(service__profiled(OPTIONS("-q", "-v", "-d", "3", "--cgroup", group)));
	check_profile(run, 0);
	ticks = number_before(run->err, " ticks");
	check(ticks >= run->stacks.total && ticks <= 1.1 * run->stacks.total + 20,
	      "%.0f ticks for %llu samples: %s", ticks, (unsigned long long)run->stacks.total, run->err);
}
