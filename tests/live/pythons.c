/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See pythons.h. A required version that is not there is a failure of the matrix test in harness.c, so that
 * no test passes for want of a Python.
 */
#include "pythons.h"

#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PYTHONS 64

const char *const PYTHONS_REQUIRED[] = {"3.13", "3.14", "3.15", "3.15-dbg", NULL};
const char *const PYTHONS_FREE_THREADED[] = {"3.13t", "3.14t", "3.15t", NULL};
const char *const PYTHONS_OLD[] = {"3.8", "3.9", "3.10", "3.11", "3.12", NULL};

static bool parse_line(struct python *python, const char *line)
{
	*python = (struct python){.minor = -1};
	if (sscanf(line, "%23[^\t]\t%15[^\t]\t%479[^\n]", python->version, python->kind, python->command) !=
	    3)
		return false;
	sscanf(python->version, "3.%d", &python->minor);
	python->debug = strstr(python->version, "-dbg") != NULL;
	python->free_threaded = strchr(python->version, 't') != NULL;
	sscanf(python->command, "chroot %255s", python->root);
	return true;
}

size_t pythons__all(const struct python **out)
{
	static struct python pythons[MAX_PYTHONS];
	static size_t count;
	const char *path = getenv("PYBPFPROF_PYTHONS");
	bool is_file = path && *path;
	char line[1024];
	FILE *list;

	*out = pythons;
	if (count)
		return count;
	list = is_file ? fopen(path, "r") : popen("scripts/test-pythons --list", "r");
	while (list && count < MAX_PYTHONS && fgets(line, sizeof(line), list))
		count += parse_line(&pythons[count], line);
	if (list)
		is_file ? fclose(list) : pclose(list);
	return count;
}

/* "3.15" is any release build of it, "3.15-dbg" any debug build, "3.15t" any free-threaded one. */
static bool is_version(const struct python *python, const char *version)
{
	size_t len = strcspn(version, "-t");

	return !strncmp(python->version, version, len) && python->version[len] == '.' &&
	       !strcmp(python->version + len + 1 + strspn(python->version + len + 1, "0123456789"),
		       version + len);
}

const struct python *pythons__find(const char *version, const char *kind)
{
	const struct python *pythons;
	size_t count = pythons__all(&pythons);

	for (size_t i = 0; i < count; i++)
		if (is_version(&pythons[i], version) && (!kind || !strcmp(pythons[i].kind, kind)))
			return &pythons[i];
	return NULL;
}

static bool is_one_of(const struct python *python, const char *const *versions)
{
	for (size_t i = 0; versions[i]; i++)
		if (is_version(python, versions[i]))
			return true;
	return false;
}

bool python__is_supported(const struct python *python)
{
	return is_one_of(python, PYTHONS_REQUIRED) || is_one_of(python, PYTHONS_FREE_THREADED) ||
	       python__is_old(python);
}

bool python__is_old(const struct python *python)
{
	return is_one_of(python, PYTHONS_OLD);
}

const char *pythons__missing(void)
{
	static char missing[128];

	missing[0] = '\0';
	for (size_t i = 0; PYTHONS_REQUIRED[i]; i++) {
		if (pythons__find(PYTHONS_REQUIRED[i], NULL))
			continue;
		snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), " %s",
			 PYTHONS_REQUIRED[i]);
	}
	return missing;
}
