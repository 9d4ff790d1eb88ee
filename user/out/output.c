/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a profile goes. A regular file only ever changes by rename, so a reader sees the old profile or the
 * whole new one; the temporary file is made at open already, which is the honest test of whether the
 * directory can be written. fd is the temporary file, or the pipe or device itself, which stays open between
 * snapshots.
 */
#include "out/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS    40
#define TMP_ATTEMPTS 100
#define TMP_SUFFIX   ".pybpfprof-"
#define RANDOM_CHARS 6

/* Bytes of the directory part, slash included; 0 when there is none. */
static int directory_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash + 1 - path) : 0;
}

/* The folder that a file is in. */
static bool stat_folder(const char *path, struct stat *folder)
{
	char *name;
	bool is_there;

	if (asprintf(&name, "%.*s.", directory_len(path), path) < 0)
		return false;
	is_there = !stat(name, folder);
	free(name);
	return is_there;
}

/*
 * In a folder where all may put links, as /tmp, one of somebody else may be a trap. The kernel's
 * fs.protected_symlinks is not on everywhere, and does not hold for who reads links and follows them himself.
 */
static bool may_follow(const char *path, const struct stat *link)
{
	struct stat folder;

	if (!stat_folder(path, &folder))
		return false;
	return !(folder.st_mode & S_ISVTX) || !(folder.st_mode & S_IWOTH) || link->st_uid == geteuid() ||
	       link->st_uid == folder.st_uid;
}

/* What a link says: its length, or -errno: -EINVAL if it is none, -ENOENT. */
static ssize_t read_link(const char *path, char target[PATH_MAX])
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t len = fd < 0 ? -errno : -EINVAL;
	struct stat link;

	if (fd < 0)
		return len;
	if (!fstat(fd, &link) && S_ISLNK(link.st_mode)) {
		len = may_follow(path, &link) ? readlinkat(fd, "", target, PATH_MAX - 1) : -EACCES;
		len = len == -1 ? -errno : len;
	}
	close(fd);
	if (len >= 0)
		target[len] = '\0';
	return len;
}

/* The path with links of its last component followed, whether or not the file at the end exists. */
static int follow_links(const char *path, char **out)
{
	char target[PATH_MAX], *current = strdup(path);
	int err = -ELOOP;

	for (int i = 0; current && i < MAX_LINKS; i++) {
		char *next = NULL;
		ssize_t len = read_link(current, target);

		if (len < 0) {
			/* Not a link, or nothing there yet: this is the name to use. */
			err = len == -EINVAL || len == -ENOENT ? 0 : (int)len;
			break;
		}
		if (asprintf(&next, "%.*s%s", target[0] == '/' ? 0 : directory_len(current), current,
			     target) < 0)
			next = NULL;
		free(current);
		current = next;
	}
	if (!current)
		return -ENOMEM;
	if (err) {
		free(current);
		return err;
	}
	*out = current;
	return 0;
}

/* Replace the last RANDOM_CHARS of a name by random ones. */
static int randomize_end(char *name)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char random[RANDOM_CHARS];
	size_t len = strlen(name);

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < RANDOM_CHARS; i++)
		name[len - RANDOM_CHARS + i] = alphabet[random[i] % (sizeof(alphabet) - 1)];
	return 0;
}

/*
 * A file that is replaced keeps its owner and mode where we may set them, as if it were written in place.
 * Where we may not (only root gives files away), the new file is private or ours, which is no reason to lose
 * a profile.
 */
static void take_over(int fd, const struct stat *old)
{
	int ignored = fchown(fd, old->st_uid, old->st_gid);

	ignored |= fchmod(fd, old->st_mode & 0777);
	(void)ignored;
}

static void discard_temporary(struct output *out)
{
	if (out->fd >= 0)
		close(out->fd);
	if (out->tmp_path)
		unlink(out->tmp_path);
	free(out->tmp_path);
	out->tmp_path = NULL;
	out->fd = -1;
}

/* Make the temporary file beside the final one: ".NAME.pybpfprof-xxxxxx". */
static int create_temporary(struct output *out)
{
	/* A name of the greatest length is cut, so that its temporary one can exist, too. */
	const int name_max = NAME_MAX - 1 - (int)strlen(TMP_SUFFIX) - RANDOM_CHARS;
	int dir_len = directory_len(out->final_path), err;
	struct stat old;
	bool replaces = !out->is_new && !stat(out->final_path, &old);
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

	if (asprintf(&out->tmp_path, "%.*s.%.*s" TMP_SUFFIX "%*s", dir_len, out->final_path, name_max,
		     out->final_path + dir_len, RANDOM_CHARS, "") < 0) {
		out->tmp_path = NULL;
		return -ENOMEM;
	}
	err = -EEXIST;
	for (int i = 0; i < TMP_ATTEMPTS && err == -EEXIST; i++) {
		err = randomize_end(out->tmp_path);
		if (err)
			break;
		out->fd = open(out->tmp_path, flags, replaces ? 0600 : 0666);
		err = out->fd < 0 ? -errno : 0;
	}
	if (err) {
		/* Whatever has the name now is not ours to remove. */
		free(out->tmp_path);
		out->tmp_path = NULL;
		return err;
	}
	if (replaces)
		take_over(out->fd, &old);
	return 0;
}

/*
 * stdout or stderr if that is the same file, else -1. Opening /dev/stdout anew would start again at the
 * beginning of a redirected file, and replacing that file would part it from what else is printed.
 */
