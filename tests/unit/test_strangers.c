/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was no Python and has loaded something since: told once for each time, and forgotten when it ends.
 */
#include "run/strangers.h"

#include "os/proc.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define CODE   (1 << 20)

static struct strangers strangers;

static void stop(void)
{
	strangers__free(&strangers);
}

TestSuite(strangers, .fini = stop);

/* Code of a file, as a library has it. */
static void *map_code(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *code = mmap(NULL, CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	cr_assert_neq(code, MAP_FAILED);
	close(fd);
	return code;
}

Test(strangers, code_that_is_mapped)
{
	uint64_t before, after;
	void *code;

	cr_assert_eq(proc__code_bytes(getpid(), &before), 0);
	code = map_code();
	cr_assert_eq(proc__code_bytes(getpid(), &after), 0);
	cr_expect_eq(after, before + CODE);
	munmap(code, CODE);
	cr_expect_neq(proc__code_bytes(2, &after), 0, "a kernel thread, or none");
}

Test(strangers, one_that_loads_something)
{
	uint64_t now = 10 * SECOND;
	void *code;

	cr_expect_eq(strangers__next_changed(&strangers, now), 0);
	strangers__add(&strangers, getpid());
	now += SECOND;
	cr_expect_eq(strangers__next_changed(&strangers, now), getpid(), "nothing is known of it yet");
	code = map_code();
	cr_expect_eq(strangers__next_changed(&strangers, now), 0, "not all the time");
	now += SECOND;
	cr_expect_eq(strangers__next_changed(&strangers, now), getpid());
	cr_expect(!strangers__has_changed(&strangers, getpid()));
	now += SECOND;
	cr_expect_eq(strangers__next_changed(&strangers, now), 0);
	munmap(code, CODE);
	cr_expect(strangers__has_changed(&strangers, getpid()));
}

Test(strangers, one_that_has_called_exec)
{
	uint64_t now = SECOND, due;
	int looks = 0;

	cr_expect_eq(strangers__due_ns(&strangers), UINT64_MAX);
	strangers__watch(&strangers, 12, now + 5);
	strangers__watch(&strangers, 13, now + 7);
	cr_expect_eq(strangers__next_due(&strangers, now), 0, "not yet");
	cr_expect_eq(strangers__due_ns(&strangers), now + 5);
	cr_expect_eq(strangers__next_due(&strangers, now + 5), 12);
	cr_expect_eq(strangers__next_due(&strangers, now + 5), 0);
	strangers__forget(&strangers, 13);
	while ((due = strangers__due_ns(&strangers)) != UINT64_MAX && looks < 100) {
		cr_expect_eq(strangers__next_due(&strangers, due), 12);
		looks++;
	}
	cr_expect(looks > 3 && looks < 10, "%d times", looks);
	strangers__watch(&strangers, 12, now);
	strangers__watch(&strangers, 12, now + 1);
	cr_expect_eq(strangers__next_due(&strangers, now), 0, "another exec");
}

/* The same program, but with other words. */
Test(strangers, one_that_becomes_the_same_again)
{
	uint64_t before, after, bytes, bytes_after;
	int pipes[2];
	pid_t pid;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		dup2(pipes[0], 0);
		close(pipes[1]);
		execl("/bin/sh", "sh", "-c", "read x; exec sh -c 'read x'", NULL);
		_exit(127);
	}
	close(pipes[0]);
	cr_assert_eq(proc__exec_id(getpid(), &before), 0);
	while (!proc__exec_id(pid, &after) && after == before)
		usleep(1000);
	usleep(100000); /* its libraries */
	cr_assert_eq(proc__exec_id(pid, &before), 0);
	cr_assert_eq(proc__code_bytes(pid, &bytes), 0);
	cr_expect(strangers__has_changed(&strangers, pid));
	cr_expect(!strangers__has_changed(&strangers, pid));
	cr_assert_eq(write(pipes[1], "\n", 1), 1);
	while (!proc__exec_id(pid, &after) && after == before)
		usleep(1000);
	usleep(100000);
	cr_assert_eq(proc__code_bytes(pid, &bytes_after), 0);
	cr_assert_eq(bytes, bytes_after);
	cr_expect(strangers__has_changed(&strangers, pid));
	cr_expect(!strangers__has_changed(&strangers, pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[1]);
}

Test(strangers, those_that_end)
{
	uint64_t now = 10 * SECOND;
	pid_t pids[40];

	for (int i = 0; i < 40; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			pause();
			_exit(0);
		}
		strangers__add(&strangers, pids[i]);
	}
	for (int i = 0; i < 40; i++)
		cr_expect(strangers__next_changed(&strangers, now) > 0);
	for (int i = 0; i < 40; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	now += 100 * SECOND;
	for (int i = 0; i < 40; i++)
		cr_expect_eq(strangers__next_changed(&strangers, now), 0);
	cr_expect_eq(strangers.code.len, 0, "%zu are left", strangers.code.len);
}
