/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reader is a fork of this process that changes nothing but who it is to file systems (fsuid): the
 * target's user can neither signal nor trace it, and file systems that this user serves refuse it. Results
 * come by memory that both have, so that whatever keeps the reader from going on keeps nobody else.
 *
 * openat2 (Linux 5.6) confines a name to a folder. A file is opened as a mere place first (O_PATH), looked
 * at, and only then for reading.
 */
#include "os/file_view.h"

#include "base/clock.h"
#include "base/util.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS	    2000 /* for one file */
#define READERS_MAX 3	 /* one after the other, as each was given up */
#define POLL_MS	    100

/* --- who --- */

static int open_place(pid_t pid, const char *name, int *place, uint64_t *id)
{
	char path[64];
	struct stat stat;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	*place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*place < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (fstat(*place, &stat))
		return -errno;
	*id = stat.st_dev * 0x9e3779b97f4a7c15ull ^ stat.st_ino;
	return 0;
}

/* Capabilities hold in the user namespace that the process is in. */
static bool shares_user_ns(pid_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return stat("/proc/self/ns/user", &own) || (!stat(path, &other) && own.st_ino == other.st_ino);
}

static int take_groups(struct file_view *view, const char *numbers)
{
	VEC(gid_t) groups = {0};
	char *end;
	int err = 0;

	for (;; numbers = end) {
		gid_t group = strtoul(numbers, &end, 10);

		if (end == numbers)
			break;
		err = err ?: vec__push(&groups, group);
	}
	view->groups = groups.items;
	view->group_count = groups.len;
	return err;
}

/* One line of its status. Bits of what was found. */
static int take_line(struct file_view *view, const char *line, unsigned int *found)
{
	unsigned long long capabilities;

	if (sscanf(line, "Uid: %*u %*u %*u %u", &view->uid) == 1)
		*found |= 1;
	else if (sscanf(line, "Gid: %*u %*u %*u %u", &view->gid) == 1)
		*found |= 2;
	else if (!strncmp(line, "Groups:", 7))
		return *found |= 4, take_groups(view, line + 7);
	else if (sscanf(line, "CapEff: %llx", &capabilities) == 1)
		view->reads_all = capabilities & (1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH);
	return 0;
}

static int find_rights(struct file_view *view, pid_t pid)
{
	char path[64], *line = NULL;
	unsigned int found = 0;
	size_t size = 0;
	FILE *status;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	if (!status)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && found != 7 && getline(&line, &size, status) > 0)
		err = take_line(view, line, &found);
	while (!err && getline(&line, &size, status) > 0)
		err = strncmp(line, "CapEff:", 7) ? 0 : take_line(view, line, &found);
	view->reads_all = view->reads_all && shares_user_ns(pid);
	free(line);
	fclose(status);
	return err ?: found == 7 ? 0 : -ESRCH;
}

int file_view__open(struct file_view *view, pid_t pid)
{
	int err;

	*view = (struct file_view){.root = -1, .cwd = -1};
	err = open_place(pid, "root", &view->root, &view->root_id)
		      ?: open_place(pid, "cwd", &view->cwd, &view->cwd_id) ?: find_rights(view, pid);
	if (err)
		file_view__close(view);
	return err;
}

void file_view__close(struct file_view *view)
{
	if (view->root >= 0)
		close(view->root);
	if (view->cwd >= 0)
		close(view->cwd);
	view->root = view->cwd = -1;
	free(view->groups);
	view->groups = NULL;
	view->group_count = 0;
}

bool file_view__equal(const struct file_view *a, const struct file_view *b)
{
	return a->root_id == b->root_id && a->cwd_id == b->cwd_id && a->uid == b->uid && a->gid == b->gid &&
	       a->reads_all == b->reads_all && a->group_count == b->group_count &&
	       (!a->group_count || !memcmp(a->groups, b->groups, a->group_count * sizeof(gid_t)));
}

/*
 * In the reader only. Whoever may not become another user reads what is its own user's; all capabilities go
 * but the one that the target has, too.
 */
