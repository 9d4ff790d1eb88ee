/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * "State:" and "TracerPid:" of a status file tell of signals and debuggers. A frozen thread looks as one that
 * sleeps or waits for a disk, so its cgroup is asked: cgroup.events (cgroup v2), freezer.state (v1), which
 * tell of what is frozen further up, too.
 */
#include "os/halt.h"

#include "base/utf8.h"
#include "os/cgroup.h"
#include "os/proc.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- frozen cgroups --- */

/* They stay where they are. */
static const struct cgroup_mounts *mounts(void)
{
	static struct cgroup_mounts known;
	static bool looked;

	if (!looked)
		cgroup_mounts__read(&known);
	looked = true;
	return &known;
}

/* Takes the descriptor over. */
static bool file_has(int fd, const char *start)
{
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[128];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, start, strlen(start));
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	return found;
}

/* The root of all has no such file. */
static bool is_frozen(const struct cgroup *cgroup)
{
	bool unified = !*cgroup->controllers;
	int fd = openat(cgroup->fd, unified ? "cgroup.events" : "freezer.state", O_RDONLY | O_CLOEXEC);

	return file_has(fd, unified ? "frozen 1" : "FR"); /* FROZEN, or FREEZING */
}

static bool is_line_frozen(const struct cgroup_line *line)
{
	char *path = strndup(line->path, line->path_len);
	bool frozen = false;

	for (size_t i = 0; path && i < mounts()->items.len && !frozen; i++) {
		const struct cgroup_mount *mount = &mounts()->items.items[i];
		struct cgroup cgroup;

		if (!cgroup_line__is_of(line, mount->controllers) || cgroup__open(&cgroup, mount, path))
			continue;
		frozen = is_frozen(&cgroup);
		cgroup__close(&cgroup);
	}
	free(path);
	return frozen;
}

/* Only two hierarchies can freeze: that of all, and that of the freezer. */
static bool may_freeze(const struct cgroup_line *line)
{
	return !line->controllers_len || memmem(line->controllers, line->controllers_len, "freezer", 7);
}

static bool find_frozen(struct halt *out, pid_t pid)
{
	char *text = malloc(CGROUP_TEXT_BYTES);
	const char *at = text;
	struct cgroup_line line;
	bool found = false;

	if (!text || cgroup__read_process(pid, text, CGROUP_TEXT_BYTES))
		at = NULL;
	while (at && !found && cgroup_line__next(&at, &line))
		found = may_freeze(&line) && is_line_frozen(&line);
	if (found)
		snprintf(out->cgroup, sizeof(out->cgroup), "%.*s",
			 (int)utf8_fit_bytes(line.path, line.path_len, sizeof(out->cgroup) - 1), line.path);
	free(text);
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
