/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code that processes name: read as they saw files, told when it is another than what ran.
 */
#include "run/code_files.h"
#include "made.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct code_files files;
static struct profile profile;
static char folder[64];
static pid_t children[4];
static size_t child_count;

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void begin(void)
{
	snprintf(folder, sizeof(folder), "/tmp/test-code-files-XXXXXX");
	cr_assert(mkdtemp(folder) && !chdir(folder) && !chmod(folder, 0755));
	cr_assert(!profile__init(&profile, 1000));
}

static void end_child(size_t i)
{
	kill(children[i], SIGKILL);
	waitpid(children[i], NULL, 0);
	children[i] = 0;
}

static void end(void)
{
	char command[128];

	for (size_t i = 0; i < child_count; i++)
		if (children[i])
			end_child(i);
	code_files__free(&files);
	profile__free(&profile);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert(!chdir("/") && !system(command));
}

TestSuite(code_files, .init = begin, .fini = end);

/* A process in a folder. */
static struct process start_in(const char *name)
{
	struct process process = {.serial = (uint32_t)child_count + 1};
	int ready[2];
	char byte;

	cr_assert(!pipe(ready));
	process.pid = fork();
	if (!process.pid) {
		if (chdir(name) || write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
	}
	cr_assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	children[child_count++] = process.pid;
	return process;
}

/* A sample of a function in that file, met in that process. */
static void meet(const struct process *process, const char *name)
{
	MADE_STACK(&profile, 1, ((struct made_frame){"f", name, 1, 1, FRAME_PYTHON}));
	code_files__note(&files, process, made_text(&profile, name));
}

static const struct listing *listing_of(const char *name)
{
	const struct listing *listing = listings__get(&profile.listings, made_text(&profile, name));

	cr_assert(listing, "no %s", name);
	return listing;
}

Test(code_files, reads)
{
	struct process process;

	put("a.py", "one\n");
	put("binary.py", "binary");
	cr_assert(!truncate("binary.py", 10));
	usleep(50000); /* longer than start times are told in */
	process = start_in(".");
	meet(&process, "a.py");
	meet(&process, "none.py");
	meet(&process, "<string>");
	meet(&process, "binary.py");
	meet(&process, "a.py");
	cr_assert_eq(code_files__read(&files, &profile), 0);
	cr_expect_eq(files.uses.len, 4);
	cr_expect_eq(listing_of("binary.py")->state, LISTING_NO_TEXT);
	cr_expect(listing_of("a.py")->state == LISTING_READ && listing_of("a.py")->len == 4 &&
		  !listing_of("a.py")->changed && !listing_of("a.py")->differs);
	cr_expect_eq(listing_of("none.py")->state, LISTING_MISSING);
	cr_expect_eq(listing_of("<string>")->state, LISTING_NO_FILE);
	usleep(50000);
	put("a.py", "other\n");
	cr_assert_eq(code_files__read(&files, &profile), 0);
	cr_expect(listing_of("a.py")->changed && listing_of("a.py")->len == 6, "the second time");
}

/* One of which the process is over by then: its folder was known. One that was over before: nobody knows it.
 */
Test(code_files, of_what_is_over)
{
	struct process process = start_in("."), late = start_in(".");

	put("a.py", "one\n");
	meet(&process, "a.py");
	end_child(0);
	end_child(1);
	meet(&late, "b.py");
	cr_assert_eq(code_files__read(&files, &profile), 0);
	cr_expect_eq(listing_of("a.py")->state, LISTING_READ);
	cr_expect_eq(listing_of("b.py")->state, LISTING_GONE);
}

Test(code_files, of_one_name)
{
	struct process one, same, other;

	cr_assert(!mkdir("one", 0755) && !mkdir("same", 0755) && !mkdir("other", 0755));
	put("one/a.py", "one\n");
	put("same/a.py", "one\n");
	put("other/a.py", "two\n");
	put("other/b.py", "b\n");
	one = start_in("one");
	same = start_in("same");
	other = start_in("other");
	meet(&one, "a.py");
	meet(&same, "a.py");
	meet(&one, "b.py"); /* is not there, but the other one has it */
	meet(&other, "b.py");
	cr_assert_eq(code_files__read(&files, &profile), 0);
	cr_expect_eq(files.views.len, 3);
	cr_expect(!listing_of("a.py")->differs);
	cr_expect_eq(listing_of("b.py")->state, LISTING_READ);
	meet(&other, "a.py");
	cr_assert_eq(code_files__read(&files, &profile), 0);
	cr_expect(listing_of("a.py")->differs);
	cr_expect(!memcmp(listing_of("a.py")->text, "one\n", 4), "not the first one's");
}
