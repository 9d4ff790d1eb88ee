/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Breadth first, so the nearest come first, and within bounds: a supervisor may have thousands of
 * descendants.
 */
#include "py/hint.h"

#include "base/util.h"
#include "os/proc.h"
#include "os/tree.h"
#include "py/runtime.h"

#define MAX_VISITED 64
#define MAX_NAMED   5

struct family {
	pid_t pids[MAX_VISITED]; /* [0] is the process itself; also the queue of the search */
	size_t count;
	pid_t pythons[MAX_NAMED];
	size_t pythons_cnt;
};

static bool has_runtime(pid_t pid)
{
	struct py_runtime runtime;
	struct remote remote;
	char reason[256];
	enum py_attach_error error;

	remote__init(&remote, pid);
	error = py_runtime__find(&runtime, &remote, reason, sizeof(reason));
	py_runtime__close(&runtime);
	return error == PY_ATTACH_OK || error == PY_ATTACH_UNSUPPORTED;
}

static void add_children(struct family *family, const struct tree *tree, pid_t parent)
{
	size_t first, count = tree__children(tree, parent, &first);

	for (size_t i = 0; i < count && family->count < MAX_VISITED; i++)
		family->pids[family->count++] = tree->edges.items[first + i].pid;
}

static void search(struct family *family)
{
	struct tree tree;

	if (tree__read(&tree))
		return;
	for (size_t i = 0; i < family->count && family->pythons_cnt < MAX_NAMED; i++) {
		if (i > 0 && has_runtime(family->pids[i]))
			family->pythons[family->pythons_cnt++] = family->pids[i];
		add_children(family, &tree, family->pids[i]);
	}
	tree__free(&tree);
}

static void add_name(struct buf *out, pid_t pid)
{
	struct proc_stat stat;

	buf__addf(out, "%d", pid);
	if (proc__stat(pid, &stat))
		return;
	buf__adds(out, " (");
	buf__add_escaped(out, stat.comm, NULL);
	buf__adds(out, ")");
}

void py_hint__descendants(pid_t pid, struct buf *out)
{
	struct family family = {.pids = {pid}, .count = 1};
	bool several;

	search(&family);
	if (!family.pythons_cnt)
		return;
	several = family.pythons_cnt > 1;
	buf__adds(out, several ? "; its descendants " : "; its child ");
	for (size_t i = 0; i < family.pythons_cnt; i++) {
		if (i)
			buf__adds(out, i + 1 == family.pythons_cnt ? " and " : ", ");
		add_name(out, family.pythons[i]);
	}
	buf__adds(out, several ? " are Python: use -p " : " is Python: use -p ");
	for (size_t i = 0; i < family.pythons_cnt; i++)
		buf__addf(out, "%s%d", i ? "," : "", family.pythons[i]);
	buf__addf(out, ", or -p %d -s for all that it starts", pid);
}
