/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See cgroup_walk.h. One directory is open at a time; whoever may make cgroups decides how many there are, so
 * that there is an end.
 */
#include "os/cgroup_walk.h"

#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIRS_MAX (1u << 18)

struct walk {
	VEC(char *) dirs; /* owned; those before `done` have been visited, and freed */
	size_t done;
	size_t unread;
};

static int add_below(struct walk *walk, const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	int err = 0;

	if (!stream) {
		walk->unread += errno != ENOENT && errno != ENODEV;
		return 0;
	}
	while (!err && (entry = readdir(stream))) {
		char *path;

		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (walk->dirs.len >= DIRS_MAX) {
			walk->unread++;
			continue;
		}
		if (asprintf(&path, "%s/%s", strcmp(dir, "/") ? dir : "", entry->d_name) < 0)
			err = -ENOMEM;
		else if ((err = vec__push(&walk->dirs, path)))
			free(path);
	}
	closedir(stream);
	return err;
}

int cgroup_walk(const char *dir, int (*visit)(void *context, const char *dir), void *context, size_t *unread)
{
	struct walk walk = {};
	char *first = strdup(dir);
	int err = first ? vec__push(&walk.dirs, first) : -ENOMEM;

	if (err)
		free(first);
	while (!err && walk.done < walk.dirs.len) {
		char *next = walk.dirs.items[walk.done++];

		err = visit(context, next) ?: add_below(&walk, next);
		free(next);
	}
	while (walk.done < walk.dirs.len)
		free(walk.dirs.items[walk.done++]);
	vec__free(&walk.dirs);
	if (unread)
		*unread += walk.unread;
	return err;
}