static bool become(const struct file_view *view)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	uint32_t reads_all = 1u << CAP_DAC_READ_SEARCH;

	if (geteuid() == 0 || view->uid != geteuid()) {
		if (syscall(SYS_setgroups, view->group_count, view->groups))
			return false;
		setfsgid(view->gid);
		setfsuid(view->uid);
		if ((uid_t)setfsuid(-1) != view->uid || (gid_t)setfsgid(-1) != view->gid)
			return false;
	}
	if (syscall(SYS_capget, &header, data))
		return false;
	data[0].effective = view->reads_all ? data[0].permitted & reads_all : 0;
	data[0].permitted = data[0].effective;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){0};
	return !syscall(SYS_capset, &header, data);
}

/* --- the reader --- */

/* What both processes have. */
struct area {
	volatile uint32_t done; /* files */
	struct {
		uint32_t fault;
		uint32_t len;
		uint64_t at; /* in text */
		int64_t changed_ns;
		uint64_t device, inode;
	} results[FILE_READS_MAX];
	size_t used;
	char text[FILES_BYTES_MAX];
};

/* Where an open folder is. */
static bool find_folder(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, PATH_MAX - 1);
	path[len < 0 ? 0 : len] = '\0';
	return len > 0;
}

/*
 * "../lib/x.py", as in a path of modules: out of the working folder, by way of the root, and not farther than
 * that.
 */
static bool name_from_root(const struct file_view *view, const char *path, char name[PATH_MAX])
{
	char root[PATH_MAX], cwd[PATH_MAX], *last;
	size_t len;

	if (!find_folder(view->root, root) || !find_folder(view->cwd, cwd))
		return false;
	len = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(cwd, root, len) || cwd[len] != '/')
		return false;
	for (; !strncmp(path, "../", 3); path += 3) {
		last = strrchr(cwd + len, '/');
		if (!last || !last[1])
			return false;
		*last = '\0';
	}
	return snprintf(name, PATH_MAX, "%s/%s", cwd + len, path) < PATH_MAX;
}

static int open_confined(int folder, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS | resolve};
	int place = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));

	return place < 0 ? -errno : place;
}

/* The place that the name leads to; -errno. */
static int find_place(const struct file_view *view, const char *path)
{
	char name[PATH_MAX];

	if (*path == '/')
		return open_confined(view->root, path, RESOLVE_IN_ROOT);
	if (!strncmp(path, "../", 3))
		return name_from_root(view, path, name) ? open_confined(view->root, name, RESOLVE_IN_ROOT)
							: -EXDEV;
	return open_confined(view->cwd, path, RESOLVE_BENEATH);
}

static enum file_fault fault_of(int err)
{
	return err == ENOENT || err == ENOTDIR || err == EXDEV || err == ELOOP || err == ENAMETOOLONG
		       ? FILE_MISSING
	       : err == EACCES || err == EPERM ? FILE_DENIED
					       : FILE_FAILED;
}

/* As much as it had when it was looked at. */
static enum file_fault read_all(int fd, char *text, size_t size, uint32_t *len)
{
	ssize_t got = 1;

	while (got && *len < size) {
		got = read(fd, text + *len, size - *len);
		if (got < 0 && errno != EINTR)
			return fault_of(errno);
		*len += got > 0 ? got : 0;
		got = got < 0 ? 1 : got;
	}
	return FILE_READ;
}

/* In /proc there is what the reader is, not what the target is. */
static enum file_fault judge(int place, const struct stat *stat, size_t room)
{
	struct statfs system;

	if (fstatfs(place, &system))
		return FILE_FAILED;
	if (!S_ISREG(stat->st_mode) || system.f_type == PROC_SUPER_MAGIC)
		return FILE_NOT_REGULAR;
	return stat->st_size > FILE_BYTES_MAX || (size_t)stat->st_size > room ? FILE_TOO_LARGE : FILE_READ;
}

static int64_t ns_of(const struct timespec *time)
{
	return time->tv_sec * 1000000000ll + time->tv_nsec;
}

static enum file_fault read_file(const struct file_view *view, const char *path, struct area *area, size_t i)
{
	int place = find_place(view, path), fd;
	enum file_fault fault;
	struct stat stat;
	char self[64];

