/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of formats: what finds which, and that the table itself is in order.
 */
#include "out/writer.h"

#include <criterion/criterion.h>
#include <string.h>

static void check_path(const char *path, const char *want)
{
	const struct writer *writer = writer__by_path(path);

	cr_assert_str_eq(writer ? writer->name : "none", want, "%s gives %s", path,
			 writer ? writer->name : "none");
}

Test(writer, by_name)
{
	cr_assert_eq(writer__by_name("collapsed"), &collapsed_writer);
	cr_assert_eq(writer__by_name("html"), &flamegraph_writer);
	cr_assert_eq(writer__by_name("pb.gz"), &pprof_writer);
	cr_assert_null(writer__by_name(".html"));
	cr_assert_null(writer__by_name("collapse"));
	cr_assert_null(writer__by_name("collapsedx"));
	cr_assert_null(writer__by_name(""));
}

Test(writer, by_path)
{
	check_path("out.txt", "collapsed");
	check_path("out.folded", "collapsed");
	check_path("/some/where/out.collapsed", "collapsed");
	check_path("my.profile.txt", "collapsed");
	check_path("out.txt.bak", "none");
	check_path("txt", "none");
	check_path("out.xtxt", "none");
	check_path("dir.txt/out", "none");
	check_path("-", "none");
	check_path("", "none");
}

/* Every format can be asked for, by its name and by each of its suffixes, and no two share one. */
Test(writer, table_is_consistent)
{
	size_t count = 0;

	for (const struct writer *const *writer = writer__all(); *writer; writer++, count++) {
		cr_assert_not_null((*writer)->write);
		cr_assert_not_null((*writer)->help);
		cr_assert_eq(writer__by_name((*writer)->name), *writer);
		for (const char *const *suffix = (*writer)->suffixes; *suffix; suffix++) {
			char path[64] = "profile";

			cr_assert_eq((*suffix)[0], '.');
			strcat(path, *suffix);
			check_path(path, (*writer)->name);
		}
	}
	cr_assert_gt(count, 0);
}
