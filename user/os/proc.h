/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What /proc says about one process: identity, tasks, CPU time. Nothing about Python.
 */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	char comm[64]; /* bytes of the name as they are (newlines too), NUL-terminated */
	char state;    /* R S D T t Z X ... */
	pid_t ppid;
	uint64_t start_ticks; /* since boot, in clock ticks: with the pid, the identity of the process */
	uint64_t cpu_ns;      /* utime + stime of all threads, living and dead */
	uint32_t num_threads;
	bool is_kernel; /* a thread of the kernel */
};

/* 0 or -errno (-ESRCH when there is no such process). Parses comm with ')' and spaces inside correctly. */
int proc__stat(pid_t pid, struct proc_stat *out);

/*
 * CPU time of the process with nanosecond resolution where the kernel gives it (sum of task schedstat or
 * clock_getcpuclockid), else proc_stat.cpu_ns. 0 or -errno.
 */
int proc__cpu_ns(pid_t pid, uint64_t *out);

struct proc_tasks {
	VEC(pid_t) tids;
};
/* Thread ids of a process, sorted. 0 or -errno. Free with vec__free(&tasks->tids). */
int proc__tasks(pid_t pid, struct proc_tasks *out);

/* Name of one thread (/proc/PID/task/TID/comm), NUL-terminated and without newline. 0 or -errno. */
int proc__task_comm(pid_t pid, pid_t tid, char *out, size_t size);

/* The CPU that a thread runs on, or ran on last. -errno. */
int proc__task_cpu(pid_t pid, pid_t tid);

/* Command line with NULs turned to spaces, unescaped, truncated to size; falls back to comm. 0 or -errno. */
int proc__cmdline(pid_t pid, char *out, size_t size);

/* Path of the program, as /proc/PID/exe links to it, NUL-terminated. 0 or -errno (-ENAMETOOLONG). */
int proc__exe(pid_t pid, char *out, size_t size);

/*
 * A number for the program that one call of execve started, the same in its forks: made of what the kernel
 * told it at its start, which has random addresses in it, if they are not switched off. 0 or -errno.
 */
int proc__exec_id(pid_t pid, uint64_t *out);
/* The same, with the random bytes that each program gets in any case: for that its memory is read. */
int proc__start_id(pid_t pid, uint64_t *out);

/* Bytes of code that the process has mapped. 0 or -errno. */
int proc__code_bytes(pid_t pid, uint64_t *out);

/* Is there a process, or a thread, with that id? The cheapest way to ask: a signal that is none. */
bool proc__exists(pid_t tid);

/* The process that a thread id belongs to, 0 when there is no such thread. */
pid_t proc__process_of(pid_t tid);

/* User and group that a process accesses files as. 0 or -errno. */
int proc__file_owner(pid_t pid, uid_t *uid, gid_t *gid);

/* What this process may do. */
struct proc_rights {
	uint64_t capabilities; /* effective ones, a bit mask of CAP_* */
	bool in_user_ns;       /* not the machine's own: capabilities hold inside of it only */
	bool is_filtered;      /* a seccomp filter may refuse system calls */
	bool no_new;	       /* no_new_privs: set-user-id programs and capabilities of files give nothing */
};
/* 0 or -errno. */
int proc__own_rights(struct proc_rights *out);

/* Resident memory of this process in bytes (VmRSS of /proc/self/status). */
uint64_t proc__own_rss(void);
/* The most that it ever was (VmHWM). */
uint64_t proc__own_peak_rss(void);
/* Since a process was started, to within a hundredth of a second; 0: not known. */
uint64_t proc__age_ns(pid_t pid);
/* CPU time of this process so far (CLOCK_PROCESS_CPUTIME_ID). */
uint64_t proc__own_cpu_ns(void);
