/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * "State:" and "TracerPid:" of a status file tell of signals and debuggers. A frozen thread looks as one that
 * sleeps or waits for a disk, so its cgroup is asked: cgroup.events (cgroup v2), freezer.state (v1), which
 * tell of what is frozen further up, too.
 */
#include "os/halt.h"

#include "os/proc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024

/* --- frozen cgroups --- */

/* Where a hierarchy is mounted, and what of it is. */
struct hierarchy {
	char folder[256]; /* "" if it is not */
	char root[256];
};

/* A word of a list with commas. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ',' || at[len] == '\n'))
			return true;
	return false;
}

/* Spaces and the like are written as octal numbers. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned int value;

		if (*from == '\\' && sscanf(from + 1, "%3o", &value) == 1 && strlen(from) >= 4) {
			*to = value;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* "31 23 0:28 ROOT FOLDER rw,relatime ... - TYPE SOURCE OPTIONS" */
static bool take_mount(const char *line, bool unified, struct hierarchy *out)
{
	const char *rest = strstr(line, " - ");
	char type[32], options[LINE_BYTES];

	if (!rest || sscanf(rest, " - %31s %*s %1023s", type, options) != 2 ||
	    strcmp(type, unified ? "cgroup2" : "cgroup") || (!unified && !has_word(options, "freezer")) ||
	    sscanf(line, "%*d %*d %*s %255s %255s", out->root, out->folder) != 2)
		return false;
	unescape(out->root);
	unescape(out->folder);
	return true;
}

static void find_mount(bool unified, struct hierarchy *out)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[LINE_BYTES];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = take_mount(line, unified, out);
	if (!found)
		out->folder[0] = '\0';
	if (file)
		fclose(file);
}

/* They stay where they are. */
static const struct hierarchy *hierarchy(bool unified)
{
	static struct hierarchy known[2];
	static bool looked[2];

	if (!looked[unified])
		find_mount(unified, &known[unified]);
	looked[unified] = true;
	return &known[unified];
}

static bool file_has(const char *path, const char *start)
{
	FILE *file = fopen(path, "re");
	char line[128];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, start, strlen(start));
	if (file)
		fclose(file);
	return found;
}

static bool is_frozen(const char *cgroup, bool unified)
{
	const struct hierarchy *mount = hierarchy(unified);
	size_t len = strlen(mount->root);
	char path[LINE_BYTES];

	/* The root of all has no such file. */
	if (!mount->folder[0] || !strcmp(cgroup, "/"))
		return false;
	if (len > 1 && !strncmp(cgroup, mount->root, len))
		cgroup += len;
	snprintf(path, sizeof(path), "%s%s/%s", mount->folder, cgroup,
		 unified ? "cgroup.events" : "freezer.state");
	return file_has(path, unified ? "frozen 1" : "FR"); /* FROZEN, or FREEZING */
}

/* "6:freezer:/PATH", "0::/PATH" */
static bool take_cgroup(char *line, struct halt *out)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(++controllers, ':') : NULL;
	bool unified;

	if (!path)
		return false;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	unified = !*controllers;
	if ((!unified && !has_word(controllers, "freezer")) || !is_frozen(path, unified))
		return false;
	snprintf(out->cgroup, sizeof(out->cgroup), "%s", path);
	return true;
}

static bool find_frozen(struct halt *out, pid_t pid)
{
	char path[64], line[LINE_BYTES];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = take_cgroup(line, out);
	if (file)
		fclose(file);
	return found;
}

/* --- the process --- */

/* State of one thread; 0: there is none. */
static char read_status(pid_t pid, pid_t tid, pid_t *tracer)
{
	char path[64], line[256], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &state);
		if (sscanf(line, "TracerPid: %d", tracer) == 1)
			break; /* it comes after the state */
	}
	if (file)
		fclose(file);
	return state;
}

/* A zombie with threads: only its main thread has ended. */
static char read_other(pid_t pid, pid_t *tracer)
{
	struct proc_tasks tasks;
	char state = 0;

	if (proc__tasks(pid, &tasks))
		return 0;
	for (size_t i = 0; i < tasks.tids.len && (!state || state == 'Z' || state == 'X'); i++)
		state = read_status(pid, tasks.tids.items[i], tracer);
	vec__free(&tasks.tids);
	return state;
}

void halt__look(struct halt *out, pid_t pid)
{
	char state;

	*out = (struct halt){.kind = HALT_NONE};
	state = read_status(pid, pid, &out->tracer);
	if (state == 'Z' || state == 'X')
		state = read_other(pid, &out->tracer);
	if (state == 'T')
		out->kind = HALT_STOPPED;
	else if (state == 't')
		out->kind = HALT_TRACED;
	else if (state && !strchr("RZX", state) && find_frozen(out, pid))
		out->kind = HALT_FROZEN;
}

/* --- words --- */

const char *halt__word(enum halt_kind kind)
{
	return kind == HALT_FROZEN ? "frozen" : "stopped";
}

void halt__describe_tracer(const struct halt *halt, struct buf *out)
{
	struct proc_stat stat;

	buf__addf(out, "process %d", halt->tracer);
	if (proc__stat(halt->tracer, &stat))
		return;
	buf__adds(out, " (");
	buf__add_escaped(out, stat.comm, NULL);
	buf__adds(out, ")");
}

void halt__describe(const struct halt *halt, struct buf *out)
{
	switch (halt->kind) {
	case HALT_STOPPED:
		buf__adds(out, "stopped by a signal (SIGSTOP or the like)");
		return;
	case HALT_TRACED:
		buf__adds(out, "stopped while ");
		if (halt->tracer)
			halt__describe_tracer(halt, out);
		else
			buf__adds(out, "a process that cannot be seen from here");
		buf__adds(out, " traces it");
		return;
	case HALT_FROZEN:
		buf__adds(out, "frozen with its cgroup ");
		buf__add_escaped(out, halt->cgroup, NULL);
		return;
	case HALT_NONE:
		return;
	}
}
