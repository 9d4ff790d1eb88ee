/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stopping a thread for some microseconds (ptrace), for those who ask for it. A thread that is stopped when
 * this process dies is let go on by the kernel. Nothing stays attached in between, so signals of the target
 * take their usual way.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum stop_state {
	STOP_NONE,
	STOP_DONE,    /* it is stopped */
	STOP_PENDING, /* it was told to, and has not yet; it is let go on as soon as it does */
};

struct stopped_task {
	pid_t tid;
	enum stop_state state;
	int signal; /* that was on its way to it */
};

/*
 * Stop a thread; waits for a few milliseconds at most. 0: it is stopped; -EAGAIN: it does not stop now, but
 * may later: call stop__resume for it all the same; -EPERM: traced by another, or not permitted; -ESRCH: it
 * is gone.
 */
int stop__task(struct stopped_task *task, pid_t tid);
/* Let it go on. False: it has not stopped yet, call again. */
bool stop__resume(struct stopped_task *task);
