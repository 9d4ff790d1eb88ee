/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See cgroup_parts.h.
 */
#include "os/cgroup_parts.h"

#include "os/cgroup_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CANDIDATES_TOLD 5

static const struct cgroup_mount *mount_of(const struct cgroup_mounts *mounts, const char *dir)
{
	const struct cgroup_mount *best = NULL;

	for (size_t i = 0; i < mounts->items.len; i++) {
		const struct cgroup_mount *mount = &mounts->items.items[i];

		if (cgroup_is_below(dir, strlen(dir), mount->dir) &&
		    (!best || strlen(mount->dir) > strlen(best->dir)))
			best = mount;
	}
	return best;
}

static void explain(struct buf *reason, const char *name, const char *why)
{
	buf__adds(reason, "cgroup ");
	buf__add_escaped(reason, name, NULL);
	buf__addf(reason, ": %s", why);
}

/* Its directory is known. */
static int take_dir(struct cgroup *cgroup, const struct cgroup_mounts *mounts, const char *name,
		    const char *given, struct buf *reason)
{
	char *dir = realpath(given, NULL), *path;
	const struct cgroup_mount *mount;
	struct stat stat_now;
	int err = dir && stat(dir, &stat_now) ? -errno : dir ? 0 : -errno;

	mount = dir ? mount_of(mounts, dir) : NULL;
	if (err) {
		explain(reason, name, err == -ENOENT ? "there is no such directory" : strerror(-err));
	} else if (!mount || !S_ISDIR(stat_now.st_mode)) {
		explain(reason, name, "it is no directory of a cgroup file system");
		err = -EINVAL;
	} else if (cgroup_is_outside(mount->root, strlen(mount->root))) {
		explain(reason, name,
			"it is mounted from outside of this cgroup namespace, where its processes cannot be "
			"told from others: run the profiler in that namespace (nsenter --cgroup)");
		err = -EINVAL;
	} else {
		path = cgroup_join(mount->root, strcmp(dir, mount->dir) ? dir + strlen(mount->dir) : "/");
		err = path ? cgroup__open(cgroup, mount, path) : -ENOMEM;
		free(path);
		if (err)
			explain(reason, name, strerror(-err));
	}
	free(dir);
	return err;
}

/* By its path from "/" or from here. */
static bool is_dir_of(const struct cgroup_mounts *mounts, const char *name)
{
	char *dir = realpath(name, NULL);
	bool is = dir && mount_of(mounts, dir);

	free(dir);
	return is;
}

/*
 * A directory of the first hierarchy that has one there; NULL. With a slash before: as the kernel tells it.
 */
static char *dir_by_path(const struct cgroup_mounts *mounts, const char *name)
{
	for (size_t i = 0; i < mounts->items.len && *name != '.'; i++) {
		const struct cgroup_mount *mount = &mounts->items.items[i];
		const char *below = name;
		struct stat stat_now;
		char *dir;

		if (strcmp(mount->root, "/") && cgroup_is_below(name, strlen(name), mount->root))
			below += strlen(mount->root);
		if (asprintf(&dir, "%s/%s", mount->dir, below) < 0)
			return NULL;
		if (!stat(dir, &stat_now) && S_ISDIR(stat_now.st_mode))
			return dir;
		free(dir);
	}
	return NULL;
}

struct search {
	const char *name;
	VEC(char *) found;
};

static int compare_end(void *context, const char *dir)
{
	struct search *search = context;
	size_t len = strlen(dir), end = strlen(search->name);
	char *copy;

	if (len <= end || dir[len - end - 1] != '/' || strcmp(dir + len - end, search->name))
		return 0;
	copy = strdup(dir);
	return copy ? vec__push(&search->found, copy) : -ENOMEM;
}

static void explain_many(const struct search *search, struct buf *reason)
{
	explain(reason, search->name, "several have that name, give more of the path: ");
	for (size_t i = 0; i < search->found.len && i < CANDIDATES_TOLD; i++) {
		buf__adds(reason, i ? ", " : "");
		buf__add_escaped(reason, search->found.items[i], ",");
	}
	if (search->found.len > CANDIDATES_TOLD)
		buf__addf(reason, " and %zu more", search->found.len - CANDIDATES_TOLD);
}

/* The only one with that end of a path in the first hierarchy that has any. */
static int find_by_end(struct cgroup *cgroup, const struct cgroup_mounts *mounts, const char *name,
		       struct buf *reason)
{
	struct search search = {.name = name};
	int err = 0;

	for (size_t i = 0; i < mounts->items.len && !search.found.len && !err; i++)
		err = cgroup_walk(mounts->items.items[i].dir, compare_end, &search, NULL);
	if (err)
		explain(reason, name, strerror(-err));
	else if (!search.found.len)
		explain(reason, name,
			mounts->items.len ? "there is none of that name"
					  : "no cgroup file system is mounted");
	else if (search.found.len > 1)
		explain_many(&search, reason);
	else
		err = take_dir(cgroup, mounts, name, search.found.items[0], reason);
	err = err ?: search.found.len == 1 ? err : -ENOENT;
	for (size_t i = 0; i < search.found.len; i++)
		free(search.found.items[i]);
	vec__free(&search.found);
	return err;
}

/* `name`: without slashes at its end. */
static int find(struct cgroup *cgroup, const struct cgroup_mounts *mounts, const char *name,
		struct buf *reason)
{
	bool is_dir = is_dir_of(mounts, name);
	char *dir = is_dir ? NULL : dir_by_path(mounts, name);
	int err = dir			   ? take_dir(cgroup, mounts, name, dir, reason)
		  : is_dir || *name == '/' ? take_dir(cgroup, mounts, name, name, reason)
					   : find_by_end(cgroup, mounts, name, reason);

	free(dir);
	return err;
}

int cgroup__find(struct cgroup *cgroup, const struct cgroup_mounts *mounts, const char *name,
		 struct buf *reason)
{
	size_t len = strlen(name);
	char *copy;
	int err;

	*cgroup = (struct cgroup){.fd = -1};
	while (len > 1 && name[len - 1] == '/')
		len--;
	copy = strndup(name, len);
	err = copy ? find(cgroup, mounts, copy, reason) : -ENOMEM;
	free(copy);
	return err;
}
