/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings in several files: which are there at any time, and that those of others stay as they are.
 */
#include "made.h"
#include "out/record_output.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD 10000000ull

static char folder[] = "/tmp/test-record-output-XXXXXX";
static struct profile profile;
static struct record_output output;

static void begin(void)
{
	cr_assert(mkdtemp(folder) && !chdir(folder));
	cr_assert_eq(profile__init(&profile, 1000), 0);
	profile.period_ns = PERIOD;
	profile.start_ns = PERIOD;
	profile.start_realtime_ns = 1;
}

static void end(void)
{
	char command[64];

	record_output__close(&output);
	profile__free(&profile);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_expect(!chdir("/") && !system(command));
}

TestSuite(record_output, .init = begin, .fini = end);

static void start(uint32_t keep)
{
	const struct record_rotation rotation = {.ns = PERIOD, .keep = keep};
	struct recorder_config config = {.profile = &profile, .host = "here"};

	cr_assert_eq(record_output__open(&output, "x.pbp", &rotation), 0);
	cr_assert_eq(record_output__start(&output, &config), 0);
}

/* A file's worth: the next one begins. */
static void record_one(void)
{
	struct sink *sink = recorder__sink(output.recorder);
	struct sink_sample sample = {.time_ns = 2 * PERIOD + profile.duration_ns,
				     .node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("f", "a.py", 7, 1)),
				     .weight_ns = PERIOD};

	sink->take(sink, &sample);
	profile.duration_ns += PERIOD;
	sink->flush(sink);
	cr_assert_eq(recorder__error(output.recorder), 0);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the files that are there, but for temporary ones. */
static const char *there(void)
{
	static char text[512];
	char *names[16];
	size_t count = 0;
	struct dirent *entry;
	DIR *dir = opendir(".");

	cr_assert(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			names[count++] = strdup(entry->d_name);
	closedir(dir);
	qsort(names, count, sizeof(*names), compare_names);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		strcat(strcat(text, i ? " " : ""), names[i]);
		free(names[i]);
	}
	return text;
}

/* One goes only when the next one is there; a last one without samples is never made. */
Test(record_output, keeps_the_last)
{
	start(1);
	cr_expect_str_eq(there(), "");
	record_one();
	cr_expect_str_eq(there(), "x.0001.pbp");
	record_one();
	cr_expect_str_eq(there(), "x.0002.pbp");
	record_one();
	cr_expect_str_eq(there(), "x.0003.pbp");
	cr_assert_eq(record_output__end(&output), 0);
	cr_expect_str_eq(there(), "x.0003.pbp");
	cr_expect_str_eq(output.last, "x.0003.pbp");
	cr_expect(output.written.len == 3 && output.removed == 2);
}

Test(record_output, keeps_all)
{
	start(0);
	for (int i = 0; i < 3; i++)
		record_one();
	cr_assert_eq(record_output__end(&output), 0);
	cr_expect_str_eq(there(), "x.0001.pbp x.0002.pbp x.0003.pbp");
}

/* Made by somebody else while it is recorded: neither replaced nor removed, nor is a link followed. */
Test(record_output, files_of_others)
{
	start(1);
	record_one();
	cr_assert(!symlink("elsewhere", "x.0002.pbp") && !close(creat("x.0003.pbp", 0600)));
	record_one();
	cr_expect_str_eq(there(), "x.0002.pbp x.0003.pbp x.0004.pbp");
	record_one();
	cr_expect_str_eq(there(), "x.0002.pbp x.0003.pbp x.0005.pbp");
	cr_assert_eq(record_output__end(&output), 0);
	cr_expect_eq(access("elsewhere", F_OK), -1, "the link was followed");
	cr_expect_str_eq(output.last, "x.0005.pbp");
}
