/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where profiles go: what is visible under the final name at each moment, links, modes, pipes and devices,
 * and every way in which opening or writing fails. Each case works in a fresh directory.
 */
#include "out/writer.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static char directory[] = "/tmp/test_output-XXXXXX";
static const char *content;
static int write_error;

static int write_content(const struct profile *profile, enum group_by group, struct buf *buf)
{
	buf__adds(buf, content);
	return write_error;
}

static const struct writer text_writer = {.name = "text", .write = write_content};
static const struct writer binary_writer = {.name = "binary", .binary = true, .write = write_content};

static void enter_directory(void)
{
	content = "new\n";
	write_error = 0;
	cr_assert_not_null(mkdtemp(directory));
	cr_assert_eq(chmod(directory, 0755), 0);
	cr_assert_eq(chdir(directory), 0);
}

static int count_entries(void)
{
	DIR *dir = opendir(directory);
	int count = -2; /* "." and ".." */

	cr_assert_not_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void leave_directory(void)
{
	char command[sizeof(directory) + 16];

	if (seteuid(0) || chdir("/"))
		return;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_expect_eq(system(command), 0);
}

TestSuite(output, .init = enter_directory, .fini = leave_directory);

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

static void check_file(const char *path, const char *want)
{
	char text[64] = "";
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file, "%s is missing", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	cr_assert_str_eq(text, want, "%s", path);
}

static void check_absent(const char *path)
{
	cr_assert_eq(access(path, F_OK), -1, "%s exists", path);
	cr_assert_eq(errno, ENOENT);
}

static void check_refused(const char *path, int err)
{
	struct output out;
	int before = count_entries(), got = output__open(&out, path, &text_writer);

	cr_assert_eq(got, err, "%s: %s", path, strerror(-got));
	cr_assert_eq(out.fd, -1);
	output__close(&out);
	cr_assert_eq(count_entries(), before);
}

/* Open, write, close, and say what the file holds. */
static void check_written(const char *path)
{
	struct output out;
	int err = output__open(&out, path, &text_writer);

	cr_assert_eq(err, 0, "open: %s", strerror(-err));
	err = output__write(&out, NULL, GROUP_LINE);
	cr_assert_eq(err, 0, "write: %s", strerror(-err));
	cr_assert(out.written);
	output__close(&out);
	check_file(path, "new\n");
}

Test(output, nothing_is_visible_before_the_write)
{
	struct output out;

	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	check_absent("out.txt");
	cr_assert_eq(count_entries(), 1);
	cr_assert_not(out.written);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
	check_file("out.txt", "new\n");
	cr_assert_eq(count_entries(), 1);
	output__close(&out);
	check_file("out.txt", "new\n");
}

Test(output, close_without_write_leaves_nothing)
{
	struct output out;

	put("old.txt", "old\n");
	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	output__close(&out);
	cr_assert_eq(output__open(&out, "old.txt", &text_writer), 0);
	output__close(&out);
	output__close(&out);
	check_absent("out.txt");
	check_file("old.txt", "old\n");
	cr_assert_eq(count_entries(), 1);
	output__close(NULL);
}

Test(output, old_file_stays_until_replaced)
{
	struct output out;
	int reader;
	char text[8] = "";

	put("out.txt", "old\n");
	reader = open("out.txt", O_RDONLY);
	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	check_file("out.txt", "old\n");
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
	check_file("out.txt", "new\n");
	/* Who reads the old one is not disturbed. */
	cr_assert_eq(read(reader, text, sizeof(text)), 4);
	cr_assert_str_eq(text, "old\n");
	close(reader);
	output__close(&out);
}

Test(output, snapshots_replace_each_other)
{
	struct output out;

	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	for (int i = 0; i < 3; i++) {
		content = i == 1 ? "a longer one\n" : "short\n";
		cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
		check_file("out.txt", content);
		cr_assert_eq(count_entries(), 1);
	}
	output__close(&out);
}

Test(output, failing_writer_changes_nothing)
{
	struct output out;

	put("out.txt", "old\n");
	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	write_error = -ENOMEM;
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), -ENOMEM);
	cr_assert_not(out.written);
	check_file("out.txt", "old\n");
	cr_assert_eq(count_entries(), 1);
	/* It may go better the next time. */
	write_error = 0;
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
	check_file("out.txt", "new\n");
	output__close(&out);
}

