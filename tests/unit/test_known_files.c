/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers about files: remembered for the file as it is, not for its name, and not for ever.
 */
#include "os/known_files.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t number_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t file;

	cr_assert_geq(fd, 0, "%s", path);
	file = known_files__open(fd);
	close(fd);
	return file;
}

Test(known_files, answers)
{
	struct known_answer given = {.value = 0x1234, .size = 5}, none = {.err = -2}, answer;
	uint64_t sh = number_of("/bin/sh"), ls = number_of("/bin/ls");
	uint64_t first = known_question(1, "name", 0), second = known_question(1, "name", 1);

	cr_assert(sh && ls && sh != ls);
	cr_expect_eq(number_of("/bin/../bin/sh"), sh, "by another way");
	cr_expect(first != second && first != known_question(2, "name", 0) &&
		  first != known_question(1, "names", 0) && first == known_question(1, "name", 0));
	cr_expect(!known_files__recall(sh, first, &answer));
	known_files__note(sh, first, &given);
	known_files__note(sh, second, &none);
	cr_expect(known_files__recall(sh, first, &answer) && answer.value == 0x1234 && answer.size == 5);
	cr_expect(known_files__recall(sh, second, &answer) && answer.err == -2);
	cr_expect(!known_files__recall(ls, first, &answer));
	for (uint64_t i = 0; i < 100; i++)
		known_files__note(ls, known_question(3, "", i), &given);
	cr_expect(known_files__recall(ls, known_question(3, "", 0), &answer));
}

/* One that has just been changed may be changed again without a sign of it. */
Test(known_files, fresh_file)
{
	struct known_answer given = {.value = 1}, answer;
	char path[] = "/tmp/test_known_files.XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_expect_eq(known_files__open(fd), 0);
	known_files__note(0, 1, &given);
	cr_expect(!known_files__recall(0, 1, &answer));
	close(fd);
	unlink(path);
}

Test(known_files, more_than_are_kept)
{
	uint64_t question = known_question(1, "", 0);
	struct known_answer given = {.value = 7}, answer;
	uint64_t first = number_of("/bin/sh"), last = 0;
	size_t count = 0;
	glob_t files;

	known_files__note(first, question, &given);
	cr_assert_eq(glob("/usr/bin/*", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct stat stat_of;

		if (stat(files.gl_pathv[i], &stat_of) || !S_ISREG(stat_of.st_mode))
			continue;
		last = number_of(files.gl_pathv[i]) ?: last;
		count++;
	}
	globfree(&files);
	if (count < 400)
		cr_skip_test("too few files in /usr/bin");
	cr_expect(!known_files__recall(first, question, &answer), "it is the oldest");
	known_files__note(last, question, &given);
	cr_expect(known_files__recall(last, question, &answer));
	first = number_of("/bin/sh");
	cr_expect(!known_files__recall(first, question, &answer), "it begins anew");
}
