/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See pidns.h. "NSpid:" in a status file has the numbers of a task from the namespace of that /proc on down
 * to the task's own (Documentation/filesystems/proc.rst).
 */
#include "os/pidns.h"

#include <dirent.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FIRST_PID_NS 0xeffffffc /* PROC_PID_INIT_INO (include/linux/proc_ns.h) */

/* First and last number of the NSpid line of a status file; their count. 0: there is no such line. */
static int read_nspid(const char *path, pid_t *outer, pid_t *inner)
{
	FILE *file = fopen(path, "re");
	char line[512];
	int count = 0;

	while (file && fgets(line, sizeof(line), file)) {
		char *at = line + 6;

		if (strncmp(line, "NSpid:", 6))
			continue;
		for (; *at && *at != '\n'; count++) {
			long id = strtol(at, &at, 10);

			if (!count)
				*outer = id;
			*inner = id;
			while (*at == '\t' || *at == ' ')
				at++;
		}
		break;
	}
	if (file)
		fclose(file);
	return count;
}

const char *pidns__proc_fault(void)
{
	pid_t outer = 0, inner = 0;
	struct statfs proc;
	char link[16];
	ssize_t len = readlink("/proc/self", link, sizeof(link) - 1);

	if (len > 0) {
		link[len] = '\0';
		if (atoi(link) == getpid() && read_nspid("/proc/self/status", &outer, &inner) <= 1)
			return NULL;
	} else if (statfs("/proc", &proc) || proc.f_type != PROC_SUPER_MAGIC) {
		return "/proc is not mounted here (mount -t proc proc /proc)";
	}
	return "the /proc here is that of another pid namespace than the one that this program runs in, so "
	       "that numbers of processes mean others there; mount the right one (mount -t proc proc "
	       "/proc, or unshare --mount-proc), or run it outside";
}

bool pidns__is_nested(void)
{
	struct stat own;

	return !stat("/proc/self/ns/pid", &own) && own.st_ino != FIRST_PID_NS;
}

bool pidns__is_other_for_children(void)
{
	struct stat own, theirs;

	return stat("/proc/self/ns/pid", &own) || stat("/proc/self/ns/pid_for_children", &theirs) ||
	       own.st_ino != theirs.st_ino;
}

pid_t pidns__inner_pid(pid_t pid)
{
	pid_t outer = 0, inner = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return read_nspid(path, &outer, &inner) > 1 ? inner : 0;
}

pid_t pidns__inner_tid(pid_t pid, pid_t tid)
{
	pid_t outer = 0, inner = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	return read_nspid(path, &outer, &inner) > 1 ? inner : 0;
}

size_t pidns__find_inner(pid_t inner, pid_t *out, size_t max)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	while (dir && count < max && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && pidns__inner_pid(pid) == inner)
			out[count++] = pid;
	}
	if (dir)
		closedir(dir);
	return count;
}

const char *pidns__text(char text[PIDNS_TEXT], pid_t outer, pid_t inner)
{
	if (inner)
		snprintf(text, PIDNS_TEXT, "%d [%d inside]", outer, inner);
	else
		snprintf(text, PIDNS_TEXT, "%d", outer);
	return text;
}
