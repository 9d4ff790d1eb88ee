/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parser of /proc/PID/maps and opener of mapped files. A path printed in maps is only a hint: it is relative
 * to a root that may not be ours, the file may be gone or replaced, and its owner may have put a FIFO or a
 * device there. So a file is first opened with O_PATH, which has no side effects, then checked, and only then
 * opened for reading.
 */
#include "os/maps.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Shared by all entries without a path, which may be most of them. */
static char no_path[1];

/* ---- parsing ---- */

/* A cursor over one line. */
struct scanner {
	const char *at, *end;
	bool failed;
};

/* One number in base 10 or 16 that fits 64 bits, then the byte `stop`. */
static uint64_t scan_number(struct scanner *scanner, unsigned int base, char stop)
{
	const char *start = scanner->at;
	uint64_t value = 0;

	for (; scanner->at < scanner->end; scanner->at++) {
		char c = *scanner->at;
		unsigned int digit = c >= '0' && c <= '9'   ? c - '0'
				     : c >= 'a' && c <= 'f' ? c - 'a' + 10
							    : 16;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			scanner->failed = true;
	}
	if (scanner->at == start || (scanner->at < scanner->end && *scanner->at != stop))
		scanner->failed = true;
	if (scanner->at < scanner->end)
		scanner->at++;
	else if (stop != ' ')
		scanner->failed = true;
	return value;
}

/* "rwxp " */
static void scan_permissions(struct scanner *scanner, struct map_entry *entry)
{
	const char *at = scanner->at;

	if (scanner->end - at < 5 || at[4] != ' ') {
		scanner->failed = true;
		return;
	}
	entry->read = at[0] == 'r';
	entry->write = at[1] == 'w';
	entry->exec = at[2] == 'x';
	scanner->at += 5;
}

/*
 * The rest of the line. The kernel escapes newlines only (fs/proc/task_mmu.c); every other byte, a backslash
 * too, stands for itself.
 */
static char *copy_path(const struct scanner *scanner)
{
	const char *at = scanner->at;
	char *path, *to;

	while (at < scanner->end && *at == ' ')
		at++;
	if (at == scanner->end)
		return no_path;
	path = to = malloc(scanner->end - at + 1);
	if (!path)
		return NULL;
	while (at < scanner->end) {
		bool escape = scanner->end - at >= 4 && !memcmp(at, "\\012", 4);

		*to++ = escape ? '\n' : *at;
		at += escape ? 4 : 1;
	}
	*to = '\0';
	return path;
}

/* Appends the entry of one line; a malformed line is none. */
static int parse_line(struct maps *maps, const char *line, const char *end)
{
	struct scanner scanner = {line, end, false};
	struct map_entry entry = {};
	int err;

	entry.start = scan_number(&scanner, 16, '-');
	entry.end = scan_number(&scanner, 16, ' ');
	scan_permissions(&scanner, &entry);
	entry.offset = scan_number(&scanner, 16, ' ');
	entry.dev_major = scan_number(&scanner, 16, ':');
	entry.dev_minor = scan_number(&scanner, 16, ' ');
	entry.inode = scan_number(&scanner, 10, ' ');
	if (scanner.failed || entry.start >= entry.end)
		return 0;

	entry.path = copy_path(&scanner);
	if (!entry.path)
		return -ENOMEM;
	err = vec__push(&maps->entries, entry);
	if (err && entry.path != no_path)
		free(entry.path);
	return err;
}

static int compare_entries(const void *a, const void *b)
{
	const struct map_entry *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The kernel's text is in order already; anything else must not break the binary search. */
static void sort_entries(struct maps *maps)
{
	for (size_t i = 1; i < maps->entries.len; i++) {
		if (maps->entries.items[i - 1].start > maps->entries.items[i].start) {
			qsort(maps->entries.items, maps->entries.len, sizeof(*maps->entries.items),
			      compare_entries);
			return;
		}
	}
}

int maps__parse(struct maps *maps, const char *text, size_t len)
{
	const char *end = text + len;

	*maps = (struct maps){};
	while (text < end) {
		const char *newline = memchr(text, '\n', end - text);
		const char *line_end = newline ? newline : end;
		int err = parse_line(maps, text, line_end);

		if (err) {
			maps__free(maps);
			return err;
		}
		text = line_end + 1;
	}
	sort_entries(maps);
	return 0;
}

void maps__free(struct maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->entries.len; i++) {
		if (maps->entries.items[i].path != no_path)
			free(maps->entries.items[i].path);
	}
	vec__free(&maps->entries);
}

/* ---- reading ---- */

struct text {
	VEC(char) bytes;
};

