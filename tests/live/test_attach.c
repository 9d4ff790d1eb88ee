/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to real Pythons: every version found, and the processes that public reports about other profilers
 * name: two copies of the runtime, deleted and stripped files, tables that were tampered with, wrappers,
 * namespaces. Needs root and the Pythons of scripts/test-pythons; what is missing is skipped and said.
 */
#include "py/target.h"
#include "run/process.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPIN "while True: sum(range(200))"

static char root[256]; /* of the newest Pythons */

static void read_root(void)
{
	FILE *file = popen("scripts/test-pythons --root 2>/dev/null", "r");

	cr_assert(file && fgets(root, sizeof(root), file), "no root of Pythons");
	root[strcspn(root, "\n")] = '\0';
	pclose(file);
}

TestSuite(attach, .init = read_root, .timeout = 120);

/* ---- processes ---- */

/* Run a shell command as a process that exec's it; it dies with the test. */
static pid_t start(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static pid_t start(const char *fmt, ...)
{
	char command[2048];
	va_list args;
	pid_t pid;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Attach as a caller does: while it is starting or still the shell, again. */
static enum py_attach_error attach(struct py_target *target, pid_t pid, char *reason)
{
	enum py_attach_error error = PY_ATTACH_GONE;

	for (int i = 0; i < 1000; i++) {
		error = py_target__open(target, pid, reason, 512);
		if (error != PY_ATTACH_STARTING && error != PY_ATTACH_NOT_PYTHON)
			return error;
		usleep(10000);
	}
	return error;
}

static void expect_version(pid_t pid, uint32_t minor, uint32_t slot_kind)
{
	struct py_target target;
	char reason[512];
	struct py_thread threads[64];

	cr_assert_eq(attach(&target, pid, reason), PY_ATTACH_OK, "3.%u: %s", minor, reason);
	cr_assert_eq(py_version_minor(target.offsets.version), minor);
	cr_assert_eq(target.layout.slot_kind, slot_kind, "3.%u: %s", minor, target.slot_how);
	cr_assert(py_target__is_alive(&target));
	cr_assert_gt(py_target__threads(&target, threads, ARRAY_SIZE(threads)), 0);
}

static void expect_refusal(pid_t pid, enum py_attach_error expected, const char *part)
{
	struct py_target target;
	char reason[512];

	cr_assert_eq(attach(&target, pid, reason), expected, "%s", reason);
	cr_assert(strstr(reason, part), "%s", reason);
}

/* ---- every version ---- */

static void try_python(const char *version, const char *command)
{
	bool debug = strstr(version, "-dbg");
	pid_t pid = start("exec %s -c '%s'", command, SPIN);
	unsigned int minor = atoi(version + 2);

	expect_version(pid, minor, PBP_SLOT_FSBASE);
	printf("attach: %s%s\n", version, debug ? " (debug)" : "");
	stop(pid);
}

static void for_each_python(void (*function)(const char *version, const char *command))
{
	FILE *list = popen("scripts/test-pythons --list 2>/dev/null", "r");
	char version[32], command[512];
	int count = 0;

	while (list && fscanf(list, "%31s %*s %511[^\n]", version, command) == 2) {
		function(version, command);
		count++;
	}
	cr_assert_gt(count, 0);
	pclose(list);
}

Test(attach, every_python)
{
	for_each_python(try_python);
}

Test(attach, threads_that_come_and_go)
{
	for (int minor = 13; minor <= 15; minor++) {
		pid_t pid = start("exec chroot %s python3.%d -c '\nimport threading\nwhile True:\n"
				  " t = threading.Thread(target=int); t.start(); t.join()'",
				  root, minor);

		for (int i = 0; i < 100; i++)
			expect_version(pid, minor, PBP_SLOT_FSBASE);
		stop(pid);
	}
}

/* Pools of threads are made, used and ended; none of 200 looks in a row may fail for that. */
static const char pools[] = "import asyncio, functools\n"
			    "def to_thread(*call):\n"
			    "    return asyncio.get_running_loop().run_in_executor(None, *call)\n"
			    "to_thread = getattr(asyncio, \"to_thread\", to_thread)\n"
			    "async def main():\n"
			    "    for _ in range(20):\n"
			    "        await asyncio.gather(*[to_thread(sum, range(1000)) for _ in range(8)])\n"
			    "while True:\n"
			    "    asyncio.run(main())\n";

static void look_often(const char *version, const char *command)
{
	pid_t pid = start("exec %s -c '%s'", command, pools);
	struct py_target target;
	char reason[512];

	cr_assert_eq(attach(&target, pid, reason), PY_ATTACH_OK, "%s: %s", version, reason);
	usleep(300000);
	for (int i = 0; i < 200; i++) {
		cr_assert_eq(py_target__open(&target, pid, reason, sizeof(reason)), PY_ATTACH_OK, "%s, look %d: %s",
			     version, i, reason);
		usleep(500);
	}
	stop(pid);
}

Test(attach, two_hundred_times)
{
	for_each_python(look_often);
}

/* ---- two runtimes ---- */

Test(attach, unused_second_copy)
{
	for (int minor = 13; minor <= 15; minor++) {
		pid_t pid = start("exec chroot %s python3.%d -c 'import ctypes\n"
				  "ctypes.CDLL(\"libpython3.%d.so.1.0\")\n" SPIN "'",
				  root, minor, minor);

		usleep(300000);
		expect_version(pid, minor, PBP_SLOT_FSBASE);
		stop(pid);
	}
}

Test(attach, unused_copy_of_another_version)
{
	pid_t pid =
		start("exec chroot %s python3.14 -c 'import ctypes, os\n"
		      "ctypes.CDLL(\"libpython3.13.so.1.0\", mode=os.RTLD_NOW|os.RTLD_DEEPBIND)\n" SPIN "'",
		      root);

	usleep(300000);
	expect_version(pid, 14, PBP_SLOT_FSBASE);
	stop(pid);
}

/* ---- files ---- */

static void copy_python(const char *to, int minor)
{
	char command[1024];

	snprintf(command, sizeof(command), "cp '%s/usr/bin/python3.%d' '%s%s'", root, minor, root, to);
	cr_assert_eq(system(command), 0);
}

static void remove_from_root(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
}

Test(attach, deleted_program)
{
	pid_t pid;

	copy_python("/tmp/attach-deleted", 15);
	pid = start("exec chroot %s /tmp/attach-deleted -c '%s'", root, SPIN);
	usleep(300000);
	remove_from_root("/tmp/attach-deleted");
	expect_version(pid, 15, PBP_SLOT_FSBASE);
	stop(pid);
	copy_python("/tmp/attach (deleted)", 15);
	pid = start("exec chroot %s '/tmp/attach (deleted)' -c '%s'", root, SPIN);
	expect_version(pid, 15, PBP_SLOT_FSBASE);
	stop(pid);
	remove_from_root("/tmp/attach (deleted)");
}

static void patch_file(const char *path, long offset, const void *bytes, size_t len)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s%s", root, path);
	fd = open(full, O_RDWR);
	cr_assert_eq(pwrite(fd, bytes, len, offset), (ssize_t)len);
	close(fd);
}

Test(attach, no_section_headers)
{
	for (int minor = 13; minor <= 15; minor++) {
		pid_t pid;

		copy_python("/tmp/attach-nosh", minor);
		patch_file("/tmp/attach-nosh", 0x28, "\0\0\0\0\0\0\0", 8); /* e_shoff */
		patch_file("/tmp/attach-nosh", 0x3c, "\0\0\0", 4);	   /* e_shnum, e_shstrndx */
		pid = start("exec chroot %s /tmp/attach-nosh -c '%s'", root, SPIN);
		expect_version(pid, minor, PBP_SLOT_FSBASE);
		stop(pid);
		remove_from_root("/tmp/attach-nosh");
	}
}

/* An embedder with an odd name that loads a libpython with an odd name, which is gone by then. */
Test(attach, embedded_and_unlinked)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "cc -w -o %s/tmp/attach-server tests/targets/embed.c -ldl -lpthread", root);
	if (system(command))
		cr_skip_test("no C compiler");
	for (int minor = 13; minor <= 15; minor++) {
		pid_t pid;

		snprintf(command, sizeof(command),
			 "mkdir -p %s/tmp/attach/lib && cp %s/usr/lib/x86_64-linux-gnu/libpython3.%d.so.1.0 "
			 "%s/tmp/attach/lib/odd.so",
			 root, root, minor, root);
		cr_assert_eq(system(command), 0);
		pid = start("PYTHONHOME=/usr exec chroot %s /tmp/attach-server /tmp/attach/lib/odd.so spin",
			    root);
		usleep(700000);
		remove_from_root("/tmp/attach/lib/odd.so");
		expect_version(pid, minor, minor == 15 ? PBP_SLOT_DTV : PBP_SLOT_FSBASE);
		stop(pid);
	}
	remove_from_root("/tmp/attach-server");
	snprintf(command, sizeof(command), "rm -r %s/tmp/attach", root);
	cr_assert_eq(system(command), 0);
}

