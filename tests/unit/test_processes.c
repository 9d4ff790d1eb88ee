/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that come and go: who has a pid now, and what is kept of those that have ended.
 */
#include "run/processes.h"

#include "os/proc.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct processes processes;
static size_t forgotten;

static void stop(void)
{
	processes__free(&processes);
}

TestSuite(processes, .fini = stop);

static struct process *add(pid_t pid)
{
	struct process *process = calloc(1, sizeof(*process));

	cr_assert(process);
	process->pid = pid;
	process->pidfd = -1;
	cr_assert_eq(processes__add(&processes, process), 0);
	return process;
}

static void forget(void *context)
{
	cr_expect_eq(context, &forgotten);
	for (size_t i = 0; i < processes.items.len; i++) {
		cr_expect(!processes.items.items[i]->over || processes.items.items[i]->exited);
		forgotten += processes.items.items[i]->over;
	}
}

static bool sweep(uint64_t before_ns)
{
	return processes__sweep(&processes, before_ns, forget, &forgotten);
}

Test(processes, found_by_pid)
{
	struct process *a = add(12), *b = add(13);

	cr_expect_eq(processes__find(&processes, 12), a);
	cr_expect_eq(processes__find(&processes, 13), b);
	cr_expect_null(processes__find(&processes, 14));
	cr_expect_eq(processes__alive(&processes), 2);
	cr_expect_neq(a->serial, b->serial);
	cr_expect_neq(a->epoch, b->epoch);
	cr_expect_eq(a->epoch, a->target.layout.epoch);
}

/* Samples of one that has ended still come: it is there until the sweep. */
Test(processes, an_end)
{
	struct process *process = add(12);

	processes__end(&processes, process, 100);
	processes__end(&processes, process, 200);
	cr_expect_eq(process->exited_ns, 100);
	cr_expect_eq(processes__alive(&processes), 0);
	cr_expect_eq(processes__find(&processes, 12), process);
	cr_expect(!sweep(100));
	cr_expect_eq(processes__find(&processes, 12), process);
	cr_expect(sweep(101));
	cr_expect_eq(forgotten, 1);
	cr_expect_null(processes__find(&processes, 12), "it was no Python");
	cr_expect_eq(processes.past.others, 1);
	cr_expect(!sweep(1000));
	cr_expect_eq(forgotten, 1);
}

/* What nobody had the time to look at is not said to be no Python. */
Test(processes, an_end_too_soon)
{
	struct process *process = add(12), *other = add(13), *excluded = add(14), *starting = add(15);

	other->error = PY_ATTACH_NOT_PYTHON;
	excluded->excluded = true;
	starting->error = PY_ATTACH_STARTING;
	cr_expect(!process__ended_unknown(process), "it lives");
	for (size_t i = 0; i < processes.items.len; i++)
		processes__end(&processes, processes.items.items[i], 100);
	cr_expect(process__ended_unknown(process));
	cr_expect(!process__ended_unknown(other));
	cr_expect(!process__ended_unknown(excluded));
	cr_expect(process__ended_unknown(starting));
	starting->samples = 1;
	cr_expect(!process__ended_unknown(starting), "it is in the profile");
	cr_expect(sweep(101));
	cr_expect_eq(processes.past.others, 3);
	cr_expect_eq(processes.past.ended_unknown, 1);
}

/* The pid of one that has ended, and has not been swept yet, is another's. */
Test(processes, a_pid_again)
{
	struct process *first = add(12), *second;

	processes__end(&processes, first, 100);
	second = add(12);
	cr_expect_eq(processes__find(&processes, 12), second);
	cr_expect_neq(first->serial, second->serial);
	cr_expect_neq(first->epoch, second->epoch);
	cr_expect(sweep(101));
	cr_expect_eq(processes__find(&processes, 12), second, "the sweep of the first is not of the second");
	cr_expect_eq(processes__alive(&processes), 1);
}

/* Of Pythons the first are kept, of the others sums; what was asked for stays. */
Test(processes, many_that_end)
{
	struct process *asked = add(1);

	asked->asked_for = true;
	for (int i = 0; i < 3 * PROCESSES_KEPT; i++) {
		struct process *process = add(100 + i % 50);

		process->python = true;
		process->cpu_end_ns = 1000;
		process->target.remote.stats.calls = 2;
		processes__end(&processes, process, i + 1);
		cr_expect(sweep(i + 2));
	}
	cr_expect_eq(processes.items.len, PROCESSES_KEPT + 1);
	cr_expect_eq(processes.past.pythons, 2 * PROCESSES_KEPT);
	cr_expect_eq(processes.past.cpu_ns, 2 * PROCESSES_KEPT * 1000);
	cr_expect_eq(processes.past.reads.calls, 2 * PROCESSES_KEPT * 2);
	cr_expect_eq(processes__alive(&processes), 1);
	processes__end(&processes, asked, 5000);
	cr_expect(sweep(6000));
	cr_expect_eq(processes__find(&processes, 1), asked);
	cr_expect_eq(processes__alive(&processes), 0);
}

static bool is_named_python(const char *command)
{
	struct process process = {.exited = true};

	snprintf(process.raw_command, sizeof(process.raw_command), "%s", command);
	return process__is_named_python(&process);
}

Test(processes, a_name_like_python)
{
	struct process process = {.pid = getpid(), .raw_command = "worker: 1"};

	cr_expect(is_named_python("python"));
	cr_expect(is_named_python("/usr/bin/python3.11 -m http.server"));
	cr_expect(is_named_python("ipython"));
	cr_expect_not(is_named_python("vim /usr/lib/python3/dist-packages/a.py"));
	cr_expect_not(is_named_python("/opt/python/bin/uwsgi --ini a"));
	cr_expect_not(is_named_python(""));
	cr_expect_not(process__is_named_python(&process));
	cr_assert_eq(prctl(PR_SET_NAME, "python3"), 0);
	cr_expect(process__is_named_python(&process));
}

/* Whoever has no descriptor left to look with has seen nobody end. */
Test(processes, lives_as_far_as_is_known)
{
	struct process *process = add(getpid());
	struct rlimit limit, none;
	struct proc_stat stat;
	bool lives;

	cr_assert(!proc__stat(getpid(), &stat) && !getrlimit(RLIMIT_NOFILE, &limit));
	cr_expect(!process__lives(process));
	process->start_ticks = stat.start_ticks;
	cr_expect(process__lives(process));
	none = (struct rlimit){.rlim_max = limit.rlim_max};
	cr_assert(!setrlimit(RLIMIT_NOFILE, &none));
	lives = process__lives(process);
	cr_assert(!setrlimit(RLIMIT_NOFILE, &limit));
	cr_expect(lives);
	process->start_ticks++;
	cr_expect(!process__lives(process));
}
