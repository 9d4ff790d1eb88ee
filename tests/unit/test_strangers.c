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

	cr_expect_eq(strangers__next(&strangers, now), 0);
	strangers__add(&strangers, getpid(), 1);
	now += SECOND;
	cr_expect_eq(strangers__next(&strangers, now), getpid(), "it is not what it was");
	code = map_code();
	cr_expect_eq(strangers__next(&strangers, now), 0, "not all the time");
	now += SECOND;
	cr_expect_eq(strangers__next(&strangers, now), getpid());
	now += SECOND;
	cr_expect_eq(strangers__next(&strangers, now), 0);
	munmap(code, CODE);
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
		strangers__add(&strangers, pids[i], 1);
	}
	for (int i = 0; i < 40; i++)
		cr_expect(strangers__next(&strangers, now) > 0);
	for (int i = 0; i < 40; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	now += 100 * SECOND;
	for (int i = 0; i < 40; i++)
		cr_expect_eq(strangers__next(&strangers, now), 0);
	cr_expect_eq(strangers.code_bytes.len, 0, "%zu are left", strangers.code_bytes.len);
}
