/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See groups.h.
 */
#include "groups.h"

#include "os/cgroup.h"
#include "os/cgroup_walk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS_MAX 128
#define REMOVAL_S  10

static char *groups[GROUPS_MAX];
static size_t groups_count;

static const char *mount_of(bool unified)
{
	struct cgroup_mounts mounts;

	check(!cgroup_mounts__read(&mounts), "mounts cannot be read");
	for (size_t i = 0; i < mounts.items.len; i++)
		if (!*mounts.items.items[i].controllers == unified &&
		    !strcmp(mounts.items.items[i].root, "/"))
			return mounts.items.items[i].dir;
	cr_skip_test("SKIPPED: no cgroup hierarchy of version %d is mounted here", unified ? 2 : 1);
	return NULL;
}

const char *unified_mount(void)
{
	return mount_of(true);
}

const char *legacy_mount(void)
{
	return mount_of(false);
}

const char *make_group(const char *dir, const char *name)
{
	char own[64], *path;

	snprintf(own, sizeof(own), "pybpfprof-live-%d", getpid());
	check(groups_count < GROUPS_MAX, "too many cgroups");
	check(asprintf(&path, "%s/%s", dir, name ?: own) > 0, "out of memory");
	check(!mkdir(path, 0755), "cannot make %s: %s", path, strerror(errno));
	return groups[groups_count++] = path;
}

void enter_group(const char *group, pid_t pid)
{
	char path[CHILD_PATH];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	file = fopen(path, "we");
	check(file, "cannot open %s: %s", path, strerror(errno));
	fprintf(file, "%d", pid);
	check(!fclose(file), "cannot put %d into %s: %s", pid, group, strerror(errno));
}

static int end_all(void *context, const char *dir)
{
	char path[CHILD_PATH];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		if (pid > 0 && pid != getpid())
			kill(pid, SIGKILL);
	if (file)
		fclose(file);
	return 0;
}

struct paths {
	VEC(char *) items;
};

static int add_path(void *context, const char *dir)
{
	struct paths *paths = context;

	return vec__push(&paths->items, strdup(dir));
}

/* A process that has just ended may still be in one: again. */
void remove_group(const char *group)
{
	double end = seconds_now() + REMOVAL_S;

	do {
		struct paths paths = {};

		cgroup_walk(group, end_all, NULL, NULL);
		cgroup_walk(group, add_path, &paths, NULL);
		while (paths.items.len) {
			rmdir(paths.items.items[--paths.items.len]);
			free(paths.items.items[paths.items.len]);
		}
		vec__free(&paths.items);
		if (access(group, F_OK))
			return;
		pause_for(0.02);
	} while (seconds_now() < end);
	fprintf(stderr, "cannot remove %s: %s\n", group, strerror(errno));
}

void remove_groups(void)
{
	clean_up();
	while (groups_count)
		remove_group(groups[--groups_count]);
}
