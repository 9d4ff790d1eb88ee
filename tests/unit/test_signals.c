/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of signals, with a command and without.
 */
#include "run/signals.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void end(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	signals__close();
}

TestSuite(signals, .fini = end, .timeout = 60);

static void start(void)
{
	int ready[2];
	char byte;

	cr_assert_eq(pipe(ready), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		for (int number = 1; number < 32; number++)
			signal(number, SIG_DFL); /* as an exec would */
		alarm(60);
		if (write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

Test(signals, the_first_is_noted)
{
	bool snapshot = true;
	int fd = signals__open(0);

	cr_assert_geq(fd, 0);
	cr_expect_eq(signals__take(&snapshot), 0);
	cr_expect(!snapshot && !is_readable(fd));
	raise(SIGUSR1);
	cr_expect(is_readable(fd));
	cr_expect_eq(signals__take(&snapshot), 0);
	cr_expect(snapshot && !is_readable(fd));
	raise(SIGTERM);
	cr_expect_eq(signals__take(&snapshot), SIGTERM);
	cr_expect(!snapshot);
}

Test(signals, the_second_ends_the_program, .signal = SIGTERM)
{
	signals__open(0);
	raise(SIGTERM);
	raise(SIGTERM);
}

/* However many come. */
Test(signals, passed_on_to_a_command)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	bool snapshot;
	int status;

	for (size_t i = 0; i < 4; i++) {
		int fd;

		start();
		fd = signals__open(child);
		kill(getpid(), numbers[i]);
		kill(getpid(), numbers[i]);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i], "status %d", status);
		cr_expect_eq(signals__take(&snapshot), 0);
		raise(SIGUSR1);
		cr_expect(is_readable(fd));
		signals__take(&snapshot);
		cr_expect(snapshot);
		signals__close();
	}
	child = 0;
}

Test(signals, a_command_that_has_ended)
{
	start();
	signals__open(child);
	signals__forget_command();
	raise(SIGTERM);
	cr_expect_eq(kill(child, 0), 0);
	cr_expect_eq(waitpid(child, NULL, WNOHANG), 0, "it got none");
}

/* A command that says each signal it gets, in our process group or not. */
static int start_telling(bool leaves)
{
	int told[2];
	char byte;

	cr_assert(getpgrp() == getpid() || !setpgid(0, 0));
	cr_assert_eq(pipe(told), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		sigset_t all;
		int number;

		alarm(60);
		if (leaves && setpgid(0, 0))
			_exit(1);
		sigfillset(&all);
		sigdelset(&all, SIGALRM);
		sigprocmask(SIG_BLOCK, &all, NULL);
		byte = 0;
		while (write(told[1], &byte, 1) == 1 && !sigwait(&all, &number))
			byte = number;
		_exit(1);
	}
	close(told[1]);
	cr_assert_eq(read(told[0], &byte, 1), 1);
	return told[0];
}

/* How many of them it got, once it has got the last of all. */
static int count_told(int fd, int number)
{
	int count = 0;
	char byte;

	kill(child, SIGWINCH);
	while (read(fd, &byte, 1) == 1 && byte != SIGWINCH)
		count += byte == number;
	return count;
}

/* Sent to all, by number of the group, or one by one: it has got that, and is not to get it twice. */
Test(signals, of_the_whole_group)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	int fd = start_telling(false);

	cr_assert_geq(signals__open(child), 0);
	for (size_t i = 0; i < 4; i++) {
		kill(0, numbers[i]);
		cr_expect_eq(count_told(fd, numbers[i]), 1, "%d to the group", numbers[i]);
		kill(getpid(), numbers[i]);
		cr_expect_eq(count_told(fd, numbers[i]), 1, "%d to this program alone", numbers[i]);
		kill(-getpgrp(), numbers[i]);
		cr_expect_eq(count_told(fd, numbers[i]), 1, "%d to the group again", numbers[i]);
	}
}

/* What is sent to a group that it is not in any more it gets by us only. */
Test(signals, of_the_group_that_it_has_left)
{
	int fd = start_telling(true);

	cr_assert_geq(signals__open(child), 0);
	kill(0, SIGTERM);
	cr_expect_eq(count_told(fd, SIGTERM), 1, "to the group");
	kill(getpid(), SIGINT);
	cr_expect_eq(count_told(fd, SIGINT), 1, "to this program alone");
}
