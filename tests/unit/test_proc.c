/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /proc readers against this process, against children with names chosen to confuse a parser, and against
 * pids that are gone.
 */
#include "os/proc.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child that has given itself a name and waits to be killed. */
static pid_t start_named(const char *name)
{
	int ready[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A pid that has just been free. */
static pid_t gone_pid(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

Test(proc, own_stat)
{
	struct proc_stat stat;

	cr_assert_eq(proc__stat(getpid(), &stat), 0);
	cr_expect_eq(stat.ppid, getppid());
	cr_expect_eq(stat.state, 'R');
	cr_expect_geq(stat.num_threads, 1);
	cr_expect_gt(stat.start_ticks, 0);
}

Test(proc, start_time_tells_processes_apart)
{
	struct proc_stat self, again, child;
	pid_t pid;

	usleep(30000); /* a few clock ticks */
	pid = start_named("later");
	cr_assert_eq(proc__stat(getpid(), &self), 0);
	cr_assert_eq(proc__stat(getpid(), &again), 0);
	cr_assert_eq(proc__stat(pid, &child), 0);
	cr_expect_eq(self.start_ticks, again.start_ticks);
	cr_expect_gt(child.start_ticks, self.start_ticks);
	cr_expect_eq(child.ppid, getpid());
	stop(pid);
}

Test(proc, confusing_names)
{
	static const char *const names[] = {
		"plain", ") R 1 2 3", "a\nb", "((()", "x) (y", " ", "\\n", "a\\", "\\\\n", "\x80\xff\x01", "",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		pid_t pid = start_named(names[i]);
		struct proc_stat stat;
		char comm[64];

		cr_assert_eq(proc__stat(pid, &stat), 0);
		cr_expect_str_eq(stat.comm, names[i]);
		cr_expect_eq(stat.ppid, getpid(), "'%s': ppid %d", names[i], stat.ppid);
		cr_expect_eq(stat.num_threads, 1);
		cr_expect_eq(proc__task_comm(pid, pid, comm, sizeof(comm)), 0);
		cr_expect_str_eq(comm, names[i]);
		stop(pid);
	}
}

Test(proc, small_buffers)
{
	pid_t pid = start_named("fifteen-letters");
	char text[16];

	memset(text, 'x', sizeof(text));
	cr_expect_eq(proc__task_comm(pid, pid, text, 5), 0);
	cr_expect_str_eq(text, "fift");
	cr_expect_eq(text[5], 'x');
	cr_expect_eq(proc__task_comm(pid, pid, text, 16), 0);
	cr_expect_str_eq(text, "fifteen-letters");
	cr_expect_eq(proc__cmdline(pid, text, 4), 0);
	cr_expect_eq(strlen(text), 3);
	cr_expect_eq(proc__task_comm(pid, pid, text, 1), 0);
	cr_expect_str_eq(text, "");
	stop(pid);
}

Test(proc, command_line)
{
	pid_t pid = fork();
	char text[256] = "";

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sleep", "sleep", "100", "0", NULL);
		_exit(1);
	}
	for (int i = 0; i < 200 && strncmp(text, "sleep", 5); i++) {
		usleep(10000);
		cr_assert_eq(proc__cmdline(pid, text, sizeof(text)), 0);
	}
	cr_expect_str_eq(text, "sleep 100 0");

	/* A zombie has a name but no command line any more. */
	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	cr_expect_eq(proc__cmdline(pid, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "sleep");
	waitpid(pid, NULL, 0);
}

Test(proc, program)
{
	char path[4096], own[4096], small[8];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);

	cr_assert_gt(len, 8);
	own[len] = '\0';
	cr_assert_eq(proc__exe(getpid(), path, sizeof(path)), 0);
	cr_assert_str_eq(path, own);
	cr_assert_eq(proc__exe(getpid(), small, sizeof(small)), -ENAMETOOLONG);
	cr_assert_eq(proc__exe(gone_pid(), path, sizeof(path)), -ESRCH);
}

Test(proc, gone)
{
	pid_t pid = gone_pid();
	struct proc_tasks tasks;
	struct proc_stat stat;
	uint64_t cpu_ns;
	char text[64];

	cr_expect_eq(proc__stat(pid, &stat), -ESRCH);
	cr_expect_eq(proc__cpu_ns(pid, &cpu_ns), -ESRCH);
	cr_expect_eq(proc__tasks(pid, &tasks), -ESRCH);
	cr_expect_eq(tasks.tids.len, 0);
	cr_expect_eq(proc__task_comm(pid, pid, text, sizeof(text)), -ESRCH);
	cr_expect_eq(proc__task_comm(getpid(), pid, text, sizeof(text)), -ESRCH);
	cr_expect_eq(proc__cmdline(pid, text, sizeof(text)), -ESRCH);
	vec__free(&tasks.tids);
}

static void burn(uint64_t ns)
{
	uint64_t start = proc__own_cpu_ns();

	while (proc__own_cpu_ns() - start < ns)
		;
}

Test(proc, cpu_time_of_self)
{
	uint64_t before, after, own;

	cr_assert_eq(proc__cpu_ns(getpid(), &before), 0);
	burn(5000000);
	cr_assert_eq(proc__cpu_ns(getpid(), &after), 0);
	own = proc__own_cpu_ns();
	/* Finer than the clock tick of 10 ms. */
	cr_expect_geq(after - before, 5000000);
	cr_expect_lt(own - after, 5000000);
}

Test(proc, cpu_time_of_another)
{
	struct proc_stat stat;
	uint64_t cpu_ns;
	int ready[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn(60000000);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	cr_assert_eq(proc__cpu_ns(pid, &cpu_ns), 0);
	cr_expect(cpu_ns >= 60000000 && cpu_ns < 200000000, "%lu", (unsigned long)cpu_ns);
	cr_assert_eq(proc__stat(pid, &stat), 0);
	cr_expect(stat.cpu_ns >= 30000000 && stat.cpu_ns < 200000000, "%lu", (unsigned long)stat.cpu_ns);
	stop(pid);
}

static void *wait_at(void *barrier)
{
	prctl(PR_SET_NAME, "worker)\n");
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

Test(proc, tasks)
{
	enum { THREADS = 20 };
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;
	struct proc_tasks before, tasks;
	char comm[64];
	int named = 0;

	cr_assert_eq(proc__tasks(getpid(), &before), 0);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, wait_at, &barrier);
	pthread_barrier_wait(&barrier);

	cr_assert_eq(proc__tasks(getpid(), &tasks), 0);
	cr_expect_eq(tasks.tids.len, before.tids.len + THREADS);
	cr_expect_eq(tasks.tids.items[0], getpid());
	for (size_t i = 0; i < tasks.tids.len; i++) {
		cr_expect(!i || tasks.tids.items[i - 1] < tasks.tids.items[i], "sorted");
		cr_assert_eq(proc__task_comm(getpid(), tasks.tids.items[i], comm, sizeof(comm)), 0);
		named += !strcmp(comm, "worker)\n");
	}
	cr_expect_eq(named, THREADS);

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	vec__free(&before.tids);
	vec__free(&tasks.tids);
}

static uint64_t exec_id(pid_t pid)
{
	uint64_t id = 0;

	cr_assert_eq(proc__exec_id(pid, &id), 0);
	return id;
}

static uint64_t start_id(pid_t pid)
{
	uint64_t id = 0;

	cr_assert_eq(proc__start_id(pid, &id), 0);
	return id;
}

static pid_t start_sleep(unsigned long with)
{
	char *const argv[] = {"sleep", "60", NULL};
	pid_t pid = fork();

	if (!pid) {
		personality(with);
		execvp(argv[0], argv);
		_exit(1);
	}
	for (int i = 0; i < 1000 && exec_id(pid) == exec_id(getpid()); i++)
		usleep(1000);
	return pid;
}

/* As long as neither calls exec, a fork runs its parent's program; not another start of the same one. */
Test(proc, exec_ids)
{
	pid_t fork_of_us = start_named("fork"), a = start_sleep(0), b = start_sleep(0);
	uint64_t id;

	cr_expect_eq(exec_id(fork_of_us), exec_id(getpid()));
	cr_expect_neq(exec_id(a), exec_id(getpid()));
	cr_expect_neq(exec_id(a), exec_id(b));
	cr_expect_eq(exec_id(a), exec_id(a));
	cr_expect_eq(proc__exec_id(gone_pid(), &id), -ESRCH);
	stop(fork_of_us);
	stop(a);
	stop(b);
}

/* Where addresses are not random, two programs have random bytes only that are not the same. */
Test(proc, start_ids)
{
	pid_t fork_of_us = start_named("fork");
	pid_t a = start_sleep(ADDR_NO_RANDOMIZE), b = start_sleep(ADDR_NO_RANDOMIZE);
	uint64_t id;

	if (exec_id(a) != exec_id(b))
		cr_log_warn("addresses are random all the same");
	cr_expect_eq(start_id(fork_of_us), start_id(getpid()));
	cr_expect_neq(start_id(a), start_id(getpid()));
	cr_expect_neq(start_id(a), start_id(b));
	cr_expect_eq(start_id(a), start_id(a));
	cr_expect_eq(proc__start_id(gone_pid(), &id), -ESRCH);
	stop(fork_of_us);
	stop(a);
	stop(b);
}

Test(proc, own_capabilities)
{
	struct proc_rights rights;

	cr_assert_eq(proc__own_rights(&rights), 0);
	if (!getuid() && !rights.in_user_ns)
		cr_expect_neq(rights.capabilities, 0);

	/* An ordinary user has none. */
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (!getuid() && setuid(65534))
			_exit(2);
		_exit(proc__own_rights(&rights) || rights.capabilities);
	}
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
}

/* Whatever ids are mapped in it, and though it has all capabilities. */
Test(proc, own_rights_in_a_user_namespace)
{
	static const char identity[] = "0 0 4294967295";
	struct proc_rights rights;
	int pipes[2], status;
	char path[64], go;
	pid_t pid;
	FILE *map;

	if (getuid())
		cr_skip_test("only root may map all ids");
	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		close(pipes[1]);
		_exit(unshare(CLONE_NEWUSER) || read(pipes[0], &go, 1) != 1 || proc__own_rights(&rights) ||
		      !rights.in_user_ns || !rights.capabilities);
	}
	usleep(100000);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	map = fopen(path, "w");
	cr_assert(map && fputs(identity, map) >= 0 && !fclose(map));
	cr_assert_eq(write(pipes[1], "", 1), 1);
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
}

Test(proc, own_rights_with_a_filter)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {.len = 1, .filter = &allow};
	struct proc_rights rights;
	int status;
	pid_t pid;

	cr_assert_eq(proc__own_rights(&rights), 0);
	pid = fork();
	if (!pid)
		_exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) || proc__own_rights(&rights) ||
		      !rights.is_filtered || !rights.no_new);
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
}

Test(proc, threads_of_the_kernel)
{
	struct proc_stat stat;

	cr_assert_eq(proc__stat(getpid(), &stat), 0);
	cr_expect(!stat.is_kernel);
	/* Not in a pid namespace of one's own. */
	if (!proc__stat(2, &stat) && !strcmp(stat.comm, "kthreadd"))
		cr_expect(stat.is_kernel);
}

Test(proc, exists)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	cr_expect(proc__exists(getpid()) && proc__exists(1) && proc__exists(child));
	waitpid(child, NULL, 0);
	cr_expect_not(proc__exists(child));
}

Test(proc, own_memory)
{
	enum { SIZE = 64 << 20 };
	uint64_t before = proc__own_rss();
	char *p = malloc(SIZE);

	cr_expect_gt(before, 0);
	memset(p, 1, SIZE);
	cr_expect(p[SIZE / 2]);
	cr_expect_geq(proc__own_rss(), before + SIZE / 2);
	free(p);
}
