/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Children that are stopped, traced and frozen, really; cgroups are made for that, where root may, and
 * removed.
 */
#include "os/halt.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static char cgroup[256];

static void start(void)
{
	child = fork();
	cr_assert_geq(child, 0);
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "a child");
	for (;;)
		pause();
}

static int write_word(const char *file, const char *word)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	out = fopen(path, "w");
	return !out || fputs(word, out) < 0 || fclose(out) ? -1 : 0;
}

static void stop(void)
{
	/* One that is frozen so does not even die. */
	if (cgroup[0])
		write_word("freezer.state", "THAWED");
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	for (int i = 0; cgroup[0] && rmdir(cgroup) && errno == EBUSY && i < 1000; i++)
		usleep(1000);
}

TestSuite(halt, .fini = stop);

static const char *words(const struct halt *halt)
{
	static struct buf text;

	text.len = 0;
	halt__describe(halt, &text);
	buf__addc(&text, '\0');
	return text.data;
}

static struct halt look_until(enum halt_kind kind)
{
	struct halt halt = {0};

	for (int i = 0; i < 5000; i++) {
		halt__look(&halt, child);
		if (halt.kind == kind)
			break;
		usleep(1000);
	}
	return halt;
}

Test(halt, by_a_signal)
{
	struct halt halt;

	start();
	halt__look(&halt, child);
	cr_expect_eq(halt.kind, HALT_NONE);
	cr_expect_str_eq(words(&halt), "");
	kill(child, SIGSTOP);
	halt = look_until(HALT_STOPPED);
	cr_assert_eq(halt.kind, HALT_STOPPED);
	cr_expect(strstr(words(&halt), "SIGSTOP") && !halt.tracer);
	kill(child, SIGCONT);
	cr_expect_eq(look_until(HALT_NONE).kind, HALT_NONE);
}

/* One that is traced goes on until it is stopped. */
Test(halt, by_a_debugger)
{
	char expected[64];
	struct halt halt;
	int status;

	prctl(PR_SET_NAME, "a (debugger\033");
	snprintf(expected, sizeof(expected), "stopped while process %d (a (debugger\\x1b) traces it",
		 getpid());
	start();
	cr_assert_eq(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
	halt__look(&halt, child);
	cr_expect(halt.kind == HALT_NONE && halt.tracer == getpid());
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
	cr_assert_eq(waitpid(child, &status, __WALL), child);
	halt = look_until(HALT_TRACED);
	cr_assert_eq(halt.kind, HALT_TRACED);
	cr_expect_str_eq(words(&halt), expected);
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

/* The state of the main thread is that of a zombie then. */
Test(halt, without_its_main_thread)
{
	pthread_t thread;

	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_exit(NULL);
	}
	kill(child, SIGSTOP);
	cr_expect_eq(look_until(HALT_STOPPED).kind, HALT_STOPPED);
}

Test(halt, of_one_that_has_ended)
{
	struct halt halt;
	siginfo_t info;

	start();
	kill(child, SIGKILL);
	cr_assert_eq(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
	halt__look(&halt, child);
	cr_expect_eq(halt.kind, HALT_NONE, "a zombie");
	stop();
	halt__look(&halt, child);
	cr_expect_eq(halt.kind, HALT_NONE, "gone");
	child = 0;
}

/* Where the hierarchy is mounted, as these three are almost everywhere. */
static void freeze(const char *const *folders, const char *file, const char *on, const char *off)
{
	struct halt halt;
	char pid[16], name[64], path[512];

	snprintf(name, sizeof(name), "test_halt %d", getpid());
	for (; *folders; folders++) {
		snprintf(cgroup, sizeof(cgroup), "%s/%s", *folders, name);
		snprintf(path, sizeof(path), "%s/%s", cgroup, file);
		if (!mkdir(cgroup, 0755) && !access(path, W_OK))
			break;
		rmdir(cgroup);
	}
	if (!*folders) {
		cgroup[0] = '\0';
		cr_skip_test("no cgroup can be made that freezes");
	}
	start();
	snprintf(pid, sizeof(pid), "%d", child);
	cr_assert_eq(write_word("cgroup.procs", pid), 0);
	halt__look(&halt, child);
	cr_expect_eq(halt.kind, HALT_NONE);
	cr_assert_eq(write_word(file, on), 0);
	halt = look_until(HALT_FROZEN);
	cr_expect_eq(halt.kind, HALT_FROZEN);
	cr_expect(strstr(words(&halt), "frozen with its cgroup /") && strstr(words(&halt), name), "%s",
		  words(&halt));
	cr_assert_eq(write_word(file, off), 0);
	cr_expect_eq(look_until(HALT_NONE).kind, HALT_NONE);
}

Test(halt, by_its_cgroup)
{
	static const char *const folders[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};

	freeze(folders, "cgroup.freeze", "1", "0");
}

Test(halt, by_its_cgroup_of_old)
{
	static const char *const folders[] = {"/sys/fs/cgroup/freezer", NULL};

	freeze(folders, "freezer.state", "FROZEN", "THAWED");
}
