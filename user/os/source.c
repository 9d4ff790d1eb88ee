/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * openat2 (Linux 5.6) confines a name to a folder. A file is opened as a mere place first (O_PATH), looked
 * at, and only then for reading.
 */
#include "os/source.h"

#include "base/util.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_BYTES_MAX (8u << 20)
#define ALL_BYTES_MAX  (64u << 20)
#define FILES_MAX      4096
#define LINE_BYTES_MAX 400

void sources__init(struct sources *sources, pid_t pid)
{
	*sources = (struct sources){.pid = pid, .root = -1, .cwd = -1};
}

void sources__free(struct sources *sources)
{
	for (size_t i = 0; i < sources->files.len; i++)
		free(sources->files.items[i].text);
	vec__free(&sources->files);
	hmap__free(&sources->index);
	if (sources->root >= 0)
		close(sources->root);
	if (sources->cwd >= 0)
		close(sources->cwd);
}

static int open_folder(const struct sources *sources, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", sources->pid, name);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The place that the name leads to; -1. */
static int find_place(struct sources *sources, const char *path)
{
	bool absolute = *path == '/';
	int *folder = absolute ? &sources->root : &sources->cwd;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS | (absolute ? RESOLVE_IN_ROOT : RESOLVE_BENEATH),
	};

	if (*folder < 0)
		*folder = open_folder(sources, absolute ? "root" : "cwd");
	return *folder < 0 ? -1 : (int)syscall(SYS_openat2, *folder, path, &how, sizeof(how));
}

/* May the user that the process runs as read it? */
static bool may_show(const struct sources *sources, const struct stat *file)
{
	uid_t uid;
	gid_t gid;

	if (proc__file_owner(sources->pid, &uid, &gid))
		return false;
	if (!uid || uid == file->st_uid)
		return true;
	return file->st_mode & (gid == file->st_gid ? S_IRGRP : S_IROTH);
}

/* For reading; -1. *size: its length. */
static int open_file(struct sources *sources, const char *path, size_t *size)
{
	int place = find_place(sources, path), fd = -1;
	char self[64];
	struct stat stat;

	if (place < 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	if (!fstat(place, &stat) && S_ISREG(stat.st_mode) && stat.st_size <= FILE_BYTES_MAX &&
	    may_show(sources, &stat)) {
		*size = stat.st_size;
		fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	close(place);
	return fd;
}

static void load(struct sources *sources, const char *path, struct source_file *file)
{
	size_t size = 0;
	ssize_t got = 1;
	int fd = open_file(sources, path, &size);

	if (fd < 0)
		return;
	if (size && size <= ALL_BYTES_MAX - sources->bytes)
		file->text = malloc(size);
	while (file->text && file->len < size && got > 0) {
		got = read(fd, file->text + file->len, size - file->len);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			file->len += got;
	}
	sources->bytes += file->text ? size : 0;
	close(fd);
}

static const struct source_file *find_file(struct sources *sources, uint64_t key, const char *path)
{
	const uint64_t *known = hmap__get(&sources->index, key);
	struct source_file file = {0};

	if (known)
		return &sources->files.items[*known];
	if (sources->files.len >= FILES_MAX)
		return NULL;
	/* "<string>", "<frozen importlib._bootstrap>" */
	if (*path && *path != '<')
		load(sources, path, &file);
	if (vec__push(&sources->files, file)) {
		free(file.text);
		return NULL;
	}
	hmap__set(&sources->index, key, sources->files.len - 1);
	return &sources->files.items[sources->files.len - 1];
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f' || c == '\r';
}

const char *sources__line(struct sources *sources, uint64_t key, const char *path, uint32_t line, size_t *len)
{
	const struct source_file *file = line ? find_file(sources, key, path) : NULL;
	const char *at = file ? file->text : NULL, *end = at ? at + file->len : NULL, *stop;

	for (; at && line > 1; line--) {
		at = memchr(at, '\n', end - at);
		at += !!at;
	}
	if (!at)
		return NULL;
	while (at < end && is_blank(*at))
		at++;
	stop = memchr(at, '\n', end - at) ?: end;
	stop = memchr(at, '\0', stop - at) ?: stop;
	while (stop > at && is_blank(stop[-1]))
		stop--;
	*len = min_u64(stop - at, LINE_BYTES_MAX);
	return *len ? at : NULL;
}
