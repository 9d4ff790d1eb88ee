/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that shows what was sent to all.
 */
#include "os/witness.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct witness witness;

static void start(void)
{
	cr_assert(getpgrp() == getpid() || !setpgid(0, 0));
	cr_assert_eq(witness__start(&witness), 0);
	cr_assert_gt(witness.pid, 0);
}

static void stop(void)
{
	witness__stop(&witness);
}

TestSuite(witness, .init = start, .fini = stop, .timeout = 60);

static void do_nothing(int signal) {}

Test(witness, what_came_to_all)
{
	pid_t before = witness.pid;

	signal(SIGTERM, do_nothing);
	kill(getpid(), SIGTERM);
	cr_expect(!witness__saw(&witness, SIGTERM), "to this one");
	cr_expect_eq(witness.pid, before);
	kill(0, SIGTERM);
	cr_expect(!witness__saw(&witness, SIGINT));
	cr_expect(witness__saw(&witness, SIGTERM));
	cr_expect_neq(witness.pid, before);
	cr_expect(!witness__saw(&witness, SIGTERM), "once for each");
	cr_expect_eq(kill(before, 0), -1, "the first is still there");
	/* One after the other. */
	kill(witness.pid, SIGINT);
	cr_expect(witness__saw(&witness, SIGINT));
}

static void read_file(const char *name, char *out, size_t size)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", witness.pid, name);
	file = fopen(path, "r");
	cr_assert_not_null(file);
	out[fread(out, 1, size - 1, file)] = '\0';
	fclose(file);
}

/* It is not to be found by the name of the program, and keeps none of its files open. */
Test(witness, is_apart)
{
	char text[4096], path[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/2", witness.pid);
		read_file("comm", text, sizeof(text));
		if (!strcmp(text, "signal-witness\n") && access(path, F_OK))
			break;
		usleep(10000);
	}
	cr_expect_str_eq(text, "signal-witness\n");
	cr_expect_eq(access(path, F_OK), -1);
	read_file("cmdline", text, sizeof(text));
	cr_expect_eq(*text, '-', "%s", text);
	cr_expect(!strstr(text, program_invocation_short_name), "%s", text);
}

Test(witness, without_one)
{
	witness__stop(&witness);
	cr_expect_eq(witness.pid, 0);
	witness__stop(&witness);
	witness__renew(&witness);
	cr_expect(!witness__saw(&witness, SIGTERM));
	cr_expect(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "something is left");
}
