/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See container_names.h. Here: where the files are. Below a user's own directories anything may be planted:
 * links are not followed there, only plain files are read, none that is large, and not for long.
 */
#include "os/container_parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "os/cgroup.h"
#include "os/container.h"
#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_BYTES_MAX	    (16u << 20)
#define USER_FILE_BYTES_MAX (256u << 10)
#define ENTRIES_MAX	    16384 /* of a directory */
#define PARTS_MAX	    8
/* Of all together; root's files come first. */
#define BYTES_MAX (64u << 20)
#define FILES_MAX 4096
#define TIME_MAX  500000000ull

struct place {
	enum container_file kind;
	const char *base, *pattern;
};

static const struct place OF_ROOT[] = {
	{CONTAINER_FILE_DOCKER, "/var/lib/docker", CONTAINER_DOCKER_PATTERN},
	{CONTAINER_FILE_STORAGE, "/var/lib/containers/storage", "*-containers/containers.json"},
	{CONTAINER_FILE_STORAGE, "/var/lib/containers/storage", "*-containers/volatile-containers.json"},
	{CONTAINER_FILE_CONTAINERD, "/run/containerd/" CONTAINER_TASKS, CONTAINER_TASKS_PATTERN},
	{CONTAINER_FILE_NERDCTL, "/var/lib/nerdctl", "*/names/*/*"},
	{CONTAINER_FILE_RUNC, "/run/runc", CONTAINER_RUNC_PATTERN},
	{CONTAINER_FILE_CRUN, "/run/crun", CONTAINER_CRUN_PATTERN},
};

static const struct place OF_USERS[] = {
	{CONTAINER_FILE_DOCKER, "/home", "*/.local/share/docker/containers/*/config.v2.json"},
	{CONTAINER_FILE_STORAGE, "/home", "*/.local/share/containers/storage/*-containers/containers.json"},
	{CONTAINER_FILE_NERDCTL, "/home", "*/.local/share/nerdctl/*/names/*/*"},
	{CONTAINER_FILE_CONTAINERD, "/run/user", "*/containerd/*runtime.v2.task/*/*/config.json"},
	{CONTAINER_FILE_RUNC, "/run/user", "*/runc/*/state.json"},
	{CONTAINER_FILE_CRUN, "/run/user", "*/crun/*/status"},
};

bool container_look__is_over(struct container_look *look)
{
	look->over |= look->files >= FILES_MAX || look->bytes >= BYTES_MAX || now_ns() >= look->end_ns;
	return look->over || look->err;
}

static int open_below(int dir, const char *name, int flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH};

	return syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

/* The whole of a plain file, with a NUL behind; NULL. The caller frees. */
static char *read_whole(int fd, size_t *len, uid_t *owner)
{
	struct stat stat;
	char *text = NULL;
	ssize_t got;

	*len = 0;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode)) {
		*owner = *owner ?: stat.st_uid;
		if (stat.st_size <= (*owner ? USER_FILE_BYTES_MAX : FILE_BYTES_MAX))
			text = malloc(stat.st_size + 1);
	}
	while (text && (got = read(fd, text + *len, stat.st_size - *len)) > 0)
		*len += got;
	if (text)
		text[*len] = '\0';
	return text;
}

static void read_file(struct container_look *look, int dir, const char *name, const char *called)
{
	int fd = open_below(dir, name, O_RDONLY | O_NONBLOCK);
	size_t len = 0;
	char *text;

	look->names->owner = look->owner;
	text = fd >= 0 ? read_whole(fd, &len, &look->names->owner) : NULL;
	look->files++;
	look->bytes += len;
	if (text)
		look->err = container_names__parse(look->names, look->kind, text, len, called);
	free(text);
	if (fd >= 0)
		close(fd);
}

static void look_at(struct container_look *look, int dir, const char *const *parts, const char *called);