/* ---- tables that were tampered with ---- */

static pid_t start_and_patch(int minor, uint64_t position, uint64_t value)
{
	pid_t pid = start("exec chroot %s python3.%d -c '%s'", root, minor, SPIN);
	struct py_target target;
	char reason[512], path[64];
	int fd;

	usleep(400000); /* an interpreter that is starting has no frames to contradict anything yet */
	cr_assert_eq(attach(&target, pid, reason), PY_ATTACH_OK, "%s", reason);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, &value, 8, target.runtime + position), 8);
	close(fd);
	return pid;
}

static void expect_refused_table(int minor, uint64_t position, uint64_t value, enum py_attach_error expected,
				 const char *part)
{
	pid_t pid = start_and_patch(minor, position, value);

	expect_refusal(pid, expected, part);
	stop(pid);
}

Test(attach, tampered_tables)
{
	expect_refused_table(13, 192, 0x8000, PY_ATTACH_CORRUPT, "thread_state.thread_id (32768)");
	expect_refused_table(14, 256, 16, PY_ATTACH_CORRUPT, "interpreter_frame.previous");
	expect_refused_table(14, 264, 24, PY_ATTACH_CORRUPT, "interpreter_frame.executable");
	expect_refused_table(15, 8, 0x031002f0, PY_ATTACH_UNSUPPORTED, "Python 3.16 is not supported");
	expect_refused_table(15, 8, 0x030f00b1, PY_ATTACH_UNSUPPORTED, "3.15.0b1");
	expect_refused_table(15, 8, 0, PY_ATTACH_CORRUPT, "version 0x0");
	expect_refused_table(14, 16, 1, PY_ATTACH_CORRUPT, "not that of a free-threaded build");
}

