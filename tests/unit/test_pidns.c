/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers in pid namespaces: children in namespaces of their own, with the /proc of this one and with the
 * right one. What needs root is skipped without.
 */
#include "os/pidns.h"

#include "os/tree.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

Test(pidns, text)
{
	char text[PIDNS_TEXT];

	cr_expect_str_eq(pidns__text(text, 12, 0), "12");
	cr_expect_str_eq(pidns__text(text, 4194304, 4194303), "4194304 [4194303 inside]");
}

Test(pidns, of_this_process)
{
	cr_expect_null(pidns__proc_fault());
	cr_expect_eq(pidns__inner_pid(getpid()), 0);
	cr_expect_eq(pidns__inner_tid(getpid(), getpid()), 0);
	cr_expect_eq(pidns__inner_pid(0x7ffffff0), 0, "there is no such process");
}

static void be_quiet(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* Runs `function` as process 1 of a namespace; what it returns. */
static int in_new_namespace(int flags, int (*function)(void))
{
	pid_t outer = fork(), inner;
	int status;

	if (!outer) {
		if (unshare(CLONE_NEWPID | flags))
			_exit(99);
		inner = fork();
		if (!inner)
			_exit(function());
		waitpid(inner, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	waitpid(outer, &status, 0);
	return WEXITSTATUS(status);
}

static int expect_other_proc(void)
{
	const char *fault = pidns__proc_fault();

	return getpid() != 1 || !pidns__is_nested() || !fault || !strstr(fault, "another pid namespace");
}

static int mount_proc(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL);
}

static int expect_right_proc(void)
{
	return mount_proc() || pidns__proc_fault() || pidns__inner_pid(1);
}

static int expect_none(void)
{
	const char *fault;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", "/proc", "tmpfs", 0, NULL))
		return 1;
	fault = pidns__proc_fault();
	return !fault || !strstr(fault, "not mounted");
}

Test(pidns, whose_proc_it_is)
{
	if (getuid())
		cr_skip_test("namespaces need root");
	cr_expect_eq(in_new_namespace(0, expect_other_proc), 0, "the one of the parent");
	cr_expect_eq(in_new_namespace(CLONE_NEWNS, expect_right_proc), 0, "its own");
	cr_expect_eq(in_new_namespace(CLONE_NEWNS, expect_none), 0, "none");
}

/* From out here, two deep: the last number is that which it has for itself. */
Test(pidns, inner_number)
{
	int pipes[2];
	size_t count = 0, first = 0;
	struct tree tree = {0};
	pid_t outer, inner = 0;

	if (getuid())
		cr_skip_test("namespaces need root");
	cr_assert_eq(pipe(pipes), 0);
	outer = fork();
	if (!outer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int depth = 0; depth < 2; depth++) {
			if (unshare(CLONE_NEWPID))
				_exit(1);
			inner = fork();
			if (inner) {
				/* The pid as the first namespace numbers it. */
				if (!depth && write(pipes[1], &inner, sizeof(inner)) != sizeof(inner))
					_exit(1);
				be_quiet();
			}
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		}
		be_quiet();
	}
	cr_assert_eq(read(pipes[0], &inner, sizeof(inner)), (ssize_t)sizeof(inner));
	cr_expect_eq(pidns__inner_pid(inner), 1);
	cr_expect_eq(pidns__inner_tid(inner, inner), 1);
	for (int i = 0; i < 5000 && !count; i++) {
		usleep(1000);
		tree__free(&tree);
		cr_assert_eq(tree__read(&tree), 0);
		count = tree__children(&tree, inner, &first);
	}
	cr_assert_eq(count, 1);
	cr_expect_eq(pidns__inner_pid(tree.edges.items[first].pid), 1);
	tree__free(&tree);
	kill(outer, SIGKILL);
	waitpid(outer, NULL, 0);
}
