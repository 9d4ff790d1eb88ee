/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is whose parent: one pass over /proc, then as many questions as one likes. And what has come since.
 */
#pragma once

#include "base/vec.h"

#include <stddef.h>
#include <sys/types.h>

struct tree_edge {
	pid_t parent, pid;
};

struct tree {
	VEC(struct tree_edge) edges; /* by parent, then pid */
};

/*
 * 0 or -errno. Threads of the kernel and zombies are left out; processes that come or go meanwhile may be
 * missing.
 */
int tree__read(struct tree *tree);
void tree__free(struct tree *tree);

/* Children of a process: tree->edges.items[*first] and the ones behind it. Returns their number. */
size_t tree__children(const struct tree *tree, pid_t parent, size_t *first);

/*
 * The number that was given to a task last, a thread or a process: while it stays the same none has come. It
 * goes up, and begins again at its end. Cheap. 0: not known.
 */
pid_t tree__last_pid(void);
/*
 * Parent of a process; 0: it is not in our pid namespace, as for what a container runtime starts in a
 * container. -ESRCH: there is no process of that number, though there may be a thread. -ECHILD: it has ended,
 * and its parent has not waited for it.
 */
pid_t tree__parent(pid_t pid);