/* ---- other processes ---- */

/* What is said of a process that is no Python and has a child that is: that child's number; 0: none yet. */
static pid_t hinted_child(struct process *process, char *reason, size_t size)
{
	const char *hint;

	cr_assert_eq(process__attach_patiently(process, reason, size), PY_ATTACH_NOT_PYTHON);
	hint = strstr(reason, "its child ");
	return hint && strstr(hint, "use -p") ? atoi(hint + 10) : 0;
}

static pid_t wait_for_hint(pid_t pid, char *reason, size_t size)
{
	struct strtab *strings;
	struct process process;
	pid_t child = 0;

	cr_assert_eq(strtab__new(&strings), 0);
	cr_assert_eq(process__open(&process, pid, strings), 0);
	for (int i = 0; i < 100 && !child; i++) {
		usleep(50000);
		child = hinted_child(&process, reason, size);
	}
	process__close(&process);
	strtab__free(strings);
	cr_assert_gt(child, 0, "%s", reason);
	return child;
}

Test(attach, wrapper)
{
	pid_t pid = start("chroot %s python3.15 -c '%s' & wait", root, SPIN);
	char reason[512];
	pid_t child = wait_for_hint(pid, reason, sizeof(reason));

	cr_assert(!strncmp(reason, "sh is not a Python process; its child ", 38), "%s", reason);
	expect_version(child, 15, PBP_SLOT_FSBASE);
	kill(child, SIGKILL);
	stop(pid);
}

Test(attach, not_python)
{
	struct py_target target;
	pid_t pid = start("exec sleep 60");
	char reason[512];

	usleep(200000);
	cr_assert_eq(py_target__open(&target, pid, reason, sizeof(reason)), PY_ATTACH_NOT_PYTHON);
	cr_assert_str_eq(reason, "sleep is not a Python process");
	kill(pid, SIGKILL);
	usleep(100000);
	cr_assert_eq(py_target__open(&target, pid, reason, sizeof(reason)), PY_ATTACH_GONE, "a zombie");
	stop(pid);
	cr_assert_eq(py_target__open(&target, pid, reason, sizeof(reason)), PY_ATTACH_GONE);
}

/* The process is number 1 of its own pid namespace, and so says its thread state. */
Test(attach, pid_namespace)
{
	pid_t pid = start("exec unshare -pf --kill-child chroot %s python3.15 -c '%s'", root, SPIN);
	struct py_target target;
	struct py_thread thread;
	char reason[512];
	pid_t child = wait_for_hint(pid, reason, sizeof(reason));

	cr_assert_eq(attach(&target, child, reason), PY_ATTACH_OK, "%s", reason);
	cr_assert_eq(py_target__threads(&target, &thread, 1), 1);
	cr_assert_eq(thread.native_thread_id, 1);
	stop(pid);
}

Test(attach, not_permitted)
{
	pid_t pid = start("exec chroot %s python3.14 -c '%s'", root, SPIN);
	int status;

	expect_version(pid, 14, PBP_SLOT_FSBASE);
	if (!fork()) {
		struct py_target target;
		char reason[512];

		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(py_target__open(&target, pid, reason, sizeof(reason)) != PY_ATTACH_DENIED ||
		      !strstr(reason, "CAP_SYS_PTRACE"));
	}
	cr_assert_gt(wait(&status), 0);
	cr_assert_eq(status, 0, "%x", status);
	stop(pid);
}

/* The same program at the same addresses, but nothing that was read of it holds any more. */
Test(attach, exec_of_the_same_program)
{
	pid_t pid = start("exec chroot %s python3.15 -c 'import os, time\ntime.sleep(1.5)\n"
			  "os.execv(\"/usr/bin/python3.15\", [\"python3.15\", \"-c\", \"%s\"])'",
			  root, SPIN);
	struct py_target target;
	char reason[512];

	cr_assert_eq(attach(&target, pid, reason), PY_ATTACH_OK, "%s", reason);
	cr_assert(py_target__is_alive(&target));
	usleep(2200000);
	cr_assert_not(py_target__is_alive(&target));
	expect_version(pid, 15, PBP_SLOT_FSBASE);
	cr_assert_not(py_target__is_alive(&target));
	stop(pid);
}