/* A directory took the name meanwhile: rename fails, and the temporary file does not stay behind. */
Test(output, failing_rename)
{
	struct output out;

	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	cr_assert_eq(mkdir("out.txt", 0755), 0);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), -EISDIR);
	cr_assert_eq(count_entries(), 1);
	output__close(&out);
}

/* The disk fills up in the middle: the half that was written must not replace the old file. */
Test(output, file_size_limit)
{
	const struct rlimit limit = {.rlim_cur = 3, .rlim_max = RLIM_INFINITY},
			    none = {RLIM_INFINITY, RLIM_INFINITY};
	struct output out;
	int err;

	put("out.txt", "old\n");
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(output__open(&out, "out.txt", &text_writer), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	err = output__write(&out, NULL, GROUP_LINE);
	setrlimit(RLIMIT_FSIZE, &none);
	cr_assert_eq(err, -EFBIG);
	check_file("out.txt", "old\n");
	cr_assert_eq(count_entries(), 1);
	output__close(&out);
}

Test(output, refused_paths)
{
	put("file", "");
	mkdir("dir", 0755);
	check_refused("dir", -EISDIR);
	check_refused("dir/", -EISDIR);
	check_refused("/", -EISDIR);
	check_refused(".", -EISDIR);
	check_refused("missing/out.txt", -ENOENT);
	check_refused("missing/", -EISDIR);
	check_refused("file/out.txt", -ENOTDIR);
	check_refused("", -ENOENT);
}

Test(output, refused_links)
{
	cr_assert_eq(symlink("loop", "loop"), 0);
	cr_assert_eq(symlink("missing/out.txt", "dangling"), 0);
	cr_assert_eq(symlink(".", "here"), 0);
	check_refused("loop", -ELOOP);
	check_refused("dangling", -ENOENT);
	check_refused("here", -EISDIR);
}

Test(output, not_permitted)
{
	if (geteuid() != 0)
		cr_skip_test("needs root, to become someone else");
	put("out.txt", "old\n");
	cr_assert_eq(mkdir("open", 0777) | chmod("open", 0777), 0);
	put("open/theirs.txt", "old\n");
	cr_assert_eq(seteuid(NOBODY), 0);
	check_refused("new.txt", -EACCES);
	check_refused("out.txt", -EACCES);
	/* The directory would allow replacing it, the file does not. */
	check_refused("open/theirs.txt", -EACCES);
	check_written("open/new.txt");
	cr_assert_eq(seteuid(0), 0);
	check_file("open/theirs.txt", "old\n");
}

Test(output, longest_name)
{
	char name[NAME_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	check_written(name);
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = '\0';
	check_refused(name, -ENAMETOOLONG);
}

Test(output, links_stay)
{
	struct stat info;

	cr_assert_eq(mkdir("data", 0755), 0);
	put("data/real.txt", "old\n");
	cr_assert_eq(symlink("data/second", "first"), 0);
	cr_assert_eq(symlink("real.txt", "data/second"), 0);
	check_written("first");
	check_file("data/real.txt", "new\n");
	cr_assert_eq(lstat("first", &info), 0);
	cr_assert(S_ISLNK(info.st_mode));
	cr_assert_eq(lstat("data/second", &info), 0);
	cr_assert(S_ISLNK(info.st_mode));
	cr_assert_eq(lstat("data/real.txt", &info), 0);
	cr_assert(S_ISREG(info.st_mode));
}

Test(output, link_to_a_new_file)
{
	char target[sizeof(directory) + 16];

	snprintf(target, sizeof(target), "%s/new.txt", directory);
	cr_assert_eq(mkdir("links", 0755), 0);
	cr_assert_eq(symlink(target, "links/link"), 0);
	check_written("links/link");
	check_file("new.txt", "new\n");
}

/* What a user of the machine puts into /tmp is not written through by root; one's own links are followed. */
Test(output, links_of_others)
{
	cr_assert_eq(mkdir("open", 0755), 0);
	cr_assert_eq(chmod("open", 01777), 0);
	put("old.txt", "old\n");
	cr_assert_eq(symlink("../new.txt", "open/own"), 0);
	check_written("open/own");
	if (geteuid())
		cr_skip_test("only root gives links away");
	cr_assert_eq(symlink("../old.txt", "open/old"), 0);
	cr_assert_eq(symlink("../none.txt", "open/none"), 0);
	cr_assert_eq(symlink("/dev/null", "open/device"), 0);
	cr_assert_eq(symlink("open/none", "to_none"), 0);
	cr_assert_eq(lchown("open/old", NOBODY, NOBODY), 0);
	cr_assert_eq(lchown("open/none", NOBODY, NOBODY), 0);
	cr_assert_eq(lchown("open/device", NOBODY, NOBODY), 0);
	check_refused("open/old", -EACCES);
	check_refused("open/none", -EACCES);
	check_refused("open/device", -EACCES);
	check_refused("to_none", -EACCES);
	check_file("old.txt", "old\n");
	check_absent("none.txt");
	/* The folder is theirs, or not open to all. */
	cr_assert_eq(chown("open", NOBODY, NOBODY), 0);
	check_written("open/old");
	cr_assert_eq(chown("open", 0, 0), 0);
	cr_assert_eq(chmod("open", 0755), 0);
	check_written("open/none");
}

static mode_t mode_of(const char *path)
{
	struct stat info;

	cr_assert_eq(stat(path, &info), 0);
	return info.st_mode & 07777;
}

Test(output, modes)
{
	umask(027);
	check_written("new.txt");
	cr_assert_eq(mode_of("new.txt"), 0640);
	umask(0);
	check_written("open.txt");
	cr_assert_eq(mode_of("open.txt"), 0666);
	put("private.txt", "old\n");
	cr_assert_eq(chmod("private.txt", 0600), 0);
	check_written("private.txt");
	cr_assert_eq(mode_of("private.txt"), 0600);
}

/* sudo pybpfprof -o FILE must not take the user's file away. */
Test(output, owner_stays)
{
	struct stat info;

	if (geteuid() != 0)
		cr_skip_test("needs root, to give files away");
	put("theirs.txt", "old\n");
	cr_assert_eq(chown("theirs.txt", NOBODY, NOBODY), 0);
	check_written("theirs.txt");
	cr_assert_eq(stat("theirs.txt", &info), 0);
	cr_assert_eq(info.st_uid, NOBODY);
	cr_assert_eq(info.st_gid, NOBODY);
}

Test(output, full_device)
{
	struct output out;

	if (access("/dev/full", W_OK))
		cr_skip_test("no /dev/full");
	cr_assert_eq(output__open(&out, "/dev/full", &text_writer), 0);
	cr_assert_null(out.tmp_path);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), -ENOSPC);
	cr_assert_not(out.written);
	output__close(&out);
	cr_assert_eq(access("/dev/full", W_OK), 0);
}

