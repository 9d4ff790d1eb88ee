/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Control groups: one of them, where it is mounted, who is in it and in those below. What a cgroup is called
 * is its path in its hierarchy, as /proc/PID/cgroup has it: of v1 there is a hierarchy for each controller or
 * a few, of v2 one for all. Both files are read as the profiler's own cgroup namespace shows them.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cgroup_mount {
	char *dir;	   /* where it is mounted */
	char *root;	   /* the cgroup that is */
	char *controllers; /* v1: the options of its hierarchy, the controllers among them; v2: "" */
};

/* v2 first, then the hierarchy of perf_event, whose cgroups can be sampled by themselves. */
struct cgroup_mounts {
	VEC(struct cgroup_mount) items;
};

/* 0 or -errno. */
int cgroup_mounts__read(struct cgroup_mounts *mounts);
/* From the text of a mountinfo; pure. 0 or -ENOMEM. */
int cgroup_mounts__parse(struct cgroup_mounts *mounts, const char *text);
void cgroup_mounts__free(struct cgroup_mounts *mounts);

struct cgroup {
	int fd;	   /* its directory */
	char *dir; /* ... and where that is */
	char *path;
	char *controllers; /* of its mount */
	ino_t inode;	   /* one that is made later with the same name has another */
};

/*
 * By what a user wrote: a directory, or the end of a path that only one cgroup has. `reason` says what is
 * wrong with it. 0 or -errno.
 */
int cgroup__find(struct cgroup *cgroup, const struct cgroup_mounts *mounts, const char *name,
		 struct buf *reason);
/* By its path in the hierarchy of a mount. 0 or -errno. */
int cgroup__open(struct cgroup *cgroup, const struct cgroup_mount *mount, const char *path);
void cgroup__close(struct cgroup *cgroup);
/* Looks at the directory again, and opens it if it is another one of the same name: true then. */
bool cgroup__refresh(struct cgroup *cgroup);

/* A text of /proc/PID/cgroup, as long as it can be. */
#define CGROUP_TEXT_BYTES 65536
/* 0 or -errno. */
int cgroup__read_process(pid_t pid, char *text, size_t size);
/* One line of it after the other. */
struct cgroup_line {
	const char *controllers, *path; /* not ended by NUL */
	size_t controllers_len, path_len;
};
/* *at begins as the text. False: there is none any more. */
bool cgroup_line__next(const char **at, struct cgroup_line *line);
/* Is it that of the hierarchy with these mount options? */
bool cgroup_line__is_of(const struct cgroup_line *line, const char *controllers);
/* Is it that cgroup's path, or one below? */
bool cgroup_line__is_below(const struct cgroup_line *line, const char *path);
/* Its rank among the hierarchies, the best is 0: see struct cgroup_mounts. */
int cgroup_line__rank(const struct cgroup_line *line);

/* Version 2: may threads of one process be in several such? Its processes stand above them all. */
bool cgroup__is_threaded(int fd);

/* Is a process with that text in the cgroup, or in one below? */
bool cgroup__has(const struct cgroup *cgroup, const char *text);

struct cgroup_members {
	VEC(pid_t) pids;
	size_t cgroups;
	size_t unread;	  /* cgroups that could not be looked into */
	bool is_threaded; /* it is one of threads */
	size_t strays;	  /* ... and these are of processes whose main threads are elsewhere */
};
/*
 * All of them, of those below, too; cgroups that go meanwhile are left out. A process is where its main
 * thread is. 0 or -ENOMEM.
 */
int cgroup__members(const struct cgroup *cgroup, struct cgroup_members *members);
