/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes are wanted.
 */
#include "os/filter.h"

#include <criterion/criterion.h>
#include <string.h>

static struct filter filter;

static void stop(void)
{
	filter__free(&filter);
}

TestSuite(filter, .fini = stop);

static bool wants(void)
{
	return filter__wants(&filter, "gunicorn", "/usr/bin/python3 gunicorn app:main -w 4", 1000);
}

static bool wants_comm(const char *pattern)
{
	filter.comms.len = 0;
	cr_assert_eq(vec__push(&filter.comms, pattern), 0);
	cr_expect(filter__is_set(&filter));
	return wants();
}

static bool wants_without(const char *pattern)
{
	filter.excludes.len = 0;
	cr_assert_eq(vec__push(&filter.excludes, pattern), 0);
	cr_expect(filter__is_set(&filter));
	return wants();
}

Test(filter, threads)
{
	struct thread_filter threads = {0};

	cr_expect(!thread_filter__is_set(&threads) && thread_filter__wants(&threads, "a", 1, false));
	threads.main = true;
	cr_expect(thread_filter__is_set(&threads));
	cr_expect(thread_filter__wants(&threads, "a", 1, true) &&
		  !thread_filter__wants(&threads, "a", 2, false));
	cr_assert_eq(vec__push(&threads.names, "work*[12]"), 0);
	cr_assert_eq(vec__push(&threads.names, "77"), 0);
	cr_expect(thread_filter__wants(&threads, "worker-2", 5, false));
	cr_expect(!thread_filter__wants(&threads, "worker-3", 5, false));
	cr_expect(!thread_filter__wants(&threads, "a worker-2", 5, false), "the whole name");
	cr_expect(thread_filter__wants(&threads, "a", 77, false));
	cr_expect(!thread_filter__wants(&threads, "a", 777, false));
	cr_expect(thread_filter__wants(&threads, "77", 5, false), "a name like a number");
	cr_expect(thread_filter__wants(&threads, "a", 5, true), "any will do");
	threads.names.items[0] = "pool[1]";
	cr_expect(thread_filter__wants(&threads, "pool[1]", 5, false), "what looks like a pattern is a name, too");
	cr_expect(thread_filter__wants(&threads, "pool1", 5, false));
	threads.names.items[0] = "\\x1b[31m";
	cr_expect(thread_filter__wants(&threads, "\x1b[31m", 5, false), "as it is shown");
	threads.names.items[0] = "a\\x3bb\\x0a";
	cr_expect(thread_filter__wants(&threads, "a;b\n", 5, false), "... in collapsed stacks");
	threads.names.items[0] = "a\\b";
	cr_expect(thread_filter__wants(&threads, "a\\b", 5, false), "as it is");
	thread_filter__free(&threads);
}

Test(filter, nothing_asked)
{
	cr_expect(!filter__is_set(&filter));
	cr_expect(wants());
}

Test(filter, names)
{
	cr_expect(wants_comm("gunicorn"));
	cr_expect(wants_comm("g*n"));
	cr_expect(wants_comm("[fg]unicor?"));
	cr_expect(!wants_comm("guni"), "the whole name");
	cr_expect(!wants_comm("python*"));
}

Test(filter, excluded)
{
	cr_expect(!wants_without("app:main"), "a part of the command line");
	cr_expect(!wants_without("gunicorn*-w"));
	cr_expect(wants_without("celery"));
	cr_expect(wants_without("gunicorn celery"));
	cr_expect(wants_comm("gunicorn"));
	cr_expect(!wants_without("-w 4"), "both are asked");
}

Test(filter, users)
{
	cr_assert_eq(vec__push(&filter.users, (uid_t)0), 0);
	cr_expect(filter__is_set(&filter));
	cr_expect(!wants());
	cr_assert_eq(vec__push(&filter.users, (uid_t)1000), 0);
	cr_expect(wants());
}

/* Of several names one is enough, and of several exclusions, too. */
Test(filter, several)
{
	cr_expect(!wants_comm("celery"));
	cr_assert_eq(vec__push(&filter.comms, "gunicorn"), 0);
	cr_assert_eq(vec__push(&filter.comms, "uwsgi"), 0);
	cr_expect(wants(), "the second of three");
	cr_expect(!wants_without("-w"));
	cr_assert_eq(vec__push(&filter.excludes, "nothing like it"), 0);
	cr_expect(!wants(), "the first of two");
	cr_expect(wants_without("nothing like it"));
	cr_assert_eq(vec__push(&filter.excludes, "-w"), 0);
	cr_expect(!wants(), "the second of two");
}

Test(filter, a_long_pattern_is_taken_whole)
{
	char pattern[2000], text[2000];

	memset(pattern, 'a', sizeof(pattern));
	memcpy(text, pattern, sizeof(text));
	strcpy(pattern + 1000, "b");
	text[1500] = '\0';
	cr_assert_eq(vec__push(&filter.excludes, pattern), 0);
	cr_expect(filter__wants(&filter, "x", text, 0));
	strcpy(text + 1000, "bcd");
	cr_expect(!filter__wants(&filter, "x", text, 0));
}

Test(filter, a_backslash_at_the_end)
{
	cr_assert_eq(vec__push(&filter.excludes, "C:\\"), 0);
	cr_expect(!filter__wants(&filter, "x", "run C:\\temp", 0));
	cr_expect(filter__wants(&filter, "x", "run C:*", 0));
	filter.excludes.items[0] = "C:\\\\";
	cr_expect(!filter__wants(&filter, "x", "run C:\\temp", 0));
}