	if (place < 0)
		return fault_of(-place);
	fault = fstat(place, &stat) ? FILE_FAILED : judge(place, &stat, sizeof(area->text) - area->used);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	fd = fault == FILE_READ ? open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	if (fault == FILE_READ && fd < 0)
		fault = fault_of(errno);
	if (fault == FILE_READ) {
		area->results[i].at = area->used;
		area->results[i].changed_ns = max_i64(ns_of(&stat.st_mtim), ns_of(&stat.st_ctim));
		area->results[i].device = stat.st_dev;
		area->results[i].inode = stat.st_ino;
		fault = read_all(fd, area->text + area->used, stat.st_size, &area->results[i].len);
	}
	if (fault == FILE_READ)
		area->used += area->results[i].len;
	if (fd >= 0)
		close(fd);
	close(place);
	return fault;
}

static _Noreturn void read_files(const struct file_view *view, const struct file_read *files, size_t count,
				 struct area *area, pid_t parent)
{
	bool may = become(view);

	/* The change of the user has taken it back. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (size_t i = area->done; i < count; i = ++area->done)
		area->results[i].fault = may ? read_file(view, files[i].path, area, i) : FILE_FAILED;
	_exit(0);
}

/* --- the other side --- */

/* Has it ended by itself, without having kept us waiting with one file, or with all? */
static bool wait_for_end(int pidfd, const struct area *area, uint64_t until_ns)
{
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};
	uint64_t since_ns = now_ns();
	uint32_t done = area->done;

	while (poll(&poller, 1, POLL_MS) <= 0) {
		if (area->done != done)
			since_ns = now_ns();
		done = area->done;
		if (now_ns() - since_ns > WAIT_MS * 1000000ull || now_ns() > until_ns)
			return false;
	}
	return true;
}

static void wait_for_reader(pid_t pid, const struct area *area, uint64_t until_ns)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0 && !wait_for_end(pidfd, area, until_ns)) {
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		/* What hangs in the kernel may not even be killed: then it is nobody's to wait for. */
		poll(&poller, 1, WAIT_MS);
	}
	waitpid(pid, NULL, pidfd >= 0 ? WNOHANG : 0);
	if (pidfd >= 0)
		close(pidfd);
}

/* A signal is not its business: a handler of ours would take files of ours away. */
static pid_t fork_reader(const struct file_view *view, const struct file_read *files, size_t count,
			 struct area *area)
{
	pid_t parent = getpid(), pid;
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (!pid)
		read_files(view, files, count, area, parent);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static void take_result(const struct area *area, size_t i, struct file_read *file)
{
	file->fault = area->results[i].fault;
	file->changed_ns = area->results[i].changed_ns;
	file->device = area->results[i].device;
	file->inode = area->results[i].inode;
	if (file->fault != FILE_READ)
		return;
	file->len = area->results[i].len;
	file->text = file->len ? malloc(file->len) : NULL;
	if (file->text)
		memcpy(file->text, area->text + area->results[i].at, file->len);
	else if (file->len)
		file->fault = FILE_FAILED;
}

void file_view__read(const struct file_view *view, struct file_read *files, size_t count, uint64_t until_ns)
{
	struct area *area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t asked = count < FILE_READS_MAX ? count : FILE_READS_MAX;

	for (size_t i = 0; i < count; i++)
		files[i].fault = FILE_FAILED;
	if (area == MAP_FAILED)
		return;
	for (int readers = 0; readers < READERS_MAX && area->done < asked && now_ns() < until_ns; readers++) {
		pid_t pid = fork_reader(view, files, asked, area);

		if (pid < 0)
			break;
		wait_for_reader(pid, area, until_ns);
		if (area->done < asked) {
			area->results[area->done].fault = FILE_SLOW;
			area->done++;
		}
	}
	for (size_t i = 0; i < area->done; i++)
		take_result(area, i, &files[i]);
	for (size_t i = area->done; i < asked; i++)
		files[i].fault = FILE_SLOW;
	munmap(area, sizeof(*area));
}
