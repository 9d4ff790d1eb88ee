/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See cpus.h.
 */
#include "os/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* The coarse clocks go on at each tick. */
uint64_t cpus__tick_ns(void)
{
	struct timespec step;

	return clock_getres(CLOCK_MONOTONIC_COARSE, &step) ? 0 : step.tv_sec * 1000000000ull + step.tv_nsec;
}

void cpus__parse_tickless(const char *text, char *list, size_t size)
{
	snprintf(list, size, "%.*s", (int)strspn(text, "0123456789,-"), text);
}

/* Without such CPUs the file is not there, empty, or says " (null)". */
void cpus__tickless(char *list, size_t size)
{
	char text[4096];

	if (read_list("/sys/devices/system/cpu/nohz_full", text, sizeof(text)))
		text[0] = '\0';
	cpus__parse_tickless(text, list, size);
}
