/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /proc/PID/task/TID/syscall reads "running", or the number and the arguments of the system call that the
 * thread waits in, for 0.6 us; it takes the same permission as reading the process's memory. stat takes three
 * times as long. Formats: Documentation/filesystems/proc.rst.
 */
#include "os/task.h"

#include "base/util.h"
#include "os/pidns.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int task_probe__open(struct task_probe *probe, pid_t pid, pid_t tid)
{
	char path[64], byte;

	*probe = (struct task_probe){.fd = -1, .pid = pid, .tid = tid};
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	probe->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (probe->fd >= 0 && pread(probe->fd, &byte, 1, 0) == 1)
		return 0;
	if (probe->fd < 0 && (errno == EMFILE || errno == ENFILE))
		return -errno;
	task_probe__close(probe);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	probe->is_stat = true;
	probe->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (probe->fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return 0;
}

static struct task_look parse_stat(char *text)
{
	const char *end = strrchr(text, ')');
	struct task_look look = {.state = TASK_UNKNOWN, .syscall = -1};

	if (end && end[1] == ' ')
		look.state = end[2] == 'R'		      ? TASK_RUNNING
			     : end[2] == 'Z' || end[2] == 'X' ? TASK_GONE
							      : TASK_WAITING;
	return look;
}

/* What a file of a thread says, which is short; -errno. */
static ssize_t read_file(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	close(fd);
	if (len <= 0)
		return -ESRCH;
	text[len] = '\0';
	return len;
}

/*
 * After a stop a call goes on under another number. There are three kinds of them, and the function that it
 * waits in tells which: sleeps have none of their own between schedule() and the entry.
 */
static int64_t restarted_call(const struct task_probe *probe)
{
	char text[128];

	if (read_file(probe->pid, probe->tid, "wchan", text, sizeof(text)) <= 0 || !strcmp(text, "0"))
		return SYS_restart_syscall; /* not any more, or it is not told */
	return strstr(text, "futex") ? SYS_futex : strstr(text, "poll") ? SYS_poll : SYS_clock_nanosleep;
}

static struct task_look parse_syscall(const struct task_probe *probe, char *text)
{
	struct task_look look = {.state = TASK_WAITING, .syscall = -1};
	char *end;

	if (!strncmp(text, "running", 7)) {
		look.state = TASK_RUNNING;
		return look;
	}
	look.syscall = strtoll(text, &end, 10);
	if (look.syscall == SYS_restart_syscall)
		look.syscall = restarted_call(probe);
	else if (look.syscall >= 0)
		look.arg = strtoull(end, NULL, 16);
	return look;
}

struct task_look task_probe__look(const struct task_probe *probe)
{
	struct task_look look = {.state = TASK_UNKNOWN, .syscall = -1};
	char text[512];
	ssize_t len;

	if (probe->fd < 0)
		return look;
	len = pread(probe->fd, text, sizeof(text) - 1, 0);
	if (len <= 0) {
		if (!len || errno == ESRCH)
			look.state = TASK_GONE;
		return look;
	}
	text[len] = '\0';
	return probe->is_stat ? parse_stat(text) : parse_syscall(probe, text);
}

void task_probe__close(struct task_probe *probe)
{
	if (probe->fd >= 0)
		close(probe->fd);
	probe->fd = -1;
}

struct task_look task__look(pid_t pid, pid_t tid)
{
	struct task_look look = {.state = TASK_GONE, .syscall = -1};
	struct task_probe probe;
	int err = task_probe__open(&probe, pid, tid);

	if (err && err != -ESRCH)
		look.state = TASK_UNKNOWN;
	if (!err)
		look = task_probe__look(&probe);
	task_probe__close(&probe);
	return look;
}

int task__ran_ns(pid_t pid, pid_t tid, uint64_t *out)
{
	char text[128], *end;
	ssize_t len = read_file(pid, tid, "schedstat", text, sizeof(text));

	if (len < 0)
		return len;
	*out = strtoull(text, &end, 10);
	return end == text ? -EINVAL : 0;
}

bool task__is_stopped(pid_t pid, pid_t tid)
{
	char text[512];
	const char *end = read_file(pid, tid, "stat", text, sizeof(text)) < 0 ? NULL : strrchr(text, ')');

	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

const char *task__syscall_name(int64_t number)
{
	static const struct {
		int64_t number;
		const char *name;
	} names[] = {
#define NAME(name) {SYS_##name, #name}
/* clang-format off */
		NAME(read), NAME(write), NAME(readv), NAME(writev), NAME(pread64), NAME(pwrite64),
		NAME(poll), NAME(ppoll), NAME(select), NAME(pselect6), NAME(epoll_wait), NAME(epoll_pwait),
		NAME(epoll_pwait2), NAME(futex), NAME(nanosleep), NAME(clock_nanosleep), NAME(pause),
		NAME(connect), NAME(accept), NAME(accept4), NAME(recvfrom), NAME(recvmsg), NAME(recvmmsg),
		NAME(sendto), NAME(sendmsg), NAME(sendmmsg), NAME(sendfile), NAME(splice), NAME(wait4),
		NAME(waitid), NAME(fsync), NAME(fdatasync), NAME(sync), NAME(openat), NAME(flock),
		NAME(fcntl), NAME(ioctl), NAME(io_uring_enter), NAME(io_getevents), NAME(semop),
		NAME(semtimedop), NAME(msgrcv), NAME(msgsnd), NAME(mq_timedreceive), NAME(rt_sigtimedwait),
		NAME(rt_sigsuspend), NAME(madvise), NAME(munmap), NAME(mmap), NAME(unlink),
		NAME(getdents64), NAME(newfstatat), NAME(preadv), NAME(pwritev), NAME(preadv2),
		NAME(pwritev2), NAME(open), NAME(stat), NAME(lstat), NAME(fstat), NAME(statx),
		NAME(copy_file_range), NAME(syncfs), NAME(sync_file_range), NAME(msync), NAME(unlinkat),
		NAME(rename), NAME(renameat), NAME(renameat2), NAME(mq_timedsend), NAME(io_submit),
		NAME(vmsplice), NAME(tee), NAME(access), NAME(faccessat), NAME(readlink), NAME(mkdir),
		NAME(rmdir), NAME(close), NAME(ftruncate), NAME(fallocate), NAME(fadvise64),
		NAME(readahead), NAME(shutdown), NAME(socket), NAME(bind), NAME(clone), NAME(vfork),
		NAME(fork), NAME(execve), NAME(exit), NAME(exit_group), NAME(kill), NAME(tgkill),
		NAME(ptrace), NAME(brk), NAME(mprotect), NAME(mremap), NAME(mlock), NAME(sched_yield),
		NAME(sched_setaffinity), NAME(membarrier), NAME(getrandom), NAME(process_vm_readv),
		NAME(perf_event_open), NAME(bpf), NAME(prctl), NAME(seccomp), NAME(restart_syscall),
/* clang-format on */
#undef NAME
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

int task__map_ids(pid_t pid, struct hmap *out, bool *same)
{
	struct proc_tasks tasks;
	int err;

	hmap__clear(out);
	*same = !pidns__inner_pid(pid);
	if (*same)
		return 0;
	err = proc__tasks(pid, &tasks);
	for (size_t i = 0; !err && i < tasks.tids.len; i++) {
		pid_t inner = pidns__inner_tid(pid, tasks.tids.items[i]);

		if (inner)
			err = hmap__set(out, inner, tasks.tids.items[i]);
	}
	vec__free(&tasks.tids);
	return err;
}

void task__raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
