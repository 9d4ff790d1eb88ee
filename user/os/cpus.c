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

int cpus__online(bool *online, size_t count)
{
	char list[4096];
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC), err;
	ssize_t len = fd < 0 ? -1 : read(fd, list, sizeof(list) - 1);

	err = len < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	list[len] = '\0';
	cpus__parse(list, online, count);
	return 0;
}
