/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pid namespaces. Numbers of processes and threads are everywhere those of the namespace that this program is
 * in; one below it, as a container has it, gives numbers of its own, which its processes know each other by.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Is the /proc that is mounted here the one of this program's pid namespace, so that a number there means the
 * process that system calls mean by it? NULL, or what is wrong and would help, without a newline. Static.
 */
const char *pidns__proc_fault(void);

/* Is it one below the machine's own? */
bool pidns__is_nested(void);

/* Are processes that this one starts in another one than its own (unshare -p)? For signal handlers, too. */
bool pidns__is_other_for_children(void);

/* The number that a process, or one of its threads, has in its own namespace; 0: the same, or not known. */
pid_t pidns__inner_pid(pid_t pid);
pid_t pidns__inner_tid(pid_t pid, pid_t tid);

/* Processes that have this number in their own namespace, and another one here; at most `max` of them. */
size_t pidns__find_inner(pid_t inner, pid_t *out, size_t max);

/* "12", or "12 [7 inside]". */
#define PIDNS_TEXT 40
const char *pidns__text(char text[PIDNS_TEXT], pid_t outer, pid_t inner);
