/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /proc/PID/auxv is an array of {type, value} words, ended by AT_NULL (getauxval(3)). Needs the rights that
 * maps needs.
 */
#include "os/auxv.h"

#include "base/util.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int auxv__program_headers(pid_t pid, uint64_t *addr)
{
	Elf64_auxv_t entries[64];
	char path[64];
	ssize_t got;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	got = read(fd, entries, sizeof(entries));
	err = got < 0 ? -errno : -ENOENT;
	close(fd);
	for (ssize_t i = 0; got > 0 && i < got / (ssize_t)sizeof(entries[0]); i++) {
		if (entries[i].a_type == AT_PHDR) {
			*addr = entries[i].a_un.a_val;
			return 0;
		}
	}
	return err;
}
