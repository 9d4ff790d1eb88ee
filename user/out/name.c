/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See name.h.
 */
#include "out/name.h"

#include "base/buf.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void add_time(struct buf *name, uint64_t time_s)
{
	time_t seconds = (time_t)time_s;
	struct tm time;
	char text[40];

	if (gmtime_r(&seconds, &time) && strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &time))
		buf__adds(name, text);
}

static void add_host(struct buf *name, const char *host)
{
	for (; *host; host++)
		buf__addc(name, *host == '/' ? '_' : *host);
}

char *name__expand(const char *pattern, const struct name_facts *facts)
{
	struct buf name = {0};

	for (const char *c = pattern; *c; c++) {
		char what = *c == '%' ? c[1] : '\0';

		if (what == 'p')
			buf__add_number(&name, (uint64_t)facts->pid);
		else if (what == 't')
			add_time(&name, facts->time_s);
		else if (what == 'h')
			add_host(&name, facts->host);
		else
			buf__addc(&name, *c);
		c += what == 'p' || what == 't' || what == 'h' || what == '%';
	}
	buf__addc(&name, '\0');
	if (!name.err)
		return name.data;
	buf__free(&name);
	return NULL;
}

/* Where the number goes: before the suffix of the last part of a path, or behind it. */
static size_t place_of_number(const char *name)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name, *dot = strrchr(last, '.');

	return dot && dot != last ? (size_t)(dot - name) : strlen(name);
}

char *name__numbered(const char *name, uint32_t number)
{
	size_t place = place_of_number(name);
	char *numbered;

	if (asprintf(&numbered, "%.*s.%04" PRIu32 "%s", (int)place, name, number, name + place) < 0)
		return NULL;
	return numbered;
}

/* The number in the name of a file; 0: it is not one of these. */
static uint32_t number_in(const char *file, const char *name)
{
	size_t place = place_of_number(name), digits;
	unsigned long number;

	if (strncmp(file, name, place) || file[place] != '.')
		return 0;
	digits = strspn(file + place + 1, "0123456789");
	if (digits < 4 || digits > 9 || strcmp(file + place + 1 + digits, name + place))
		return 0;
	number = strtoul(file + place + 1, NULL, 10);
	return (uint32_t)number;
}

uint32_t name__first_free_number(const char *name)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
	char *folder = slash ? strndup(name, (size_t)(last - name)) : strdup(".");
	DIR *dir = folder ? opendir(folder) : NULL;
	const struct dirent *entry;
	uint32_t most = 0;

	while (dir && (entry = readdir(dir))) {
		uint32_t number = number_in(entry->d_name, last);

		most = number > most ? number : most;
	}
	if (dir)
		closedir(dir);
	free(folder);
	return most + 1;
}