static int standard_fd(const struct stat *file)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat standard;

		if (!fstat(fd, &standard) && standard.st_dev == file->st_dev &&
		    standard.st_ino == file->st_ino)
			return fd;
	}
	return -1;
}

/* A file of ours, which is replaced, or else what is written to as it is, without a final path. */
static int open_existing(struct output *out, const struct stat *file)
{
	if (S_ISDIR(file->st_mode))
		return -EISDIR;
	out->fd = standard_fd(file);
	if (out->fd < 0 && S_ISREG(file->st_mode)) {
		if (faccessat(AT_FDCWD, out->path, W_OK, AT_EACCESS))
			return -errno;
		out->replaces = true;
		return create_temporary(out);
	}
	free(out->final_path);
	out->final_path = NULL;
	if (out->fd < 0)
		out->fd = open(out->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	return out->fd < 0 ? -errno : 0;
}

static int open_new(struct output *out)
{
	if (!out->final_path[0])
		return -ENOENT;
	/* "missing/" can only be meant as a directory. */
	if (!out->final_path[directory_len(out->final_path)])
		return -EISDIR;
	return create_temporary(out);
}

static int open_path(struct output *out)
{
	struct stat file;
	int err;

	if (!strcmp(out->path, "-")) {
		out->fd = STDOUT_FILENO;
		return fcntl(out->fd, F_GETFD) < 0 ? -errno : 0;
	}
	err = follow_links(out->path, &out->final_path);
	if (err)
		return err;
	if (!stat(out->path, &file))
		return open_existing(out, &file);
	return errno == ENOENT ? open_new(out) : -errno;
}

int output__open(struct output *out, const char *path, const struct writer *writer)
{
	int err;

	*out = (struct output){.path = path, .writer = writer, .fd = -1};
	err = open_path(out);
	if (!err && writer && writer->binary && isatty(out->fd))
		err = -ENOTSUP;
	if (err)
		output__close(out);
	return err;
}

bool output__is_same(const struct output *a, const struct output *b)
{
	struct stat of_a, of_b;

	return a->final_path && b->final_path &&
	       !strcmp(a->final_path + directory_len(a->final_path),
		       b->final_path + directory_len(b->final_path)) &&
	       stat_folder(a->final_path, &of_a) && stat_folder(b->final_path, &of_b) &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

int output__take_name(struct output *out, const char *path)
{
	char *name = strdup(path);

	if (!name)
		return -ENOMEM;
	free(out->final_path);
	out->final_path = name;
	out->path = path;
	return 0;
}

int output__open_new(struct output *out, const char *path, const struct writer *writer)
{
	int err;

	*out = (struct output){.path = path, .writer = writer, .fd = -1, .is_new = true};
	err = output__take_name(out, path) ?: create_temporary(out);
	if (err)
		output__close(out);
	return err;
}

/* Not every file system can do that in one step. */
static int rename_to_new(const char *from, const char *to)
{
	struct stat there;

	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!lstat(to, &there))
		return -EEXIST;
	return rename(from, to) ? -errno : 0;
}

static int give_name(struct output *out)
{
	int err;

	if (out->is_new)
		err = rename_to_new(out->tmp_path, out->final_path);
	else
		err = rename(out->tmp_path, out->final_path) ? -errno : 0;
	if (err)
		return err;
	free(out->tmp_path);
	out->tmp_path = NULL;
	return 0;
}

/*
 * Close the temporary file and give it its final name. Some file systems report a failed write at close only.
 */
static int publish(struct output *out)
{
	int err = close(out->fd) ? -errno : 0;

	out->fd = -1;
	return err ?: give_name(out);
}

int output__write_text(struct output *out, const struct buf *text)
{
	int err = text->err;

	if (!err && out->final_path && out->fd < 0)
		err = create_temporary(out);
	if (!err)
		err = buf__write_fd(text, out->fd);
	if (!err && out->final_path)
		err = publish(out);
	if (err && out->final_path)
		discard_temporary(out);
	out->written |= !err;
	return err;
}

int output__write(struct output *out, const struct profile *profile, enum group_by group)
{
	struct buf text = {0};
	int err;

	text.err = out->writer->write(profile, group, &text) ?: text.err;
	err = output__write_text(out, &text);
	buf__free(&text);
	return err;
}

int output__append(struct output *out, const void *bytes, size_t len)
{
	const struct buf part = {.data = (char *)bytes, .len = len};
	int err = buf__write_fd(&part, out->fd);

	if (!err && out->tmp_path)
		err = give_name(out);
	/* A part of a part is of no use to a reader. */
	if (err && out->final_path &&
	    (ftruncate(out->fd, (off_t)out->appended) || lseek(out->fd, (off_t)out->appended, SEEK_SET) < 0))
		return err;
	out->appended += err ? 0 : len;
	out->written |= !err;
	return err;
}

int output__finish(struct output *out)
{
	int err = 0;

	if (out->final_path && out->fd >= 0) {
		err = close(out->fd) ? -errno : 0;
		out->fd = -1;
	}
	return err;
}

void output__close(struct output *out)
{
	if (!out)
		return;
	/* The standard ones are not ours to close. */
	if (!out->final_path && (out->fd == STDOUT_FILENO || out->fd == STDERR_FILENO))
		out->fd = -1;
	discard_temporary(out);
	free(out->final_path);
	out->final_path = NULL;
}
