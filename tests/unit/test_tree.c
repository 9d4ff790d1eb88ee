/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Children that were made here, and the numbers that they got.
 */
#include "os/tree.h"

#include "os/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(void)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid) {
		alarm(60);
		for (;;)
			pause();
	}
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(tree, children)
{
	pid_t first = start(), second = start();
	struct tree tree;
	size_t index, count;

	cr_assert_eq(tree__read(&tree), 0);
	count = tree__children(&tree, getpid(), &index);
	cr_assert_eq(count, 2);
	cr_expect_eq(tree.edges.items[index].pid, first < second ? first : second);
	cr_expect_eq(tree__children(&tree, first, &index), 0);
	tree__free(&tree);
	stop(first);
	stop(second);
}

/* It is the last number or one that was given out since, by somebody else. */
Test(tree, last_pid)
{
	pid_t before = tree__last_pid(), child = start(), after = tree__last_pid();

	cr_assert_gt(before, 0);
	cr_expect(after >= child || after < before, "%d, a child %d, %d", before, child, after);
	cr_expect(after != before);
	stop(child);
}

static void *sleep_on(void *unused)
{
	pause();
	return unused;
}

/* Its first thread is over, another one is not. */
static pid_t start_without_leader(void)
{
	pid_t pid = fork();
	pthread_t thread;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	alarm(60);
	if (!pthread_create(&thread, NULL, sleep_on, NULL))
		syscall(SYS_exit, 0);
	_exit(1);
}

static void wait_for_zombie(pid_t pid)
{
	struct proc_stat stat = {0};

	for (int i = 0; i < 10000 && stat.state != 'Z'; i++) {
		cr_assert_eq(proc__stat(pid, &stat), 0);
		usleep(1000);
	}
	cr_assert_eq(stat.state, 'Z');
}

Test(tree, zombies)
{
	pid_t zombie = start(), living = start_without_leader();
	struct tree tree;
	size_t index;

	kill(zombie, SIGKILL);
	wait_for_zombie(zombie);
	wait_for_zombie(living);
	cr_assert_eq(tree__read(&tree), 0);
	cr_assert_eq(tree__children(&tree, getpid(), &index), 1);
	cr_expect_eq(tree.edges.items[index].pid, living);
	tree__free(&tree);
	cr_expect_eq(tree__parent(zombie), -ECHILD);
	cr_expect_eq(tree__parent(living), getpid());
	stop(zombie);
	stop(living);
}

static void *tell_tid(void *tid)
{
	*(pid_t *)tid = syscall(SYS_gettid);
	pause();
	return NULL;
}

Test(tree, parent)
{
	pid_t child = start(), gone = start();
	volatile pid_t tid = 0;
	pthread_t thread;

	stop(gone);
	cr_expect_eq(tree__parent(child), getpid());
	cr_expect_eq(tree__parent(getpid()), getppid());
	cr_expect_eq(tree__parent(gone), -ESRCH);
	cr_assert_eq(pthread_create(&thread, NULL, tell_tid, (void *)&tid), 0);
	while (!tid)
		usleep(1000);
	cr_expect_eq(tree__parent(tid), -ESRCH, "a thread is no process");
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	stop(child);
}
