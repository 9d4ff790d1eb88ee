/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a thread is off the CPU, by the system call that it is in.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum wait_reason {
	WAIT_NONE,    /* it is on the CPU */
	WAIT_READY,   /* others run in its place */
	WAIT_STOPPED, /* by a signal or a debugger */
	WAIT_SLEEP,
	WAIT_LOCK,
	WAIT_GIL,
	WAIT_WORLD, /* for the end of a stop-the-world pause */
	WAIT_IO,    /* for data, or that there be some */
	WAIT_CHILD,
	WAIT_KERNEL, /* in no system call: a page that is read in, a signal that is delivered */
	WAIT_OTHER,
	WAIT_UNKNOWN,
};

/* By its first argument, too. WAIT_SLEEP, _LOCK, _IO, _CHILD, _OTHER; of -1 WAIT_KERNEL, of less
 * WAIT_UNKNOWN. */
enum wait_reason wait_reason_of(int64_t syscall, uint64_t arg);

/* What there is to tell of the number: 0 of most reasons, and no more values than there are system calls,
 * whatever a thread calls.
 */
int64_t wait_told(enum wait_reason reason, int64_t syscall);

/* "[sleep]", "[I/O: epoll_wait]", "[system call: madvise]". */
void wait_text(enum wait_reason reason, int64_t syscall, char *out, size_t size);
