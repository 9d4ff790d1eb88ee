/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of one thread at this instant: does it run, and if it waits, in which system call.
 */
#pragma once

#include "base/hmap.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum task_state {
	TASK_RUNNING, /* on a CPU, or ready to be */
	TASK_WAITING,
	TASK_GONE,
	TASK_UNKNOWN, /* not permitted to look, or the kernel has neither file */
};

struct task_look {
	enum task_state state;
	int64_t syscall; /* that it waits in; -1 = in none (a page fault, a signal) or not known */
	uint64_t arg;	 /* the system call's first argument */
};

/* A thread that is looked at again and again keeps its file open. */
struct task_probe {
	int fd;	      /* -1: not open */
	bool is_stat; /* fallback: the kernel has no /proc/PID/task/TID/syscall */
	pid_t pid, tid;
};

/* 0; -ESRCH, -EMFILE, -EACCES, another -errno. */
int task_probe__open(struct task_probe *probe, pid_t pid, pid_t tid);
struct task_look task_probe__look(const struct task_probe *probe);
void task_probe__close(struct task_probe *probe);

/* The same for one look. */
struct task_look task__look(pid_t pid, pid_t tid);

/*
 * CPU time of a thread by the scheduler's account, which for one that runs is up to a tick old. 0 or -errno.
 */
int task__ran_ns(pid_t pid, pid_t tid, uint64_t *out);
/* Does a signal or a debugger keep it from running? */
bool task__is_stopped(pid_t pid, pid_t tid);

/* The name of a system call, for those that threads wait in; NULL. Static. */
const char *task__syscall_name(int64_t number);

/*
 * Thread ids of a process as its innermost pid namespace numbers them -> as this process's does, where the
 * two differ. *same: they do not, and the map is empty. 0 or -errno.
 */
int task__map_ids(pid_t pid, struct hmap *out, bool *same);

/* Let this process have as many files open as it may. */
void task__raise_file_limit(void);