/* Takes the descriptor over. */
static void look_below(struct container_look *look, int fd, const char *const *parts, const char *called)
{
	uid_t before = look->owner;
	struct stat stat;

	if (fd < 0)
		return;
	if (!look->owner && !fstat(fd, &stat))
		look->owner = stat.st_uid;
	look_at(look, fd, parts, called);
	look->owner = before;
	close(fd);
}

/* A container may be called ".web"; a file that is called so is one that is being written. */
static bool is_left_out(const char *name, const char *below)
{
	return name[0] == '.' && (!below || !name[strspn(name, ".")]);
}

/* Every entry that matches the first of the parts. */
static void look_at_each(struct container_look *look, int dir, const char *const *parts)
{
	int fd = open_below(dir, ".", O_RDONLY | O_DIRECTORY);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!stream && fd >= 0)
		close(fd);
	for (int i = 0; stream && i < ENTRIES_MAX && !container_look__is_over(look); i++) {
		entry = readdir(stream);
		if (!entry)
			break;
		if (is_left_out(entry->d_name, parts[1]) || fnmatch(parts[0], entry->d_name, 0))
			continue;
		if (parts[1])
			look_below(look, open_below(dir, entry->d_name, O_PATH | O_DIRECTORY), parts + 1,
				   entry->d_name);
		else
			read_file(look, dir, entry->d_name, entry->d_name);
	}
	if (stream)
		closedir(stream);
}

static void look_at(struct container_look *look, int dir, const char *const *parts, const char *called)
{
	if (strchr(parts[0], '*'))
		look_at_each(look, dir, parts);
	else if (parts[1])
		look_below(look, open_below(dir, parts[0], O_PATH | O_DIRECTORY), parts + 1, called);
	else
		read_file(look, dir, parts[0], called);
}

static bool was_read(struct container_look *look, int fd, const char *pattern)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return true;
	for (size_t i = 0; i < look->bases.len; i++) {
		const struct container_base *base = &look->bases.items[i];

		if (base->device == stat.st_dev && base->inode == stat.st_ino &&
		    !strcmp(base->pattern, pattern))
			return true;
	}
	look->err = vec__push(&look->bases, ((struct container_base){stat.st_dev, stat.st_ino, pattern}));
	return false;
}

void container_look__read(struct container_look *look, enum container_file kind, int base,
			  const char *pattern)
{
	char text[128], *rest = text, *parts[PARTS_MAX + 1] = {NULL};

	if (base < 0)
		return;
	snprintf(text, sizeof(text), "%s", pattern);
	for (size_t i = 0; i < PARTS_MAX && rest; i++)
		parts[i] = strsep(&rest, "/");
	look->kind = kind;
	if (!was_read(look, base, pattern))
		look_at(look, base, (const char *const *)parts, "");
	close(base);
}

/* The base is the administrator's, and may be a link. */
static void read_place(struct container_look *look, struct place place)
{
	int base = open(place.base, O_PATH | O_DIRECTORY | O_CLOEXEC);

	container_look__read(look, place.kind, base, place.pattern);
}

/* --- cgroups --- */

/* Up to the part that is the id, or the whole. */
static char *path_with_id(const struct cgroup_line *line, const char *id)
{
	size_t end = line->path_len, id_len = strlen(id);

	for (size_t at = 0; at + 1 + id_len <= line->path_len; at++)
		if (line->path[at] == '/' && !memcmp(line->path + at + 1, id, id_len) &&
		    (at + 1 + id_len == line->path_len || line->path[at + 1 + id_len] == '/'))
			end = at + 1 + id_len;
	return strndup(line->path, end);
}

static bool belongs_to(const struct cgroup_line *line, const char *path, uid_t owner,
		       const struct cgroup_mounts *mounts)
{
	struct cgroup cgroup;
	struct stat stat;
	bool is_owner = false;

	for (size_t i = 0; i < mounts->items.len && !is_owner; i++) {
		if (!cgroup_line__is_of(line, mounts->items.items[i].controllers) ||
		    cgroup__open(&cgroup, &mounts->items.items[i], path))
			continue;
		is_owner = !fstat(cgroup.fd, &stat) && stat.st_uid == owner;
		cgroup__close(&cgroup);
	}
	return is_owner;
}