struct reading {
	const char *path;
	char text[64];
};

static void *read_all(void *arg)
{
	struct reading *reading = arg;
	FILE *file = fopen(reading->path, "r");

	reading->text[fread(reading->text, 1, sizeof(reading->text) - 1, file)] = '\0';
	fclose(file);
	return NULL;
}

/* A reader sees both snapshots and the end only at close. */
Test(output, fifo)
{
	struct reading reading = {.path = "fifo"};
	pthread_t reader;
	struct output out;

	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_all, &reading), 0);
	cr_assert_eq(output__open(&out, "fifo", &text_writer), 0);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
	output__close(&out);
	pthread_join(reader, NULL);
	cr_assert_str_eq(reading.text, "new\nnew\n");
	cr_assert_eq(count_entries(), 1);
}

/* stdout as a fresh file; returns what it was before. */
static int redirect_stdout(const char *path)
{
	int saved = dup(STDOUT_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	close(fd);
	return saved;
}

static void restore_stdout(int saved)
{
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

Test(output, broken_pipe)
{
	int fds[2], saved = dup(STDOUT_FILENO);
	struct output out;

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(fds), 0);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
	close(fds[0]);
	cr_assert_eq(output__open(&out, "-", &text_writer), 0);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), -EPIPE);
	output__close(&out);
	restore_stdout(saved);
}

