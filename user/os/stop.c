/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PTRACE_SEIZE attaches without stopping, PTRACE_INTERRUPT stops, PTRACE_DETACH lets go on. A signal that
 * arrives in between stops the thread too; it is passed on when the thread is let go.
 */
#include "os/stop.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#define WAIT_NS 5000000ull
#define SPINS	20
#define NAP_NS	20000

/* Has it stopped? Notes a signal that it stopped for. */
static int take_stop(struct stopped_task *task)
{
	int status, got = waitpid(task->tid, &status, __WALL | WNOHANG);

	if (!got)
		return -EAGAIN;
	if (got < 0 || !WIFSTOPPED(status)) {
		task->state = STOP_NONE;
		return -ESRCH;
	}
	/* The stop that was asked for, or that of a stopped process, has the event in the upper bits. */
	task->signal = status >> 16 ? 0 : WSTOPSIG(status);
	task->state = STOP_DONE;
	return 0;
}

int stop__task(struct stopped_task *task, pid_t tid)
{
	unsigned long long give_up = now_ns() + WAIT_NS;
	int err;

	*task = (struct stopped_task){.tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		return -errno;
	task->state = STOP_PENDING;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0)) {
		task->state = STOP_NONE;
		return -ESRCH;
	}
	for (int i = 0; (err = take_stop(task)) == -EAGAIN && now_ns() < give_up; i++) {
		/* It may need this very CPU to get to where it stops. */
		if (i < SPINS)
			sched_yield();
		else
			nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
	return err;
}

bool stop__resume(struct stopped_task *task)
{
	if (task->state == STOP_PENDING && take_stop(task) == -EAGAIN)
		return false;
	if (task->state == STOP_DONE)
		ptrace(PTRACE_DETACH, task->tid, 0, (void *)(long)task->signal);
	task->state = STOP_NONE;
	return true;
}
