/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns of file names.
 */
#include "out/name.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(const char *pattern, const char *want)
{
	const struct name_facts facts = {.pid = 4711, .time_s = 1700000000, .host = "a/b.example"};
	char *name = name__expand(pattern, &facts);

	cr_expect_str_eq(name, want);
	free(name);
}

Test(name, patterns)
{
	check("x.html", "x.html");
	check("", "");
	check("-", "-");
	check("/tmp/%p.html", "/tmp/4711.html");
	check("%h-%p-%t.pb.gz", "a_b.example-4711-20231114T221320Z.pb.gz");
	check("%p%p%%p", "47114711%p");
}

/* A % that means nothing is part of the name. */
Test(name, other_percents)
{
	check("100%.html", "100%.html");
	check("%", "%");
	check("%%", "%");
	check("%%%", "%%");
	check("50%x%", "50%x%");
}

Test(name, numbered)
{
	static const char *const names[][2] = {{"x.pbp", "x.0007.pbp"},
					       {"/a.b/x", "/a.b/x.0007"},
					       {"a.b/.x", "a.b/.x.0007"},
					       {"x.y.pbp", "x.y.0007.pbp"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *name = name__numbered(names[i][0], 7);

		cr_expect_str_eq(name, names[i][1]);
		free(name);
	}
}

/* Beyond those that are there, whatever else lies beside them. */
Test(name, first_free_number)
{
	static const char *const others[] = {"x.pbp",	   "x.12.pbp",	  "x.0099.pbpx", "x.0099.html",
					     "y.0099.pbp", "xx.0099.pbp", "x.a099.pbp",	 "x.0099.0099.pbp"};
	char folder[] = "/tmp/test_name-XXXXXX", path[64];

	cr_assert(mkdtemp(folder) && !chdir(folder));
	cr_expect_eq(name__first_free_number("x.pbp"), 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(close(creat(others[i], 0600)) == 0);
	cr_expect_eq(name__first_free_number("x.pbp"), 1);
	cr_assert(!close(creat("x.0003.pbp", 0600)) && !close(creat("x.12345.pbp", 0600)));
	snprintf(path, sizeof(path), "%s/x.pbp", folder);
	cr_expect_eq(name__first_free_number("x.pbp"), 12346);
	cr_expect_eq(name__first_free_number(path), 12346);
	cr_expect_eq(name__first_free_number("/nowhere/x.pbp"), 1);
	cr_expect(!system("rm -r \"$PWD\""));
}
