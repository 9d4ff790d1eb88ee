/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See cpus.h.
 */
#include "os/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cpus__parse(const char *list, bool *online, size_t count)
{
	memset(online, 0, count * sizeof(*online));
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long cpu = first; cpu <= last && cpu < count; cpu++)
			online[cpu] = true;
		if (*end != ',')
			break;
		list = end + 1;
	}
}

static int read_list(const char *path, char *list, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	ssize_t len = fd < 0 ? -1 : read(fd, list, size - 1);

	err = len < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (!err)
		list[len] = '\0';
	return err;
}

int cpus__online(bool *online, size_t count)
{
	char list[4096];
	int err = read_list("/sys/devices/system/cpu/online", list, sizeof(list));

	if (!err)
		cpus__parse(list, online, count);
	return err;
}

size_t cpus__end_of(const char *list)
{
	size_t end = 0;

	while (*list >= '0' && *list <= '9') {
		char *rest;
		size_t cpu = strtoul(list, &rest, 10);

		end = cpu + 1 > end ? cpu + 1 : end;
		list = *rest == ',' || *rest == '-' ? rest + 1 : "";
	}
	return end;
}

size_t cpus__end(void)
{
	char list[4096];

	return read_list("/sys/devices/system/cpu/possible", list, sizeof(list)) ? 0 : cpus__end_of(list);
}
