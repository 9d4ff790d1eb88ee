/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See scope.h. By paths, not by a list of cgroups at the start: one that is made later counts, too.
 */
#include "run/scope.h"

#include "base/log.h"
#include "os/container_find.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int add(struct scope *scope, struct cgroup cgroup)
{
	int err = vec__push(&scope->cgroups, cgroup);

	if (err)
		cgroup__close(&cgroup);
	return err;
}

static void log_cgroups(const struct scope *scope)
{
	struct buf text = {0};

	for (size_t i = 0; log_enabled(LOG_DBG) && i < scope->cgroups.len; i++) {
		const struct cgroup *cgroup = &scope->cgroups.items[i];

		text.len = 0;
		buf__add_escaped(&text, cgroup->dir, NULL);
		if (!text.err)
			log_dbg("scope", "%.*s (%s)", (int)text.len, text.data,
				*cgroup->controllers ? cgroup->controllers : "version 2");
	}
	buf__free(&text);
}

static int open_cgroups(struct scope *scope, const struct cgroup_mounts *mounts, const char *const *names,
			size_t count, struct buf *reason)
{
	struct cgroup cgroup;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = cgroup__find(&cgroup, mounts, names[i], reason) ?: add(scope, cgroup);
	return err;
}

static int open_containers(struct scope *scope, const struct cgroup_mounts *mounts, const char *const *names,
			   size_t count, struct buf *reason)
{
	struct container_names known;
	struct cgroup cgroup;
	int err;

	if (!count)
		return 0;
	err = container_names__read(&known);
	if (err)
		return err;
	for (size_t i = 0; i < count && !err; i++)
		err = container__find(&cgroup, mounts, &known, names[i], reason) ?: add(scope, cgroup);
	container_names__free(&known);
	return err;
}

/* Is all that is in the cgroup in another one, too? Of two that are the same, the first is not. */
static bool is_covered(const struct scope *scope, size_t index)
{
	const struct cgroup *cgroup = &scope->cgroups.items[index];

	for (size_t i = 0; i < scope->cgroups.len; i++) {
		const struct cgroup *other = &scope->cgroups.items[i];
		struct cgroup_line line = {.path = cgroup->path, .path_len = strlen(cgroup->path)};

		if (i == index || strcmp(cgroup->controllers, other->controllers) ||
		    !cgroup_line__is_below(&line, other->path))
			continue;
		if (strcmp(cgroup->path, other->path) || i < index)
			return true;
	}
	return false;
}

static int collect_fds(struct scope *scope)
{
	int err = 0;

	scope->fds.len = 0;
	for (size_t i = 0; i < scope->cgroups.len && !err; i++)
		if (!is_covered(scope, i))
			err = vec__push(&scope->fds, scope->cgroups.items[i].fd);
	return err;
}

int scope__open(struct scope *scope, const char *const *cgroups, size_t cgroup_count,
		const char *const *containers, size_t container_count, struct buf *reason)
{
	struct cgroup_mounts mounts;
	int err;

	*scope = (struct scope){.text = malloc(CGROUP_TEXT_BYTES)};
	err = scope->text ? cgroup_mounts__read(&mounts) : -ENOMEM;
	if (err) {
		buf__addf(reason, "cannot look for cgroups: %s", strerror(-err));
		return err;
	}
	err = open_cgroups(scope, &mounts, cgroups, cgroup_count, reason)
		      ?: open_containers(scope, &mounts, containers, container_count, reason)
		      ?: collect_fds(scope);
	cgroup_mounts__free(&mounts);
	if (!err)
		log_cgroups(scope);
	return err;
}

void scope__close(struct scope *scope)
{
	for (size_t i = 0; i < scope->cgroups.len; i++)
		cgroup__close(&scope->cgroups.items[i]);
	vec__free(&scope->cgroups);
	vec__free(&scope->fds);
	free(scope->text);
	scope->text = NULL;
}

int scope__has(struct scope *scope, pid_t pid)
{
	int err = cgroup__read_process(pid, scope->text, CGROUP_TEXT_BYTES);

	for (size_t i = 0; i < scope->cgroups.len && !err; i++)
		if (cgroup__has(&scope->cgroups.items[i], scope->text))
			return 1;
	return err;
}

/* Of one of them; we ourselves do not count. */
static int add_members(struct scope *scope, const struct cgroup *cgroup, struct cgroup_members *sum)
{
	struct cgroup_members members;
	int err = cgroup__members(cgroup, &members);

	scope->unread += members.unread;
	sum->cgroups += members.cgroups;
	sum->strays += members.strays;
	err = err ?: vec__reserve(&sum->pids, members.pids.len);
	for (size_t i = 0; i < members.pids.len && !err; i++)
		if (members.pids.items[i] != getpid())
			sum->pids.items[sum->pids.len++] = members.pids.items[i];
	vec__free(&members.pids);
	return err;
}

int scope__members(struct scope *scope, struct cgroup_members *members)
{
	int err = 0;

	*members = (struct cgroup_members){};
	scope->unread = 0;
	for (size_t i = 0; i < scope->cgroups.len && !err; i++)
		if (!is_covered(scope, i))
			err = add_members(scope, &scope->cgroups.items[i], members);
	if (err)
		vec__free(&members->pids);
	return err;
}

bool scope__is_populated(struct scope *scope)
{
	struct cgroup_members members;
	bool populated;

	if (scope__members(scope, &members))
		return false;
	populated = members.pids.len;
	vec__free(&members.pids);
	return populated;
}

bool scope__refresh(struct scope *scope)
{
	bool made_anew = false;

	for (size_t i = 0; i < scope->cgroups.len; i++)
		made_anew |= cgroup__refresh(&scope->cgroups.items[i]);
	if (made_anew && collect_fds(scope))
		scope->fds.len = 0;
	return made_anew;
}
