/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See cgroup.h. Names may have anything in them but '/' and newlines, which the kernel refuses: mountinfo
 * escapes, /proc/PID/cgroup does not. Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cgroups.rst.
 */
#include "os/cgroup_parts.h"

#include "os/cgroup_walk.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- where they are mounted --- */

/* "\040" is a space; in place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		unsigned int code;

		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' && text[2] <= '7' &&
		    sscanf(text + 1, "%3o", &code) == 1 && text[3] >= '0' && text[3] <= '7') {
			*to++ = code;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* "ID PARENT DEVICE ROOT DIR OPTIONS [TAG...] - TYPE SOURCE OPTIONS" */
static int take_mount(struct cgroup_mounts *mounts, char *line)
{
	char *words[6] = {NULL}, *kind[3] = {NULL}, *word;
	struct cgroup_mount mount;
	size_t count = 0, behind = 0;
	bool tags = true;

	while ((word = strsep(&line, " "))) {
		if (count < 6)
			words[count++] = word;
		else if (tags)
			tags = strcmp(word, "-") != 0;
		else if (behind < 3)
			kind[behind++] = word;
	}
	if (behind < 3 || (strcmp(kind[0], "cgroup") && strcmp(kind[0], "cgroup2")))
		return 0;
	unescape(words[3]);
	unescape(words[4]);
	mount = (struct cgroup_mount){.dir = strdup(words[4]),
				      .root = strdup(words[3]),
				      .controllers = strdup(strcmp(kind[0], "cgroup2") ? kind[2] : "")};
	if (mount.dir && mount.root && mount.controllers && !vec__push(&mounts->items, mount))
		return 0;
	free(mount.dir);
	free(mount.root);
	free(mount.controllers);
	return -ENOMEM;
}

static bool has_item(const char *list, size_t len, const char *item, size_t item_len)
{
	for (const char *at = list, *end = list + len; at <= end;) {
		const char *comma = memchr(at, ',', end - at) ?: end;

		if ((size_t)(comma - at) == item_len && !memcmp(at, item, item_len))
			return true;
		at = comma + 1;
	}
	return false;
}

static int rank_of(const char *controllers, size_t len)
{
	return !len ? 0 : has_item(controllers, len, "perf_event", 10) ? 1 : 2;
}

bool cgroup_is_outside(const char *path, size_t len)
{
	return len >= 3 && !memcmp(path, "/..", 3) && (len == 3 || path[3] == '/');
}

static int compare_mounts(const struct cgroup_mount *a, const struct cgroup_mount *b)
{
	int outside = cgroup_is_outside(a->root, strlen(a->root)) - cgroup_is_outside(b->root, strlen(b->root));

	return outside ?: rank_of(a->controllers, strlen(a->controllers)) -
				  rank_of(b->controllers, strlen(b->controllers));
}

/* Those of our namespace first, by rank, else as they come. */
static void sort_mounts(struct cgroup_mounts *mounts)
{
	for (size_t i = 1; i < mounts->items.len; i++) {
		struct cgroup_mount mount = mounts->items.items[i];
		size_t at = i;

		for (; at && compare_mounts(&mount, &mounts->items.items[at - 1]) < 0; at--)
			mounts->items.items[at] = mounts->items.items[at - 1];
		mounts->items.items[at] = mount;
	}
}

int cgroup_mounts__parse(struct cgroup_mounts *mounts, const char *text)
{
	int err = 0;

	*mounts = (struct cgroup_mounts){};
	while (*text && !err) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		err = line ? take_mount(mounts, line) : -ENOMEM;
		free(line);
		text += len + (text[len] == '\n');
	}
	sort_mounts(mounts);
	if (err)
		cgroup_mounts__free(mounts);
	return err;
}

int cgroup_mounts__read(struct cgroup_mounts *mounts)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	size_t size = 0;
	char *text = NULL;
	int err;

	*mounts = (struct cgroup_mounts){};
	if (!file)
		return -errno;
	/* There is no NUL in it: it is read whole. */
	err = getdelim(&text, &size, '\0', file) < 0 ? (ferror(file) ? -EIO : 0)
						     : cgroup_mounts__parse(mounts, text);
	free(text);
	fclose(file);
	return err;
}

void cgroup_mounts__free(struct cgroup_mounts *mounts)
{
	for (size_t i = 0; i < mounts->items.len; i++) {
		free(mounts->items.items[i].dir);
		free(mounts->items.items[i].root);
		free(mounts->items.items[i].controllers);
	}
	vec__free(&mounts->items);
}

/* --- paths --- */

bool cgroup_is_below(const char *path, size_t len, const char *of)
{
	size_t of_len = strcmp(of, "/") ? strlen(of) : 0;

	if (!of_len && cgroup_is_outside(path, len))
		return false;
	return len >= of_len && !memcmp(path, of, of_len) && (len == of_len || path[of_len] == '/');
}

char *cgroup_join(const char *path, const char *below)
{
	char *joined;

	if (!strcmp(path, "/"))
		path = "";
	if (!strcmp(below, "/"))
		below = "";
	return asprintf(&joined, "%s%s", *path || *below ? path : "/", below) < 0 ? NULL : joined;
}

/* 0 or -errno, and then there is none open. */
static int open_dir(struct cgroup *cgroup)
{
	struct stat stat;

	cgroup->fd = open(cgroup->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->fd < 0 || fstat(cgroup->fd, &stat))
		return -errno;
	cgroup->inode = stat.st_ino;
	return 0;
}

