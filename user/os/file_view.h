/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files as another process sees them, read by the names that it gives: absolute ones below its root, others
 * below its working directory, or "../" above it, with the rights that it has. Names are hostile, and so may
 * the file systems be: no link leads out of the folder, and no ".." out of the root; nothing but a regular
 * file of bounded size is opened, so no FIFO or device notices; and a process of our own does it, as the
 * target's user, without our capabilities, which is given up if it is kept waiting. What the target itself
 * could not read does not come out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file_view {
	int root, cwd; /* places; they stay when the process ends */
	uint64_t root_id, cwd_id;
	uid_t uid; /* as whom it accesses files */
	gid_t gid;
	gid_t *groups;
	size_t group_count;
	bool reads_all; /* it has a capability that lets it */
};

/* 0 or -errno (-ESRCH: there is no such process). */
int file_view__open(struct file_view *view, pid_t pid);
void file_view__close(struct file_view *view);
/* Do both see the same files? */
bool file_view__equal(const struct file_view *a, const struct file_view *b);

enum file_fault {
	FILE_READ,
	FILE_MISSING,
	FILE_DENIED,
	FILE_NOT_REGULAR,
	FILE_TOO_LARGE,
	FILE_SLOW,   /* it kept us waiting */
	FILE_FAILED, /* anything else */
};

struct file_read {
	const char *path; /* wanted */
	enum file_fault fault;
	char *text; /* owned by the caller then; NULL if it is empty or there is a fault */
	size_t len;
	int64_t changed_ns; /* when its contents were, or it came there, since 1970 */
	uint64_t device, inode;
};

#define FILE_READS_MAX	1000	    /* of one call */
#define FILE_BYTES_MAX	(4u << 20)  /* of one file */
#define FILES_BYTES_MAX (32u << 20) /* of one call; those that do not fit are too large, too */

#define FILES_WAIT_NS	20000000000ull /* for all that is read at a time, as a rule */

/*
 * Reads the first FILE_READS_MAX; the caller frees the texts. What has not been read by `until_ns`
 * (base/clock.h) is FILE_SLOW.
 */
void file_view__read(const struct file_view *view, struct file_read *files, size_t count, uint64_t until_ns);
