/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /proc/PID/stat of every process, sorted by parent. /proc/PID/task/TID/children would be cheaper for one
 * process, but depends on CONFIG_PROC_CHILDREN and gives the children of one thread only.
 */
#include "os/tree.h"

#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int compare_edges(const void *a, const void *b)
{
	const struct tree_edge *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* One whose first thread is over has the state of that, and others. */
static bool is_over(const struct proc_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X') && stat->num_threads <= 1;
}

int tree__read(struct tree *tree)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	struct proc_stat stat;
	int err = 0;

	*tree = (struct tree){};
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && !proc__stat(pid, &stat) && !stat.is_kernel && !is_over(&stat))
			err = vec__push(&tree->edges, ((struct tree_edge){stat.ppid, pid}));
	}
	closedir(dir);
	if (err)
		tree__free(tree);
	else if (tree->edges.len)
		qsort(tree->edges.items, tree->edges.len, sizeof(*tree->edges.items), compare_edges);
	return err;
}

void tree__free(struct tree *tree)
{
	if (tree)
		vec__free(&tree->edges);
}

pid_t tree__last_pid(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	int pid = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*s %*s %*s %*s %d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

pid_t tree__parent(pid_t pid)
{
	struct proc_stat stat;

	/* A thread has a folder, too, which is not listed. */
	if (proc__process_of(pid) != pid || proc__stat(pid, &stat) || stat.is_kernel)
		return -ESRCH;
	return is_over(&stat) ? -ECHILD : stat.ppid;
}

size_t tree__children(const struct tree *tree, pid_t parent, size_t *first)
{
	size_t low = 0, high = tree->edges.len, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tree->edges.items[middle].parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < tree->edges.len && tree->edges.items[end].parent == parent;)
		end++;
	*first = low;
	return end - low;
}
