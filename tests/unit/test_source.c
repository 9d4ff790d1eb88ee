/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of files that a process names: its own, in a scratch folder.
 */
#include "os/source.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct sources sources;
static char folder[64];

static void put(const char *name, const char *text, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
}

static void begin(void)
{
	snprintf(folder, sizeof(folder), "/tmp/test-source-XXXXXX");
	cr_assert(mkdtemp(folder) && !chdir(folder));
	sources__init(&sources, getpid());
}

static void end(void)
{
	char command[128];

	sources__free(&sources);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert(!chdir("/") && !system(command));
}

TestSuite(source, .init = begin, .fini = end);

/* The line as a string; NULL. */
static const char *line_of(const char *path, uint32_t line)
{
	static uint64_t key;
	static char text[1000];
	size_t len = 0;
	const char *found = sources__line(&sources, ++key, path, line, &len);

	if (!found)
		return NULL;
	snprintf(text, sizeof(text), "%.*s", (int)len, found);
	return text;
}

static const char *absolute(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

Test(source, lines)
{
	static const char text[] = "first\n\n   \tthird  \r\nna\0me\n\xff\nlast";

	put("a.py", text, sizeof(text) - 1);
	cr_expect_str_eq(line_of("a.py", 1), "first");
	cr_expect_null(line_of("a.py", 2));
	cr_expect_str_eq(line_of("a.py", 3), "third");
	cr_expect_str_eq(line_of("a.py", 4), "na");
	cr_expect_str_eq(line_of("a.py", 5), "\xff");
	cr_expect_str_eq(line_of(absolute("a.py"), 6), "last");
	cr_expect_null(line_of("a.py", 7));
	cr_expect_null(line_of("a.py", 0));
	cr_expect_null(line_of("a.py", UINT32_MAX));
	cr_expect_null(line_of("none.py", 1));
	cr_expect_null(line_of("", 1));
	put("empty.py", "", 0);
	cr_expect_null(line_of("empty.py", 1));
	put("long.py", (char[5000]){[0 ... 4999] = 'x'}, 5000);
	cr_expect_eq(strlen(line_of("long.py", 1)), 400);
}

Test(source, one_key_is_one_file)
{
	size_t len;

	put("a.py", "one\ntwo\n", 8);
	cr_expect(sources__line(&sources, 1u << 30, "a.py", 1, &len) && len == 3);
	unlink("a.py");
	cr_expect(sources__line(&sources, 1u << 30, "a.py", 2, &len) && len == 3, "it is kept");
	cr_expect_null(line_of("a.py", 1));
}

Test(source, what_is_not_opened)
{
	put("a.py", "line\n", 5);
	put("<string>", "line\n", 5);
	cr_assert(!mkfifo("fifo", 0644) && !mkdir("sub", 0755));
	cr_assert(!symlink("a.py", "link") && !symlink("/proc/self/environ", "magic"));
	cr_assert(!symlink("../../etc/passwd", "out") && !symlink(absolute("a.py"), "absolute"));
	cr_expect_null(line_of("<string>", 1));
	cr_expect_null(line_of("fifo", 1), "a FIFO");
	cr_expect_null(line_of(absolute("fifo"), 1), "a FIFO");
	cr_expect_null(line_of("sub", 1), "a folder");
	cr_expect_null(line_of("/dev/zero", 1), "a device");
	cr_expect_null(line_of("/proc/1/cwd/etc/passwd", 1), "a magic link");
	/* No link leads out of the working directory, and nothing out of the root. */
	cr_expect_str_eq(line_of("link", 1), "line");
	cr_expect_null(line_of("out", 1));
	cr_expect_null(line_of("../../../etc/passwd", 1));
	cr_expect_null(line_of("absolute", 1));
	cr_expect_str_eq(line_of(absolute("absolute"), 1), "line");
	cr_assert(!truncate("a.py", 9 << 20));
	cr_expect_null(line_of("a.py", 1), "too large");
}

Test(source, what_its_user_may_not_read)
{
	pid_t child;
	int go[2];
	char byte;

	put("open.py", "line\n", 5);
	put("closed.py", "line\n", 5);
	chmod("closed.py", 0600);
	mkdir("private", 0700);
	put("private/open.py", "line\n", 5);
	chmod(folder, 0755);
	if (getuid())
		return; /* only root reads the files of others anyway */
	cr_assert(!pipe(go));
	child = fork();
	if (!child) {
		close(go[1]);
		if (setgid(65534) || setuid(65534) || read(go[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	usleep(100000);
	sources.pid = child;
	cr_expect_str_eq(line_of(absolute("open.py"), 1), "line");
	cr_expect_null(line_of(absolute("closed.py"), 1));
	cr_expect_null(line_of(absolute("private/open.py"), 1), "in a folder that is closed to it");
	close(go[1]);
	close(go[0]);
}
