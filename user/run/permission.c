/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See permission.h. Capability numbers: include/uapi/linux/capability.h; older headers end before the last
 * three.
 */
#include "run/permission.h"

#include "base/util.h"
#include "os/proc.h"

#include <stdint.h>
#include <stdio.h>

#define CAP_NUMBER_SYS_PTRACE	      19
#define CAP_NUMBER_SYS_ADMIN	      21
#define CAP_NUMBER_PERFMON	      38
#define CAP_NUMBER_BPF		      39
#define CAP_NUMBER_CHECKPOINT_RESTORE 40

static const struct needed {
	enum permission_use use;
	int number;
	bool part_of_admin; /* split from CAP_SYS_ADMIN, which still stands for it */
	const char *name;
} NEEDED[] = {
	{PERMISSION_BPF, CAP_NUMBER_BPF, true, "CAP_BPF"},
	{PERMISSION_BPF, CAP_NUMBER_PERFMON, true, "CAP_PERFMON"},
	{PERMISSION_ALL, CAP_NUMBER_SYS_PTRACE, false, "CAP_SYS_PTRACE"},
	{PERMISSION_FILES, CAP_NUMBER_CHECKPOINT_RESTORE, true, "CAP_CHECKPOINT_RESTORE"},
};

static bool has(uint64_t capabilities, const struct needed *needed)
{
	if (needed->part_of_admin && capabilities >> CAP_NUMBER_SYS_ADMIN & 1)
		return true;
	return capabilities >> needed->number & 1;
}

static bool is_asked(const struct needed *needed, enum permission_use use)
{
	return needed->use == use || (use == PERMISSION_ALL && needed->use == PERMISSION_BPF);
}

const char *permission__missing(enum permission_use use)
{
	static char text[256];
	uint64_t capabilities = 0;
	bool in_user_ns = false;
	size_t len = 0;

	text[0] = '\0';
	if (proc__own_caps(&capabilities, &in_user_ns))
		return text;
	if (in_user_ns) {
		snprintf(text, sizeof(text),
			 "root of a user namespace has no CAP_BPF and CAP_PERFMON over the kernel; run it as "
			 "root outside");
		return text;
	}
	for (size_t i = 0; i < ARRAY_SIZE(NEEDED); i++)
		if (is_asked(&NEEDED[i], use) && !has(capabilities, &NEEDED[i]))
			len += snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "missing ",
					NEEDED[i].name);
	if (len)
		snprintf(text + len, sizeof(text) - len,
			 "; run it with sudo, or in a container with --cap-add=BPF,PERFMON,SYS_PTRACE");
	return text;
}
