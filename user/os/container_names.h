/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What runtimes say of their containers, from the files in which they keep their state: Docker, Podman,
 * CRI-O, containerd (nerdctl, Kubernetes), runc, crun; root's and those of users. A file may be anybody's.
 */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct container_name {
	char *id;
	char *name;	  /* of Kubernetes: NAMESPACE/POD/CONTAINER; NULL: it has none but its id */
	const char *from; /* whose file it was */
	uid_t owner;	  /* of the file, or of where it is; 0: root */
	/* Where the id need not be in the path of the cgroup: */
	char *cgroup;	      /* its path, or NULL: */
	pid_t init;	      /* the process that it began with, 0: not told ... */
	uint64_t start_ticks; /* ... which is another one if it has not started then */
};

struct container_names {
	VEC(struct container_name) items;
	uid_t owner; /* of the file that is parsed next */
	size_t most;
};

/* 0 or -ENOMEM. What cannot be read is left out. */
int container_names__read(struct container_names *names);
void container_names__free(struct container_names *names);

/* What users say of an id is dropped where root's files know it. */
void container_names__settle(struct container_names *names);

/* Of the id, NULL: it is not known, or has none. Borrowed. */
const struct container_name *container_names__of_id(const struct container_names *names, const char *id);
/* Does a user who writes `text` mean it? "web", "pod/web" and "shop/pod/web" are "shop/pod/web". */
bool container_name__is(const struct container_name *name, const char *text);

/*
 * Files of the runtimes, by their contents; pure. A file that is none of that kind adds nothing. 0 or
 * -ENOMEM.
 */
enum container_file {
	CONTAINER_FILE_DOCKER,	   /* config.v2.json */
	CONTAINER_FILE_STORAGE,	   /* containers.json of Podman and CRI-O */
	CONTAINER_FILE_CONTAINERD, /* config.json of a task; has no id: that of its directory */
	CONTAINER_FILE_RUNC,	   /* state.json */
	CONTAINER_FILE_CRUN,	   /* status; has no id */
	CONTAINER_FILE_NERDCTL,	   /* of a name: the id */
	CONTAINER_FILE_CONMON,	   /* no file: the command line of Podman's and CRI-O's monitor */
};
int container_names__parse(struct container_names *names, enum container_file kind, const char *text,
			   size_t len, const char *directory);
/*
 * What follows an option in a command line, each word of which is ended by NUL: "--root X", "--root=X"; NULL.
 * Borrowed.
 */
const char *container_names__option(const char *words, size_t len, const char *option);
/* Where Docker keeps its files, by its daemon.json; NULL: it does not say. The caller frees. */
char *container_names__docker_root(const char *text, size_t len);
