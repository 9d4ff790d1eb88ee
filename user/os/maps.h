/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /proc/PID/maps as data, grouped into images (one file mapped one or more times at one load address), and
 * opening the very file that is mapped, however it is named now.
 */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct map_entry {
	uint64_t start, end;
	uint64_t offset;      /* file offset */
	uint32_t dev_major, dev_minor;
	uint64_t inode;       /* 0 = anonymous */
	bool read, write, exec;
	/*
	 * As the kernel prints it, with \012 (its only escape) decoded and " (deleted)" left on; "" if none.
	 * Owned by struct maps.
	 */
	char *path;
};

struct maps {
	VEC(struct map_entry) entries; /* sorted by start */
};

/* Parse a whole maps text (need not be NUL-terminated). Malformed lines are skipped. 0 or -ENOMEM. Pure. */
int maps__parse(struct maps *maps, const char *text, size_t len);
/*
 * Read and parse /proc/PID/maps. 0 or -errno (-EACCES/-EPERM when not permitted; -ESRCH when gone or a kernel
 * thread: an empty file).
 */
int maps__read(struct maps *maps, pid_t pid);
void maps__free(struct maps *maps);

/*
 * Open the file behind an entry: /proc/PID/map_files/..., then /proc/PID/exe if it is the same inode, then
 * the path through /proc/PID/root, then the path itself: each only if it is a regular file and its device and
 * inode are those of the entry (map_files needs no such check). Deleted, replaced, chrooted and
 * other-namespace files work. Returns an fd (O_RDONLY|O_CLOEXEC) or -errno. Where st_dev differs from maps
 * (btrfs, overlayfs), the device of the mount in /proc/PID/mountinfo is compared; for exe an equal inode and
 * an equal printed path do too.
 */
int maps__open_file(pid_t pid, const struct map_entry *entry);