/* A whole file, of unknown size. A missing one means that the process is gone. */
static int read_text(const char *path, struct text *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t got;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;

	while (!(err = vec__reserve(&text->bytes, 65536))) {
		got = read(fd, text->bytes.items + text->bytes.len, text->bytes.cap - text->bytes.len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		text->bytes.len += got;
	}
	close(fd);
	return err;
}

int maps__read(struct maps *maps, pid_t pid)
{
	struct text text = {};
	char path[64];
	int err;

	*maps = (struct maps){};
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	err = read_text(path, &text);
	if (!err && !text.bytes.len)
		err = -ESRCH;
	if (!err)
		err = maps__parse(maps, text.bytes.items, text.bytes.len);
	vec__free(&text.bytes);
	return err;
}

/* ---- opening the file of an entry ---- */

/* "mnt_id:\t25" of an open file: the mount it was reached through. -1 if unknown. */
static long mount_of(int fd)
{
	struct text text = {};
	const char *field;
	char path[64];
	long mount = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (!read_text(path, &text) && !vec__push(&text.bytes, '\0')) {
		field = strstr(text.bytes.items, "mnt_id:");
		if (field)
			mount = strtol(field + strlen("mnt_id:"), NULL, 10);
	}
	vec__free(&text.bytes);
	return mount;
}

/* Is the entry's device that of the file system mounted as `mount` in the mount namespace of `pid`? */
static bool mount_has_device(pid_t pid, long mount, const struct map_entry *entry)
{
	unsigned int major, minor;
	struct text text = {};
	char path[64];
	bool has = false;
	long id;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	if (!read_text(path, &text) && !vec__push(&text.bytes, '\0')) {
		for (char *line = text.bytes.items; line && !has; line = strchr(line, '\n')) {
			line += *line == '\n';
			has = sscanf(line, "%ld %*d %u:%u", &id, &major, &minor) == 3 && id == mount &&
			      major == entry->dev_major && minor == entry->dev_minor;
		}
	}
	vec__free(&text.bytes);
	return has;
}

/*
 * Is the open file the one of the entry? maps prints the device of the superblock; stat may say another one
 * (btrfs subvolumes, overlayfs layers), and then mountinfo knows the superblock's.
 */
static bool is_file_of(pid_t pid, int fd, const struct stat *st, const struct map_entry *entry)
{
	long mount;

	if (st->st_ino != entry->inode)
		return false;
	if (st->st_dev == makedev(entry->dev_major, entry->dev_minor))
		return true;
	mount = mount_of(fd);
	return mount >= 0 &&
	       (mount_has_device(pid, mount, entry) || mount_has_device(getpid(), mount, entry));
}

/* Open a path if it is a regular file, and that of the entry unless `trusted`. fd or -errno. */
static int open_path(pid_t pid, const char *path, const struct map_entry *entry, bool trusted)
{
	int fd = -1, err = 0, handle = open(path, O_PATH | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (handle < 0)
		return -errno;
	if (fstat(handle, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || !(trusted || is_file_of(pid, handle, &st, entry)))
		err = -ENOENT;
	if (!err) {
		/* Through the handle: the path may lead to another file by now. */
		snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
		fd = open(self, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err = -errno;
	}
	close(handle);
	return err ?: fd;
}

/* /proc/PID/exe, for the main program; good for deleted files without any privilege but ptrace's. */
static int open_exe(pid_t pid, const struct map_entry *entry)
{
	char link[64], target[PATH_MAX];
	struct stat st;
	ssize_t len;
	bool same;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, target, sizeof(target) - 1);
	if (len < 0 || stat(link, &st))
		return -errno;
	target[len] = '\0';
	/*
	 * Both names come from the kernel, so with an equal inode they stand in for the device; a file cannot
	 * be mapped from behind its end.
	 */
	same = st.st_ino == entry->inode && !strcmp(target, entry->path) &&
	       entry->offset < (uint64_t)st.st_size;
	return open_path(pid, link, entry, same);
}

/*
 * The printed path behind a prefix, as it is or without the " (deleted)" that may or may not be the kernel's.
 */
static int open_printed(pid_t pid, const char *prefix, const struct map_entry *entry)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX + 64];
	int len = snprintf(path, sizeof(path), "%s%s", prefix, entry->path), fd;

	if (len >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open_path(pid, path, entry, false);
	if (fd >= 0 || len < (int)sizeof(deleted) || strcmp(path + len - strlen(deleted), deleted))
		return fd;
	path[len - strlen(deleted)] = '\0';
	return open_path(pid, path, entry, false);
}

int maps__open_file(pid_t pid, const struct map_entry *entry)
{
	char path[96];
	int fd;

	if (!entry->inode)
		return -ENOENT;

	/* The names in map_files are not padded with zeros, those in maps are. */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, entry->start, entry->end);
	fd = open_path(pid, path, entry, true);
	if (fd < 0)
		fd = open_exe(pid, entry);
	if (fd < 0 && entry->path[0] == '/') {
		snprintf(path, sizeof(path), "/proc/%d/root", pid);
		fd = open_printed(pid, path, entry);
		/* With a plain chroot the kernel prints the path as seen from our root. */
		if (fd < 0)
			fd = open_printed(pid, "", entry);
	}
	return fd;
}
