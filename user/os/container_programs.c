/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See container_parts.h. Runtimes that keep their files elsewhere than usual have been told so, and so have
 * the monitors that stay with each container. Who may call a program as one likes may also name what is not
 * there: of files only root's programs are believed, and those outside of containers.
 */
#include "os/container_parts.h"

#include "base/util.h"
#include "os/proc.h"
#include "os/tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS_MAX 16384

/* `option`: of the directory where they are. */
static const struct program {
	const char *comm, *option;
	enum container_file kind;
	const char *pattern;
} PROGRAMS[] = {
	{"dockerd", "--data-root", CONTAINER_FILE_DOCKER, CONTAINER_DOCKER_PATTERN},
	{"dockerd", "-g", CONTAINER_FILE_DOCKER, CONTAINER_DOCKER_PATTERN},
	{"containerd", "--state", CONTAINER_FILE_CONTAINERD, CONTAINER_TASKS "/" CONTAINER_TASKS_PATTERN},
	{"runc", "--root", CONTAINER_FILE_RUNC, CONTAINER_RUNC_PATTERN},
	{"crun", "--root", CONTAINER_FILE_CRUN, CONTAINER_CRUN_PATTERN},
	/* containerd's monitor: its working directory is a container's */
	{"containerd-shim", NULL, CONTAINER_FILE_CONTAINERD, CONTAINER_TASKS_PATTERN},
	{"conmon", NULL, CONTAINER_FILE_CONMON, NULL},
};

/* -1: it cannot be opened. */
static int open_of(pid_t pid, const char *what, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return open(path, flags | O_CLOEXEC);
}

/* Not in another pid namespace, as containers have them. */
static bool is_outside(pid_t pid)
{
	struct stat own, other;
	int fd = open_of(pid, "ns/pid", O_RDONLY);
	bool is = fd >= 0 && !fstat(fd, &other) && !stat("/proc/self/ns/pid", &own) &&
		  own.st_ino == other.st_ino;

	if (fd >= 0)
		close(fd);
	return is;
}

/* As the program sees it. */
static int open_dir(pid_t pid, const char *dir)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int root = dir[0] == '/' ? open_of(pid, "root", O_PATH) : -1;
	int fd = root >= 0 ? syscall(SYS_openat2, root, dir, &how, sizeof(how)) : -1;

	if (root >= 0)
		close(root);
	return fd;
}

/* The one of all containers: .../TASKS/NAMESPACE/ID is that of one. */
static int open_tasks(pid_t pid)
{
	char path[64], dir[4096];
	ssize_t len;
	int cwd, fd;

	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	len = readlink(path, dir, sizeof(dir) - 1);
	if (len < 0)
		return -1;
	dir[len] = '\0';
	if (!strstr(dir, "/" CONTAINER_TASKS "/"))
		return -1;
	cwd = open_of(pid, "cwd", O_PATH);
	fd = cwd >= 0 ? openat(cwd, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (cwd >= 0)
		close(cwd);
	return fd;
}

static void look_at(struct container_look *look, const struct program *program, pid_t pid, const char *words,
		    size_t len)
{
	const char *dir = program->option ? container_names__option(words, len, program->option) : NULL;
	uid_t owner;
	gid_t group;

	if (proc__file_owner(pid, &owner, &group) || (!owner && !is_outside(pid)))
		return;
	look->names->owner = owner;
	if (program->kind == CONTAINER_FILE_CONMON)
		look->err = container_names__parse(look->names, program->kind, words, len, "");
	else if (!owner && dir)
		container_look__read(look, program->kind, open_dir(pid, dir), program->pattern);
	else if (!owner && !program->option)
		container_look__read(look, program->kind, open_tasks(pid), program->pattern);
}

static void look_at_process(struct container_look *look, pid_t pid, char words[WORDS_MAX])
{
	char comm[32];
	ssize_t len = -1;

	if (proc__task_comm(pid, pid, comm, sizeof(comm)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(PROGRAMS) && !look->err; i++) {
		int fd;

		if (strcmp(comm, PROGRAMS[i].comm))
			continue;
		fd = len < 0 ? open_of(pid, "cmdline", O_RDONLY) : -1;
		if (fd >= 0) {
			len = read(fd, words, WORDS_MAX);
			look->files++;
			close(fd);
		}
		if (len > 0)
			look_at(look, &PROGRAMS[i], pid, words, len);
	}
}

void container_programs__read(struct container_look *look)
{
	char words[WORDS_MAX];
	struct tree tree = {};

	look->err = look->err ?: tree__read(&tree);
	for (size_t i = 0; i < tree.edges.len && !container_look__is_over(look); i++)
		look_at_process(look, tree.edges.items[i].pid, words);
	tree__free(&tree);
}
