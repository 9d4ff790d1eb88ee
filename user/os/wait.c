/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See wait.h. Numbers that headers may be too old for: arch/x86/entry/syscalls/syscall_64.tbl.
 */
#include "os/wait.h"

#include "base/util.h"
#include "os/task.h"

#include <stdio.h>
#include <sys/syscall.h>

#define SYSCALL_EPOLL_PWAIT2 441
#define SYSCALL_FUTEX_WAITV  449
#define SYSCALL_FUTEX_WAIT   455
#define SYSCALL_NUMBERS	     1024 /* more than there are */

enum wait_reason wait_reason_of(int64_t syscall, uint64_t arg)
{
	/* For no file at all: what sleep() is to Python 3.10. */
	if ((syscall == SYS_select || syscall == SYS_pselect6) && !arg)
		return WAIT_SLEEP;
	if (syscall < 0)
		return syscall == -1 ? WAIT_KERNEL : WAIT_UNKNOWN;
	switch (syscall) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
		return WAIT_SLEEP;
	case SYS_futex:
	case SYSCALL_FUTEX_WAITV:
	case SYSCALL_FUTEX_WAIT:
	case SYS_flock:
	case SYS_fcntl: /* F_SETLKW: nothing else of it waits */
	case SYS_semop:
	case SYS_semtimedop:
		return WAIT_LOCK;
	case SYS_wait4:
	case SYS_waitid:
	case SYS_vfork: /* until it execs */
		return WAIT_CHILD;
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYSCALL_EPOLL_PWAIT2:
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_copy_file_range:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync:
	case SYS_syncfs:
	case SYS_sync_file_range:
	case SYS_msync:
	case SYS_open:
	case SYS_openat:
	case SYS_stat:
	case SYS_lstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_getdents64:
	case SYS_unlink:
	case SYS_unlinkat:
	case SYS_rename:
	case SYS_renameat2:
	case SYS_ioctl:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_mq_timedreceive:
	case SYS_mq_timedsend:
		return WAIT_IO;
	}
	return WAIT_OTHER;
}

int64_t wait_told(enum wait_reason reason, int64_t syscall)
{
	if (reason != WAIT_IO && reason != WAIT_OTHER)
		return 0;
	return syscall < SYSCALL_NUMBERS ? syscall : SYSCALL_NUMBERS;
}

void wait_text(enum wait_reason reason, int64_t syscall, char *out, size_t size)
{
	static const char *const words[] = {[WAIT_NONE] = "on the CPU",
					    [WAIT_READY] = "waits for a CPU",
					    [WAIT_STOPPED] = "stopped",
					    [WAIT_SLEEP] = "sleep",
					    [WAIT_LOCK] = "lock",
					    [WAIT_GIL] = "GIL",
					    [WAIT_WORLD] = "stop-the-world",
					    [WAIT_IO] = "I/O",
					    [WAIT_CHILD] = "child process",
					    [WAIT_KERNEL] = "in the kernel",
					    [WAIT_OTHER] = "system call",
					    [WAIT_UNKNOWN] = "off the CPU"};
	const char *name = task__syscall_name(syscall);

	if (reason != WAIT_IO && reason != WAIT_OTHER)
		snprintf(out, size, "[%s]", words[reason]);
	else if (name)
		snprintf(out, size, "[%s: %s]", words[reason], name);
	else if (syscall >= SYSCALL_NUMBERS)
		snprintf(out, size, "[%s: unknown]", words[reason]);
	else
		snprintf(out, size, "[%s: %lld]", words[reason], (long long)syscall);
}
