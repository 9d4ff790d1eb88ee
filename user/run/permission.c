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
#include <string.h>
#include <sys/stat.h>

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
	static char text[320];
	struct proc_rights rights;
	size_t len = 0;

	text[0] = '\0';
	if (proc__own_rights(&rights))
		return text;
	if (rights.in_user_ns) {
		snprintf(text, sizeof(text),
			 "root of a user namespace has no CAP_BPF and CAP_PERFMON over the kernel; run it as "
			 "root outside");
		return text;
	}
	for (size_t i = 0; i < ARRAY_SIZE(NEEDED); i++)
		if (is_asked(&NEEDED[i], use) && !has(rights.capabilities, &NEEDED[i]))
			len += snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "missing ",
					NEEDED[i].name);
	if (len)
		snprintf(text + len, sizeof(text) - len,
			 "; run it with sudo, or in a container with --cap-add=BPF,PERFMON,SYS_PTRACE%s",
			 rights.no_new
				 ? " (from outside: no_new_privs is set here, so that sudo gives nothing)"
				 : "");
	return text;
}

static void append(char *text, size_t size, const char *more)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s", more);
}

bool permission__add_hint(char *text, size_t size)
{
	struct proc_rights rights;

	if (proc__own_rights(&rights) || !rights.is_filtered)
		return false;
	append(text, size,
	       "; a seccomp filter is set on this program, which may be what refuses it (a container's: "
	       "--security-opt seccomp=unconfined)");
	return true;
}

/* The kernel gives the files of a process that is not to be read by its own user to root. */
static bool is_protected(pid_t pid)
{
	struct stat file;
	char path[64];
	uid_t uid;
	gid_t gid;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return !proc__file_owner(pid, &uid, &gid) && !stat(path, &file) && file.st_uid != uid;
}

/* kernel.yama.ptrace_scope; 0 where there is no Yama, too. */
static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &scope) != 1)
		scope = 0;
	fclose(file);
	return scope;
}

void permission__add_target_hint(pid_t pid, char *text, size_t size)
{
	struct proc_rights rights;

	if (proc__own_rights(&rights))
		return;
	if (rights.in_user_ns)
		append(text, size,
		       "; this program is in a user namespace, whose root has no rights over processes "
		       "outside of it");
	if (is_protected(pid))
		append(text, size,
		       "; it is protected even from its own user (a set-user-id program or one that nobody "
		       "may read, or PR_SET_DUMPABLE)");
	if (yama_scope())
		append(text, size, "; kernel.yama.ptrace_scope is not 0 here");
	else if (!rights.in_user_ns && rights.capabilities >> CAP_NUMBER_SYS_PTRACE & 1)
		append(text, size,
		       "; CAP_SYS_PTRACE is there, so a security module (SELinux, AppArmor, Landlock) may be "
		       "what refuses it");
	permission__add_hint(text, size);
}
