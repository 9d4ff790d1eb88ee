/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of CPUs as the kernel writes them, and what is none.
 */
#include "os/cpus.h"

#include <criterion/criterion.h>
#include <unistd.h>

#define COUNT 12

static void expect(const char *list, const char *want)
{
	bool online[COUNT];
	char got[COUNT + 1] = "";

	cpus__parse(list, online, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		got[i] = online[i] ? '1' : '0';
	cr_expect_str_eq(got, want, "%s: %s", list, got);
}

Test(cpus, lists)
{
	expect("0\n", "100000000000");
	expect("0-3\n", "111100000000");
	expect("0,2-3,11\n", "101100000001");
	expect("10-4000000000\n", "000000000011");
	expect("", "000000000000");
	expect("\n", "000000000000");
	expect("x", "000000000000");
	expect("1,", "010000000000");
	expect("3-1", "000000000000");
	expect("2;5", "001000000000");
}

/* Numbers that are possible may have gaps. */
Test(cpus, end)
{
	cr_expect_eq(cpus__end_of("0\n"), 1);
	cr_expect_eq(cpus__end_of("0-3\n"), 4);
	cr_expect_eq(cpus__end_of("0,8-11,4\n"), 12);
	cr_expect_eq(cpus__end_of("\n"), 0);
	cr_expect_geq(cpus__end(), (size_t)sysconf(_SC_NPROCESSORS_CONF));
}

Test(cpus, of_this_machine)
{
	bool online[4096];
	long count = 0;

	cr_assert_eq(cpus__online(online, 4096), 0);
	for (size_t i = 0; i < 4096; i++)
		count += online[i];
	cr_expect_eq(count, sysconf(_SC_NPROCESSORS_ONLN));
}

static void expect_tickless(const char *text, const char *want)
{
	char list[16];

	cpus__parse_tickless(text, list, sizeof(list));
	cr_expect_str_eq(list, want, "%s: %s", text, list);
}

/* What the kernel writes where there are none differs. */
Test(cpus, tickless)
{
	expect_tickless("1-3,7\n", "1-3,7");
	expect_tickless("\n", "");
	expect_tickless("", "");
	expect_tickless(" (null)\n", "");
	expect_tickless("(null)\n", "");
	expect_tickless("1,3,5,7,9,11,13,15,17,19\n", "1,3,5,7,9,11,13");
}

Test(cpus, tick)
{
	uint64_t ns = cpus__tick_ns();

	cr_expect(ns >= 900000 && ns <= 10000000, "%llu ns", (unsigned long long)ns);
}
