/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns of file names.
 */
#include "out/name.h"

#include <criterion/criterion.h>
#include <stdlib.h>

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