/* The profile goes between what else is printed, and stdout stays open. */
static void check_stdout(const char *path)
{
	int saved = redirect_stdout("stdout");
	struct output out;

	dprintf(STDOUT_FILENO, "before\n");
	cr_assert_eq(output__open(&out, path, &text_writer), 0);
	cr_assert_eq(output__write(&out, NULL, GROUP_LINE), 0);
	output__close(&out);
	dprintf(STDOUT_FILENO, "after\n");
	restore_stdout(saved);
	check_file("stdout", "before\nnew\nafter\n");
	cr_assert_eq(count_entries(), 1);
}

Test(output, stdout_by_any_name)
{
	check_stdout("-");
	check_stdout("/dev/stdout");
	check_stdout("/proc/self/fd/1");
	check_stdout("stdout");
}

Test(output, closed_stdout)
{
	struct output out;
	int saved = dup(STDOUT_FILENO), err;

	close(STDOUT_FILENO);
	err = output__open(&out, "-", &text_writer);
	restore_stdout(saved);
	cr_assert_eq(err, -EBADF);
	output__close(&out);
}

Test(output, binary_on_a_terminal)
{
	struct output out;
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);

	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
		cr_skip_test("no pseudo terminal");
	cr_assert_eq(output__open(&out, ptsname(terminal), &binary_writer), -ENOTSUP);
	output__close(&out);
	cr_assert_eq(output__open(&out, ptsname(terminal), &text_writer), 0);
	output__close(&out);
	cr_assert_eq(output__open(&out, "/dev/null", &binary_writer), 0);
	output__close(&out);
	close(terminal);
}

/* Text that is no profile goes the same ways. */
Test(output, other_text)
{
	struct buf text = {0};
	struct output out;

	put("report", "old\n");
	cr_assert_eq(output__open(&out, "no/such/report", NULL), -ENOENT);
	cr_assert_eq(output__open(&out, "report", NULL), 0);
	check_file("report", "old\n");
	buf__adds(&text, "{}\n");
	cr_assert_eq(output__write_text(&out, &text), 0);
	output__close(&out);
	check_file("report", "{}\n");
	cr_assert_eq(output__open(&out, "-", NULL), 0);
	cr_expect_eq(out.fd, STDOUT_FILENO);
	output__close(&out);
	cr_expect_eq(count_entries(), 1);
	buf__free(&text);
}

/* --- one part after the other --- */

Test(output, parts)
{
	struct output out;
	char text[32] = "";
	int fd;

	cr_assert_eq(output__open(&out, "x.bin", &binary_writer), 0);
	cr_expect_eq(access("x.bin", F_OK), -1);
	cr_assert_eq(output__append(&out, "one\n", 4), 0);
	cr_expect_eq(access("x.bin", F_OK), 0, "it has no name yet");
	cr_expect_eq(count_entries(), 1);
	cr_assert_eq(output__append(&out, "two\n", 4), 0);
	fd = open("x.bin", O_RDONLY);
	cr_expect(read(fd, text, sizeof(text)) == 8 && !strcmp(text, "one\ntwo\n"), "%s", text);
	close(fd);
	cr_expect_eq(output__finish(&out), 0);
	output__close(&out);
	cr_expect_eq(count_entries(), 1);
}

/* What was there before stays until there is something; a part that does not fit leaves nothing of itself. */
Test(output, parts_that_do_not_fit)
{
	const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
	static char part[3000];
	struct output out;
	struct stat file;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert(!close(creat("x.bin", 0600)) && !truncate("x.bin", 77));
	cr_assert_eq(output__open(&out, "x.bin", &binary_writer), 0);
	cr_expect(!stat("x.bin", &file) && file.st_size == 77);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_eq(output__append(&out, part, sizeof(part)), 0);
	cr_expect_eq(output__append(&out, part, sizeof(part)), -EFBIG);
	cr_expect(!stat("x.bin", &file) && file.st_size == sizeof(part), "%ld bytes", (long)file.st_size);
	output__close(&out);
	cr_expect(out.replaces && count_entries() == 1);
}
