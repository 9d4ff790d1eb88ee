/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See thread_ids.h.
 */
#include "run/thread_ids.h"

#include "os/pidns.h"
#include "os/task.h"
#include "py/threads.h"

#include <stdlib.h>

static bool are_of_one(const struct py_thread *threads, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (threads[i].thread_id != threads[0].thread_id)
			return false;
	return count;
}

int thread_ids__read(struct thread_ids *ids, pid_t pid, const struct py_thread *threads, size_t count)
{
	int err;

	ids->pid = pid;
	vec__free(&ids->tasks.tids);
	err = proc__tasks(pid, &ids->tasks) ?: task__map_ids(pid, &ids->inner, &ids->same);
	ids->alone = ids->tasks.tids.len == 1 && are_of_one(threads, count);
	return err;
}

static int compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

bool thread_ids__has(const struct thread_ids *ids, pid_t tid)
{
	return ids->tasks.tids.len &&
	       bsearch(&tid, ids->tasks.tids.items, ids->tasks.tids.len, sizeof(tid), compare);
}

/* As this process numbers it; 0: the process has no such thread. */
static pid_t outer(const struct thread_ids *ids, uint64_t native_id)
{
	const uint64_t *outer = ids->same ? &native_id : hmap__get(&ids->inner, native_id);

	return outer && *outer <= INT32_MAX && thread_ids__has(ids, *outer) ? (pid_t)*outer : 0;
}

pid_t thread_ids__find(const struct thread_ids *ids, struct remote *remote, const struct py_thread *thread,
		       uint64_t *native_id)
{
	uint64_t known[] = {py_threads__native_id(remote, thread->thread_id), thread->native_thread_id};
	pid_t tid = 0;

	*native_id = 0;
	for (size_t i = 0; i < 2 && !tid; i++) {
		tid = outer(ids, known[i]);
		*native_id = tid ? known[i] : 0;
	}
	/* A fork that passed glibc by, too. */
	if (!tid && ids->alone) {
		tid = ids->tasks.tids.items[0];
		*native_id = pidns__inner_pid(ids->pid) ?: ids->pid;
	}
	return tid;
}

void thread_ids__free(struct thread_ids *ids)
{
	vec__free(&ids->tasks.tids);
	hmap__free(&ids->inner);
}
