/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which thread of the process a thread state belongs to. CPython notes the kernel's number of a thread
 * (from 3.11 on) as its own pid namespace has it, and does not learn of a fork that passes it by
 * (PyOS_AfterFork_Child was not called): then it is the parent's, and may be that of another thread in
 * another namespace. glibc always learns of it.
 */
#pragma once

#include "base/hmap.h"
#include "os/proc.h"
#include "py/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_ids {
	pid_t pid;
	struct proc_tasks tasks;
	bool same;	   /* numbers are the same inside */
	struct hmap inner; /* ... if not: those of the target's pid namespace -> ours */
	bool alone;	   /* one thread, and all thread states are of one */
};

/*
 * As the process is now. To be called after its thread states were listed: one that has no thread then has
 * ended. 0 or -errno.
 */
int thread_ids__read(struct thread_ids *ids, pid_t pid, const struct py_thread *threads, size_t count);
/* Is it a thread of the process? */
bool thread_ids__has(const struct thread_ids *ids, pid_t tid);
/* 0: it has ended, or cannot be told. *native_id: the same number as the target has it. */
pid_t thread_ids__find(const struct thread_ids *ids, struct remote *remote, const struct py_thread *thread,
		       uint64_t *native_id);
void thread_ids__free(struct thread_ids *ids);
