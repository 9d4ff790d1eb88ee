/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading another process: a batch of segments in one process_vm_readv. Short reads are results, not errors:
 * each segment says how many bytes came. Never writes. Never stops the target.
 */
#pragma once

#include "base/vec.h"

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef uint64_t py_addr; /* an address in a target: never a pointer of ours */

struct remote_segment {
	py_addr addr;
	void *dest;   /* len bytes, owned by the caller */
	size_t len;
	size_t got;   /* out: bytes read, from the front */
};

struct remote_stats {
	uint64_t calls;    /* process_vm_readv calls */
	uint64_t segments;
	uint64_t bytes;
	uint64_t faults;   /* segments that came short */
};

static inline void remote_stats__add(struct remote_stats *sum, const struct remote_stats *part)
{
	sum->calls += part->calls;
	sum->segments += part->segments;
	sum->bytes += part->bytes;
	sum->faults += part->faults;
}

struct remote {
	pid_t process;
	pid_t pid; /* the thread through which it is read: another one when the main thread has exited */
	struct remote_stats stats;
};

/* If its main thread has exited, a thread that lives is looked for now and whenever a read finds none. */
void remote__init(struct remote *remote, pid_t pid);

/*
 * Read all segments with as few calls as can be: one for up to IOV_MAX segments if nothing faults; a segment
 * that comes short is skipped and the rest go on in a further call. 0 when the process could be read at all
 * (look at `got`), -ESRCH when it is gone, -EPERM when not permitted.
 */
int remote__read_batch(struct remote *remote, struct remote_segment *segments, size_t count);

/* One segment, whole or nothing. 0, -EFAULT when short, else as above. */
int remote__read(struct remote *remote, py_addr addr, void *dest, size_t len);
