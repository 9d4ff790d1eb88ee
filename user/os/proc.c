/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Readers of /proc/PID/{stat,task,comm,cmdline} and of our own status. A process can go at any moment: ENOENT
 * from open and ESRCH from read both mean that, and both come out as -ESRCH. Formats:
 * Documentation/filesystems/proc.rst.
 */
#include "os/proc.h"

#include "base/hmap.h"
#include "base/util.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ull
#define CMDLINE_THREADS 16 /* that are asked */
#define AUXV_WORDS 256
#define FLAG_KERNEL_THREAD 0x00200000 /* PF_KTHREAD (include/linux/sched.h) */
#define FIRST_USER_NS	   0xeffffffd /* PROC_USER_INIT_INO (include/linux/proc_ns.h) */

/* At most size - 1 bytes of a file, NUL-terminated. Number of bytes or -errno. */
static ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 0;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;

	while (len < size - 1) {
		got = read(fd, text + len, size - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += got;
	}
	/*
	 * Some files of a task that has just died read as an error, others as empty; what came before it
	 * counts.
	 */
	if (got < 0 && !len) {
		got = -errno;
		close(fd);
		return got;
	}
	close(fd);
	text[len] = '\0';
	return len;
}

int proc__stat(pid_t pid, struct proc_stat *out)
{
	unsigned long long utime, stime, start_ticks;
	unsigned int flags;
	char path[64], text[2048];
	char *name, *end;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	len = read_text(path, text, sizeof(text));
	if (len < 0)
		return len;

	/* The name may hold anything, ") R 1" too; nothing after it holds a parenthesis. */
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (!name || !end || end < name)
		return len ? -EPROTO : -ESRCH;

	if (sscanf(end + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %u %*d %llu",
		   &out->state, &out->ppid, &flags, &utime, &stime, &out->num_threads, &start_ticks) != 7)
		return -EPROTO;

	*end = '\0';
	snprintf(out->comm, sizeof(out->comm), "%s", name + 1);
	out->start_ticks = start_ticks;
	out->is_kernel = flags & FLAG_KERNEL_THREAD;
	out->cpu_ns = (utime + stime) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
	return 0;
}

int proc__cpu_ns(pid_t pid, uint64_t *out)
{
	struct proc_stat stat;
	struct timespec ts;
	clockid_t clock;
	int err;

	if (!clock_getcpuclockid(pid, &clock) && !clock_gettime(clock, &ts)) {
		*out = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
		return 0;
	}
	err = proc__stat(pid, &stat);
	if (!err)
		*out = stat.cpu_ns;
	return err;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int proc__tasks(pid_t pid, struct proc_tasks *out)
{
	struct dirent *entry;
	char path[64];
	int err = 0;
	DIR *dir;

	*out = (struct proc_tasks){};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;

	while (!err && (errno = 0, entry = readdir(dir))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			err = vec__push(&out->tids, (pid_t)atoi(entry->d_name));
	}
	if (!err)
		err = errno == ENOENT ? -ESRCH : -errno;
	closedir(dir);
	if (err) {
		vec__free(&out->tids);
		return err;
	}
	if (out->tids.len)
		qsort(out->tids.items, out->tids.len, sizeof(*out->tids.items), compare_pids);
	return 0;
}

static int read_comm(const char *path, char *out, size_t size)
{
	ssize_t len = read_text(path, out, size);

	if (len < 0)
		return len;
	/* The kernel adds one newline; any before it belong to the name. */
	if (len && out[len - 1] == '\n')
		out[len - 1] = '\0';
	return 0;
}

int proc__task_comm(pid_t pid, pid_t tid, char *out, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	return read_comm(path, out, size);
}

/* Field 39 of its stat, counted behind the name, which may have anything in it. */
int proc__task_cpu(pid_t pid, pid_t tid)
{
	char path[64], text[1024], *at;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	len = read_text(path, text, sizeof(text));
	if (len < 0)
		return len;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at + 1) : -EINVAL;
}

static ssize_t without_zeros(const char *text, ssize_t len)
{
	while (len > 0 && text[len - 1] == '\0')
		len--;
	return len;
}

/* Of one whose main thread has ended, as another one tells it; 0: none does. */
static ssize_t cmdline_of_thread(pid_t pid, char *out, size_t size)
{
	struct proc_tasks tasks;
	ssize_t len = 0;

	if (proc__tasks(pid, &tasks))
		return 0;
	for (size_t i = 0; i < tasks.tids.len && i < CMDLINE_THREADS && len <= 0; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/task/%d/cmdline", pid, tasks.tids.items[i]);
		len = tasks.tids.items[i] == pid ? 0 : without_zeros(out, read_text(path, out, size));
	}
	vec__free(&tasks.tids);
	return len > 0 ? len : 0;
}

int proc__cmdline(pid_t pid, char *out, size_t size)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	len = read_text(path, out, size);
	if (len < 0)
		return len;

	len = without_zeros(out, len) ?: cmdline_of_thread(pid, out, size);
	if (!len) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		return read_comm(path, out, size);
	}
	for (ssize_t i = 0; i < len; i++) {
		if (out[i] == '\0')
			out[i] = ' ';
	}
	return 0;
}

int proc__exe(pid_t pid, char *out, size_t size)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, out, size);
	if (len < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if ((size_t)len == size)
		return -ENAMETOOLONG;
	out[len] = '\0';
	return 0;
}

