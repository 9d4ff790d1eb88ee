/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is said of a process that may not be read, by what this one may do.
 */
#include "os/proc.h"
#include "run/permission.h"

#include <criterion/criterion.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char text[1024];

static bool has_ptrace(void)
{
	struct proc_rights rights;

	cr_assert_eq(proc__own_rights(&rights), 0);
	return !rights.in_user_ns && rights.capabilities >> CAP_SYS_PTRACE & 1;
}

static void drop_ptrace(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	cr_assert(!syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	cr_assert(!syscall(SYS_capset, &header, data));
}

static const char *hint(void)
{
	snprintf(text, sizeof(text), "denied");
	permission__add_target_hint(getpid(), text, sizeof(text));
	cr_assert(!strncmp(text, "denied", 6));
	return text;
}

/* Who has the right that is asked for is not told to get it, and nothing more. */
Test(permission, refused_with_the_right)
{
	bool yama = !!strstr(hint(), "ptrace_scope");

	cr_expect_eq(!!strstr(text, "a security module"), has_ptrace() && !yama, "%s", text);
	drop_ptrace();
	cr_expect_null(strstr(hint(), "a security module"), "%s", text);
}
