/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads of children, as the kernel sees them: looked at, and stopped for a moment.
 */
#include "os/stop.h"
#include "os/task.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void spin(void)
{
	for (volatile long i = 0;; i++)
		;
}

static void read_nothing(void)
{
	int fds[2];
	char byte;

	if (!pipe(fds) && read(fds[0], &byte, 1) < 0)
		_exit(1);
}

static void begin(void (*what)(void))
{
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		alarm(60);
		what();
		_exit(0);
	}
}

static void end(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

TestSuite(task, .fini = end);

static struct task_look look_until(enum task_state state)
{
	struct task_look look;

	for (int i = 0; i < 1000; i++) {
		look = task__look(child, child);
		if (look.state == state)
			break;
		usleep(2000);
	}
	return look;
}

Test(task, that_runs)
{
	begin(spin);
	cr_expect_eq(look_until(TASK_RUNNING).state, TASK_RUNNING);
}

Test(task, that_waits_in_a_system_call)
{
	struct task_look look;

	begin(read_nothing);
	look = look_until(TASK_WAITING);
	cr_assert_eq(look.state, TASK_WAITING);
	for (int i = 0; i < 1000 && look.syscall != SYS_read; i++) {
		usleep(2000);
		look = task__look(child, child);
	}
	cr_expect_eq(look.syscall, SYS_read);
	cr_expect_leq(look.arg, 1000, "a descriptor: %lu", look.arg);
}

static void wait_for_a_lock(void)
{
	static uint32_t futex;
	struct timespec limit = {.tv_sec = 60};

	syscall(SYS_futex, &futex, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
}

static void poll_nothing(void)
{
	poll(NULL, 0, 60000);
}

static void sleep_long(void)
{
	sleep(60);
}

static int64_t call_until(int64_t want)
{
	int64_t call = -1;

	for (int i = 0; i < 1000 && call != want; i++) {
		usleep(2000);
		call = task__look(child, child).syscall;
	}
	return call;
}

static void expect_the_same_after_a_stop(void (*what)(void), int64_t call)
{
	char path[64], number[16] = "";
	int status, fd = -1;

	begin(what);
	cr_expect_eq(call_until(call), call);
	cr_expect_not(task__is_stopped(child, child));
	kill(child, SIGSTOP);
	waitpid(child, &status, WUNTRACED);
	cr_expect(task__is_stopped(child, child));
	kill(child, SIGCONT);
	snprintf(path, sizeof(path), "/proc/%d/syscall", child);
	for (int i = 0; i < 1000 && strncmp(number, "219 ", 4); i++) {
		usleep(2000);
		fd = open(path, O_RDONLY);
		if (read(fd, number, sizeof(number) - 1) < 0)
			*number = '\0';
		close(fd);
	}
	cr_assert(!strncmp(number, "219 ", 4), "it is restart_syscall: %s", number);
	cr_expect_eq(task__look(child, child).syscall, call);
	end();
	child = 0;
}

/* The kernel goes on with it under another number. */
Test(task, that_was_stopped_while_it_waited)
{
	expect_the_same_after_a_stop(sleep_long, SYS_clock_nanosleep);
	expect_the_same_after_a_stop(wait_for_a_lock, SYS_futex);
	expect_the_same_after_a_stop(poll_nothing, SYS_poll);
}

Test(task, that_is_gone)
{
	struct task_probe probe;

	begin(spin);
	cr_assert_eq(task_probe__open(&probe, child, child), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_expect_eq(task_probe__look(&probe).state, TASK_GONE);
	cr_expect_eq(task__look(child, child).state, TASK_GONE);
	cr_expect_not(task__is_stopped(child, child));
	task_probe__close(&probe);
	cr_expect_eq(task_probe__look(&probe).state, TASK_UNKNOWN, "not open");
	child = 0;
}

Test(task, ids_of_the_same_namespace)
{
	struct hmap map = {0};
	bool same = false;

	begin(spin);
	cr_assert_eq(task__map_ids(child, &map, &same), 0);
	cr_expect(same && !map.len);
	hmap__free(&map);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (file) {
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
	return strrchr(text, ')') ? strrchr(text, ')')[2] : '?';
}

static char state_becomes(char wanted)
{
	for (int i = 0; i < 1000 && state_of(child) != wanted; i++)
		usleep(2000);
	return state_of(child);
}

/* Stopped, and let go on, with a signal that came meanwhile. */
Test(task, stopped_for_a_moment)
{
	struct stopped_task task = {0};
	int err = -EAGAIN;

	begin(spin);
	for (int i = 0; i < 50; i++) {
		err = stop__task(&task, child);
		if (err == -EAGAIN) { /* on a busy machine */
			for (int k = 0; k < 1000 && !stop__resume(&task); k++)
				usleep(2000);
			continue;
		}
		cr_assert_eq(err, 0);
		cr_expect_eq(state_of(child), 't');
		cr_expect(stop__resume(&task));
	}
	cr_expect_eq(state_becomes('R'), 'R');
	kill(child, SIGTERM);
	cr_expect_eq(waitpid(child, &err, 0), child);
	cr_expect(WIFSIGNALED(err) && WTERMSIG(err) == SIGTERM, "the signal has its effect");
	child = 0;
}

/* Who stopped it dies: the kernel lets it go on. */
Test(task, stopped_by_one_who_dies)
{
	pid_t stopper;
	int status;

	begin(spin);
	stopper = fork();
	if (!stopper) {
		struct stopped_task task = {0};

		for (int i = 0; i < 100 && stop__task(&task, child); i++)
			stop__resume(&task);
		kill(getpid(), SIGKILL);
	}
	waitpid(stopper, &status, 0);
	cr_expect_eq(state_becomes('R'), 'R');
}

Test(task, that_cannot_be_stopped)
{
	struct stopped_task task;

	cr_expect_eq(stop__task(&task, 1 << 22), -ESRCH);
	cr_expect(stop__resume(&task));
	cr_expect_eq(stop__task(&task, getpid()), -EPERM, "itself");
	cr_expect(stop__resume(&task));
}