int cgroup__open(struct cgroup *cgroup, const struct cgroup_mount *mount, const char *path)
{
	int err = -ENOMEM;

	*cgroup = (struct cgroup){.fd = -1, .path = strdup(path), .controllers = strdup(mount->controllers)};
	if (cgroup_is_below(path, strlen(path), mount->root))
		cgroup->dir = cgroup_join(mount->dir, path + (strcmp(mount->root, "/") ? strlen(mount->root) : 0));
	else
		err = -ENOENT;
	if (cgroup->dir && cgroup->path && cgroup->controllers)
		err = open_dir(cgroup);
	if (err)
		cgroup__close(cgroup);
	return err;
}

void cgroup__close(struct cgroup *cgroup)
{
	if (cgroup->fd >= 0)
		close(cgroup->fd);
	free(cgroup->dir);
	free(cgroup->path);
	free(cgroup->controllers);
	*cgroup = (struct cgroup){.fd = -1};
}

bool cgroup__refresh(struct cgroup *cgroup)
{
	struct cgroup before = *cgroup;
	struct stat stat_now;

	if (stat(cgroup->dir, &stat_now) || stat_now.st_ino == cgroup->inode)
		return false;
	if (open_dir(cgroup)) {
		*cgroup = before;
		return false;
	}
	close(before.fd);
	return true;
}

/* --- of a process --- */

int cgroup__read_process(pid_t pid, char *text, size_t size)
{
	char path[64];
	size_t len = 0;
	ssize_t got;
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((got = read(fd, text + len, size - 1 - len)) > 0)
		len += got;
	if (got < 0)
		err = -errno;
	else if (len == size - 1)
		err = -E2BIG;
	close(fd);
	text[len] = '\0';
	return err ?: len ? err : -ESRCH;
}

/* "ID:CONTROLLERS:PATH", and whatever else is there, which is no line. */
bool cgroup_line__next(const char **at, struct cgroup_line *line)
{
	while (**at) {
		const char *start = *at, *end = strchrnul(start, '\n');
		const char *colon = memchr(start, ':', end - start);
		const char *second = colon ? memchr(colon + 1, ':', end - colon - 1) : NULL;

		*at = *end ? end + 1 : end;
		if (!second || second[1] != '/')
			continue;
		*line = (struct cgroup_line){.controllers = colon + 1,
					     .controllers_len = second - colon - 1,
					     .path = second + 1,
					     .path_len = end - second - 1};
		return true;
	}
	return false;
}

bool cgroup_line__is_of(const struct cgroup_line *line, const char *controllers)
{
	const char *comma = memchr(line->controllers, ',', line->controllers_len);
	size_t first = comma ? (size_t)(comma - line->controllers) : line->controllers_len;

	if (!line->controllers_len || !*controllers)
		return !line->controllers_len && !*controllers;
	/* A controller is in one hierarchy only, so that the first tells. */
	return has_item(controllers, strlen(controllers), line->controllers, first);
}

bool cgroup_line__is_below(const struct cgroup_line *line, const char *path)
{
	return cgroup_is_below(line->path, line->path_len, path);
}

int cgroup_line__rank(const struct cgroup_line *line)
{
	return rank_of(line->controllers, line->controllers_len);
}

bool cgroup__has(const struct cgroup *cgroup, const char *text)
{
	struct cgroup_line line;

	while (cgroup_line__next(&text, &line))
		if (cgroup_line__is_of(&line, cgroup->controllers))
			return cgroup_line__is_below(&line, cgroup->path);
	return false;
}

/* --- members --- */

bool cgroup__is_threaded(int fd)
{
	char text[16] = "";
	int type = openat(fd, "cgroup.type", O_RDONLY | O_CLOEXEC);
	bool is = type >= 0 && read(type, text, sizeof(text) - 1) > 0 && !strcmp(text, "threaded\n");

	if (type >= 0)
		close(type);
	return is;
}

/* 0 is one that this pid namespace does not show. */
static int add_member(struct cgroup_members *members, pid_t pid)
{
	if (pid <= 0)
		return 0;
	if (members->is_threaded && proc__process_of(pid) != pid) {
		members->strays++;
		return 0;
	}
	return vec__push(&members->pids, pid);
}

static int add_members(void *context, const char *dir)
{
	struct cgroup_members *members = context;
	int err = 0, pid;
	char *path;
	FILE *file;

	members->cgroups++;
	if (asprintf(&path, "%s/cgroup.%s", dir, members->is_threaded ? "threads" : "procs") < 0)
		return -ENOMEM;
	file = fopen(path, "re");
	free(path);
	if (!file) {
		members->unread += errno != ENOENT && errno != ENODEV;
		return 0;
	}
	while (!err && fscanf(file, "%d", &pid) == 1)
		err = add_member(members, pid);
	/* A threaded one does not tell its processes (EOPNOTSUPP): one above it has. */
	if (!err && ferror(file))
		members->unread += errno != EOPNOTSUPP && errno != ENODEV;
	fclose(file);
	return err;
}

int cgroup__members(const struct cgroup *cgroup, struct cgroup_members *members)
{
	*members = (struct cgroup_members){.is_threaded = cgroup__is_threaded(cgroup->fd)};
	return cgroup_walk(cgroup->dir, add_members, members, &members->unread);
}