/* A user may speak of cgroups of his own only: one that his process is in. */
static bool may_claim(const struct container_name *name, const char *text, const struct cgroup_mounts *mounts)
{
	struct cgroup_line line;

	while (name->owner && cgroup_line__next(&text, &line))
		if (cgroup_line__is_below(&line, name->cgroup) &&
		    belongs_to(&line, name->cgroup, name->owner, mounts))
			return true;
	return !name->owner;
}

static void drop_cgroup(struct container_name *name)
{
	free(name->cgroup);
	name->cgroup = NULL;
}

/* That of its first process, in the best hierarchy where it is not the root. */
static void find_cgroup(struct container_name *name, char *text, const struct cgroup_mounts *mounts)
{
	struct cgroup_line line, best = {};
	struct proc_stat stat;
	const char *at = text;

	if (cgroup__read_process(name->init, text, CGROUP_TEXT_BYTES) || proc__stat(name->init, &stat) ||
	    stat.start_ticks != name->start_ticks) {
		drop_cgroup(name); /* it has ended */
		return;
	}
	while (!name->cgroup && cgroup_line__next(&at, &line))
		if (line.path_len > 1 && (!best.path || cgroup_line__rank(&line) < cgroup_line__rank(&best)))
			best = line;
	if (best.path)
		name->cgroup = path_with_id(&best, name->id);
	if (name->cgroup && !may_claim(name, text, mounts))
		drop_cgroup(name);
}

static int find_cgroups(struct container_names *names)
{
	char *text = malloc(CGROUP_TEXT_BYTES);
	struct cgroup_mounts mounts;

	cgroup_mounts__read(&mounts); /* without them nobody's cgroup is told */
	for (size_t i = 0; text && i < names->items.len; i++) {
		struct container_name *name = &names->items.items[i];

		if (name->init && !container__is_id(name->id, strlen(name->id)))
			find_cgroup(name, text, &mounts);
		else if (name->owner)
			drop_cgroup(name);
	}
	cgroup_mounts__free(&mounts);
	free(text);
	return text ? 0 : -ENOMEM;
}

/* Where the administrator has put them. */
static void read_docker_elsewhere(struct container_look *look)
{
	int fd = open("/etc/docker/daemon.json", O_RDONLY | O_CLOEXEC);
	uid_t owner = 0;
	size_t len = 0;
	char *text = fd >= 0 ? read_whole(fd, &len, &owner) : NULL;
	char *base = text ? container_names__docker_root(text, len) : NULL;

	if (base)
		read_place(look, (struct place){CONTAINER_FILE_DOCKER, base, CONTAINER_DOCKER_PATTERN});
	free(base);
	free(text);
	if (fd >= 0)
		close(fd);
}

static void tell_over(const struct container_look *look)
{
	static bool told;

	if (look->over && !told)
		log_warn("the container runtimes have too many files to read them all: some containers may "
			 "have "
			 "no name");
	told |= look->over;
}

int container_names__read(struct container_names *names)
{
	struct container_look look = {.names = names, .end_ns = now_ns() + TIME_MAX};

	*names = (struct container_names){};
	read_docker_elsewhere(&look);
	for (size_t i = 0; i < ARRAY_SIZE(OF_ROOT) && !container_look__is_over(&look); i++)
		read_place(&look, OF_ROOT[i]);
	container_programs__read(&look);
	for (size_t i = 0; i < ARRAY_SIZE(OF_USERS) && !container_look__is_over(&look); i++)
		read_place(&look, OF_USERS[i]);
	tell_over(&look);
	vec__free(&look.bases);
	container_names__settle(names);
	look.err = look.err ?: find_cgroups(names);
	if (look.err)
		container_names__free(names);
	return look.err;
}
