/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Batches of segments over process_vm_readv. The kernel copies page by page and stops at the first page that
 * it cannot get, so the byte count of a call tells which segment faulted: all before it are whole, it
 * has the rest, and the ones after it have not been tried yet. The next call goes on behind it.
 * Nothing is allocated; the iovec arrays live on the stack.
 */
#include "os/remote.h"

#include "base/util.h"
#include "os/proc.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#define TRIES 4 /* threads that a read goes by, one after the other as they end */

static bool is_living(pid_t tid)
{
	struct proc_stat stat;

	return !proc__stat(tid, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/* One that is held up while it exits has none. */
static bool has_memory(pid_t tid)
{
	uint64_t id;

	return proc__exec_id(tid, &id) != -ESRCH;
}

/* A thread that has exited has no memory, though its process lives on. False: there is no other one. */
static bool choose_thread(struct remote *remote)
{
	struct proc_tasks tasks;
	pid_t found = 0;

	if (proc__tasks(remote->process, &tasks))
		return false;
	for (size_t i = 0; i < tasks.tids.len && !found; i++)
		if (tasks.tids.items[i] != remote->pid && is_living(tasks.tids.items[i]) &&
		    has_memory(tasks.tids.items[i]))
			found = tasks.tids.items[i];
	vec__free(&tasks.tids);
	if (found)
		remote->pid = found;
	return found;
}

void remote__init(struct remote *remote, pid_t pid)
{
	*remote = (struct remote){.process = pid, .pid = pid};
	if (!is_living(pid))
		choose_thread(remote);
}

static void fill_vectors(const struct remote_segment *segments, size_t count, struct iovec *local,
			 struct iovec *far)
{
	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){segments[i].dest, segments[i].len};
		far[i] = (struct iovec){(void *)(uintptr_t)segments[i].addr, segments[i].len};
	}
}

/*
 * Share out the bytes of one call over its segments. Returns how many segments are done with: the whole ones
 * and the one that came short, if any.
 */
static size_t credit(struct remote *remote, struct remote_segment *segments, size_t count, size_t bytes)
{
	remote->stats.bytes += bytes;
	for (size_t i = 0; i < count; i++) {
		segments[i].got = min_u64(bytes, segments[i].len);
		bytes -= segments[i].got;
		if (segments[i].got < segments[i].len) {
			remote->stats.faults++;
			return i + 1;
		}
	}
	return count;
}

/* Bytes or -errno. */
static ssize_t call(struct remote *remote, const struct iovec *local, const struct iovec *far, size_t count)
{
	for (int i = 0; i < TRIES; i++) {
		ssize_t bytes = process_vm_readv(remote->pid, local, count, far, count, 0);
		int err = bytes < 0 ? -errno : 0;

		remote->stats.calls++;
		if (err != -ESRCH)
			return err ?: bytes;
		if (!choose_thread(remote))
			break;
	}
	return -ESRCH;
}

/* One window of at most IOV_MAX segments. */
static int read_window(struct remote *remote, struct remote_segment *segments, size_t count)
{
	struct iovec local[IOV_MAX], far[IOV_MAX];
	size_t done = 0;

	fill_vectors(segments, count, local, far);
	while (done < count) {
		ssize_t bytes = call(remote, local + done, far + done, count - done);

		/* EFAULT: not even the first byte of the first segment that has any. */
		if (bytes < 0 && bytes != -EFAULT)
			return (int)bytes;
		done += credit(remote, segments + done, count - done, bytes < 0 ? 0 : (size_t)bytes);
	}
	return 0;
}

int remote__read_batch(struct remote *remote, struct remote_segment *segments, size_t count)
{
	remote->stats.segments += count;
	for (size_t i = 0; i < count; i++)
		segments[i].got = 0;

	for (size_t i = 0; i < count; i += IOV_MAX) {
		int err = read_window(remote, segments + i, min_u64(count - i, IOV_MAX));

		if (err)
			return err;
	}
	return 0;
}

int remote__read(struct remote *remote, py_addr addr, void *dest, size_t len)
{
	struct iovec local = {dest, len}, far = {(void *)(uintptr_t)addr, len};
	ssize_t bytes = call(remote, &local, &far, 1);
	int err = bytes < 0 ? (int)bytes : 0;

	remote->stats.segments++;
	if (!err) {
		remote->stats.bytes += bytes;
		if ((size_t)bytes < len)
			err = -EFAULT;
	}
	if (err == -EFAULT)
		remote->stats.faults++;
	return err;
}