/* Kinds and values by turns, and zeros behind. */
static int read_auxv(pid_t pid, uint64_t words[AUXV_WORDS])
{
	char path[64];
	ssize_t len;

	memset(words, 0, AUXV_WORDS * sizeof(*words));
	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	len = read_text(path, (char *)words, AUXV_WORDS * sizeof(*words));
	return len > 0 ? 0 : len ?: -ESRCH; /* empty: it has no memory any more */
}

static uint64_t hash_words(const uint64_t *words, size_t count, uint64_t hash)
{
	for (size_t i = 0; i < count; i++)
		hash = hmap_mix(hash ^ words[i]);
	return hash;
}

int proc__exec_id(pid_t pid, uint64_t *out)
{
	uint64_t words[AUXV_WORDS];
	int err = read_auxv(pid, words);

	if (!err)
		*out = hash_words(words, AUXV_WORDS, 0);
	return err;
}

/* Not permitted: there are none. */
static int read_random(pid_t pid, const uint64_t *words, uint64_t random[2])
{
	struct iovec local = {random, 16}, remote = {NULL, 16};

	random[0] = random[1] = 0;
	for (size_t i = 0; i < AUXV_WORDS && words[i] != AT_NULL; i += 2)
		if (words[i] == AT_RANDOM)
			remote.iov_base = (void *)words[i + 1];
	if (!remote.iov_base || process_vm_readv(pid, &local, 1, &remote, 1, 0) == 16)
		return 0;
	return errno == EFAULT || errno == ESRCH ? -errno : 0;
}

int proc__start_id(pid_t pid, uint64_t *out)
{
	uint64_t words[AUXV_WORDS], random[2];
	int err = read_auxv(pid, words) ?: read_random(pid, words, random);

	if (!err)
		*out = hash_words(random, ARRAY_SIZE(random), hash_words(words, AUXV_WORDS, 0));
	return err;
}

/* What follows "NAME:" in a status file; NULL when there is no such line. */
static const char *status_field(const char *status, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

bool proc__exists(pid_t tid)
{
	return !kill(tid, 0) || errno != ESRCH;
}

pid_t proc__process_of(pid_t tid)
{
	char path[64], text[8192];
	const char *field;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (read_text(path, text, sizeof(text)) < 0)
		return 0;
	field = status_field(text, "Tgid");
	return field ? atoi(field) : 0;
}

/* The program's own, and all else: the two are rounded so that they add up. */
int proc__code_bytes(pid_t pid, uint64_t *out)
{
	char path[64], text[8192];
	const char *own, *libraries;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	len = read_text(path, text, sizeof(text));
	if (len < 0)
		return len;
	own = status_field(text, "VmExe");
	libraries = status_field(text, "VmLib");
	if (!own || !libraries)
		return -ESRCH; /* a kernel thread, or one that has ended */
	*out = (strtoull(own, NULL, 10) + strtoull(libraries, NULL, 10)) * 1024;
	return 0;
}

/* Real, effective, saved, of the file system. */
static int last_id(const char *status, const char *name, unsigned int *out)
{
	const char *field = status_field(status, name);

	return field && sscanf(field, "%*u %*u %*u %u", out) == 1 ? 0 : -EPROTO;
}

int proc__file_owner(pid_t pid, uid_t *uid, gid_t *gid)
{
	char path[64], text[8192];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	len = read_text(path, text, sizeof(text));
	return len < 0 ? len : last_id(text, "Uid", uid) ?: last_id(text, "Gid", gid);
}

static uint64_t number_of(const char *status, const char *name, int base)
{
	const char *field = status_field(status, name);

	return field ? strtoull(field, NULL, base) : 0;
}

int proc__own_rights(struct proc_rights *out)
{
	struct stat user_ns;
	char text[8192];
	ssize_t len;

	*out = (struct proc_rights){0};
	len = read_text("/proc/self/status", text, sizeof(text));
	if (len < 0)
		return len;
	if (!status_field(text, "CapEff"))
		return -EPROTO;
	out->capabilities = number_of(text, "CapEff", 16);
	out->is_filtered = number_of(text, "Seccomp", 10) == SECCOMP_MODE_FILTER;
	out->no_new = number_of(text, "NoNewPrivs", 10);
	/* No such file: a kernel without user namespaces. */
	out->in_user_ns = !stat("/proc/self/ns/user", &user_ns) && user_ns.st_ino != FIRST_USER_NS;
	return 0;
}

static uint64_t own_memory(const char *name)
{
	const char *field;
	char text[8192];

	if (read_text("/proc/self/status", text, sizeof(text)) < 0)
		return 0;
	field = status_field(text, name);
	return field ? strtoull(field, NULL, 10) * 1024 : 0;
}

uint64_t proc__own_rss(void)
{
	return own_memory("VmRSS");
}

uint64_t proc__own_peak_rss(void)
{
	return own_memory("VmHWM");
}

uint64_t proc__own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t proc__age_ns(pid_t pid)
{
	struct proc_stat stat;
	struct timespec now;
	uint64_t began, now_ns;

	if (proc__stat(pid, &stat) || clock_gettime(CLOCK_BOOTTIME, &now))
		return 0;
	began = stat.start_ticks * (1000000000ull / sysconf(_SC_CLK_TCK));
	now_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	return now_ns > began ? now_ns - began : 0;
}
