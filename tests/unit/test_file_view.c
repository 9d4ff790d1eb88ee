/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files as another process sees them: what is read, and what is not.
 */
#include "os/file_view.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER 65534

static char folder[64];
static struct file_view view;

static void put(const char *name, const char *text, size_t len, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert(fd >= 0 && write(fd, text, len) == (ssize_t)len && !fchmod(fd, mode));
	close(fd);
}

static void begin(void)
{
	snprintf(folder, sizeof(folder), "/tmp/test-file-view-XXXXXX");
	cr_assert(mkdtemp(folder) && !chdir(folder) && !chmod(folder, 0755));
	cr_assert_eq(file_view__open(&view, getpid()), 0);
}

static void end(void)
{
	char command[128];

	file_view__close(&view);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert(!chdir("/") && !system(command));
}

TestSuite(file_view, .init = begin, .fini = end);

static const char *absolute(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void expect(const char *path, enum file_fault fault, const char *text)
{
	struct file_read file = {.path = path};

	file_view__read(&view, &file, 1, UINT64_MAX);
	cr_expect_eq(file.fault, fault, "%s: %d", path, file.fault);
	cr_expect(!text || (file.len == strlen(text) && !memcmp(file.text, text, file.len)), "%s: %.*s", path,
		  (int)file.len, file.text);
	free(file.text);
}

Test(file_view, reads)
{
	struct file_read files[3] = {{.path = "a.py"}, {.path = "none.py"}, {.path = "b.py"}};
	struct stat stat;

	put("a.py", "one\n", 4, 0644);
	put("b.py", "", 0, 0644);
	file_view__read(&view, files, 3, UINT64_MAX);
	cr_expect(files[0].fault == FILE_READ && files[0].len == 4 && !memcmp(files[0].text, "one\n", 4));
	cr_assert(!lstat("a.py", &stat));
	cr_expect(files[0].inode == stat.st_ino && files[0].device == stat.st_dev &&
		  files[0].changed_ns / 1000000000 == stat.st_mtim.tv_sec);
	cr_expect_eq(files[1].fault, FILE_MISSING);
	cr_expect(files[2].fault == FILE_READ && !files[2].text && !files[2].len);
	free(files[0].text);
	expect(absolute("a.py"), FILE_READ, "one\n");
}

/* As the process sees them: up to its root, and no farther. */
Test(file_view, above_the_working_folder)
{
	char path[200];
	int root = open(folder, O_PATH | O_DIRECTORY);

	put("a.py", "one\n", 4, 0644);
	snprintf(path, sizeof(path), "..%s/a.py", strrchr(folder, '/'));
	expect(path, FILE_READ, "one\n");
	cr_assert(!symlink(path, "link"));
	expect("link", FILE_MISSING, NULL);
	expect("../../../etc/passwd", FILE_MISSING, NULL);
	cr_assert(root >= 0 && !mkdir("sub", 0755) && !mkdir("sub/sub", 0755));
	dup2(root, view.root);
	close(view.cwd);
	view.cwd = open("sub/sub", O_PATH | O_DIRECTORY);
	expect("../../a.py", FILE_READ, "one\n");
	expect("../../../a.py", FILE_MISSING, NULL);
	expect("../..", FILE_NOT_REGULAR, NULL);
	/* A folder that is not below the root. */
	dup2(view.cwd, view.root);
	close(view.cwd);
	view.cwd = root;
	expect("a.py", FILE_READ, "one\n");
	expect("../a.py", FILE_MISSING, NULL);
}

Test(file_view, what_is_not_opened)
{
	put("a.py", "line\n", 5, 0644);
	cr_assert(!mkfifo("fifo", 0644) && !mkdir("sub", 0755));
	cr_assert(!symlink("a.py", "link") && !symlink("/proc/self/environ", "environ"));
	cr_assert(!symlink("../../etc/passwd", "out") && !symlink("loop", "loop"));
	expect("link", FILE_READ, "line\n");
	expect("fifo", FILE_NOT_REGULAR, NULL);
	expect("sub", FILE_NOT_REGULAR, NULL);
	expect("/dev/zero", FILE_NOT_REGULAR, NULL);
	expect("out", FILE_MISSING, NULL);
	expect("loop", FILE_MISSING, NULL);
	expect("/proc/1/cwd/etc/passwd", FILE_DENIED, NULL);
	expect("/proc/self/environ", FILE_NOT_REGULAR, NULL);
	expect(absolute("environ"), FILE_NOT_REGULAR, NULL);
	expect("", FILE_MISSING, NULL);
	cr_assert(!truncate("a.py", FILE_BYTES_MAX + 1));
	expect("a.py", FILE_TOO_LARGE, NULL);
}

/* All together have an upper size, too, and so has their number. */
Test(file_view, bounds)
{
	static struct file_read files[FILE_READS_MAX + 1];
	size_t read = 0, too_large = 0;

	put("a.py", "", 0, 0644);
	cr_assert(!truncate("a.py", FILE_BYTES_MAX));
	put("b.py", "b", 1, 0644);
	for (size_t i = 0; i <= FILE_READS_MAX; i++)
		files[i].path = "b.py";
	for (size_t i = 0; i < 12; i++)
		files[i].path = "a.py";
	file_view__read(&view, files, FILE_READS_MAX + 1, UINT64_MAX);
	for (size_t i = 0; i < 12; i++) {
		read += files[i].fault == FILE_READ;
		too_large += files[i].fault == FILE_TOO_LARGE;
	}
	cr_expect(read == 8 && too_large == 4, "%zu, %zu", read, too_large);
	cr_expect_eq(files[FILE_READS_MAX].fault, FILE_FAILED);
	for (size_t i = 0; i <= FILE_READS_MAX; i++)
		free(files[i].text);
}

/* When the time is over nothing is read any more, and that is the reason. */
Test(file_view, in_time)
{
	struct file_read files[2] = {{.path = "a.py"}, {.path = "a.py"}};

	put("a.py", "line\n", 5, 0644);
	file_view__read(&view, files, 2, 1);
	cr_expect(files[0].fault == FILE_SLOW && files[1].fault == FILE_SLOW && !files[0].text);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

/* A process of another user; the caller ends it. */
static pid_t start_user(const gid_t *groups, size_t count)
{
	int ready[2];
	char byte;
	pid_t pid;

	cr_assert(!pipe(ready));
	pid = fork();
	if (!pid) {
		if (setgroups(count, groups) || setgid(USER) || setuid(USER) || prctl(PR_SET_DUMPABLE, 1) ||
		    write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_user(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(file_view, with_the_rights_of_the_process)
{
	const gid_t group = 4321;
	struct file_view other, none;
	pid_t pid;

	if (getuid())
		cr_skip_test("only root reads the files of others anyway");
	put("open.py", "line\n", 5, 0644);
	put("closed.py", "line\n", 5, 0600);
	put("group.py", "line\n", 5, 0640);
	cr_assert(!mkdir("private", 0700));
	put("private/open.py", "line\n", 5, 0644);
	cr_assert(!chown("group.py", 0, group));
	pid = start_user(&group, 1);
	cr_assert_eq(file_view__open(&other, pid), 0);
	cr_expect(!file_view__equal(&other, &view));
	end_user(pid);
	file_view__close(&view);
	view = other; /* as it was, though it has ended */
	expect("open.py", FILE_READ, "line\n");
	expect("closed.py", FILE_DENIED, NULL);
	expect("group.py", FILE_READ, "line\n");
	expect("private/open.py", FILE_DENIED, NULL);
	expect(absolute("private/open.py"), FILE_DENIED, NULL);
	expect("/etc/shadow", FILE_DENIED, NULL);
	pid = start_user(NULL, 0);
	cr_assert_eq(file_view__open(&none, pid), 0);
	end_user(pid);
	file_view__close(&view);
	view = none;
	expect("group.py", FILE_DENIED, NULL);
	cr_expect_eq(file_view__open(&none, pid), -ESRCH);
}

/* Ours are as they were. */
Test(file_view, changes_nothing_here)
{
	uid_t uid = geteuid();

	put("a.py", "line\n", 5, 0600);
	expect("a.py", FILE_READ, "line\n");
	cr_expect_eq(geteuid(), uid);
	cr_expect_eq(access("a.py", R_OK), 0);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}
