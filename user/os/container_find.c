/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See container_find.h. The cgroups of processes tell which containers there are, the runtimes' files only
 * what they are called: so a file that is not true finds nothing that is not there.
 */
#include "os/container_find.h"

#include "os/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CANDIDATES_TOLD 5

/* One that may be meant, in the best hierarchy that has a cgroup of its own for it. */
struct candidate {
	char id[CONTAINER_ID_BYTES];
	bool whole; /* the id or name is what was asked for, not the beginning of it */
	int rank;
	const struct cgroup_mount *mount;
	char *path;
};

struct search {
	const struct cgroup_mounts *mounts;
	const struct container_names *names;
	const char *text;
	VEC(struct candidate) items;
	size_t unseen; /* of a hierarchy that is not mounted */
};

static const struct cgroup_mount *mount_of(const struct search *search, const struct cgroup_line *line)
{
	for (size_t i = 0; i < search->mounts->items.len; i++)
		if (cgroup_line__is_of(line, search->mounts->items.items[i].controllers))
			return &search->mounts->items.items[i];
	return NULL;
}

static bool is_named(const struct search *search, const char *id)
{
	for (size_t i = 0; i < search->names->items.len; i++)
		if (!strcmp(search->names->items.items[i].id, id) &&
		    container_name__is(&search->names->items.items[i], search->text))
			return true;
	return false;
}

/* Only the beginning of a long id is one; its letters are small ones, however they are written. */
static bool begins(const struct search *search, const char *id)
{
	size_t len = strlen(search->text);

	return len >= CONTAINER_ID_LEAST && !strncasecmp(id, search->text, len) &&
	       container__is_id(id, strlen(id));
}

static int add(struct search *search, const char *id, bool whole, const struct cgroup_line *line, size_t end)
{
	struct candidate candidate = {.whole = whole, .rank = cgroup_line__rank(line)};

	candidate.mount = mount_of(search, line);
	if (!candidate.mount) {
		search->unseen++;
		return 0;
	}
	snprintf(candidate.id, sizeof(candidate.id), "%s", id);
	for (size_t i = 0; i < search->items.len; i++) {
		struct candidate *known = &search->items.items[i];
		bool same = known->mount == candidate.mount && strlen(known->path) == end &&
			    !memcmp(known->path, line->path, end);

		if (strcmp(known->id, id))
			continue;
		/* Elsewhere in the same hierarchy it is another one. */
		if (same || known->rank < candidate.rank ||
		    (known->rank == candidate.rank && known->mount != candidate.mount))
			return 0;
		if (known->rank == candidate.rank)
			continue;
		free(known->path);
		*known = candidate;
		known->path = strndup(line->path, end);
		return known->path ? 0 : -ENOMEM;
	}
	candidate.path = strndup(line->path, end);
	return candidate.path ? vec__push(&search->items, candidate) : -ENOMEM;
}

/* All that this process is in, one within the other. */
static int look_at_line(struct search *search, const struct cgroup_line *line)
{
	struct container_place place;
	size_t end;
	int err = 0;

	for (end = line->path_len; !err && container__in_path(line->path, end, &place); end = place.start) {
		bool whole = !strcmp(place.id, search->text) || is_named(search, place.id);

		if (whole || begins(search, place.id))
			err = add(search, place.id, whole, line, place.end);
	}
	if (!err && container__pod_in_path(line->path, line->path_len, search->text, &end))
		err = add(search, search->text, true, line, end);
	for (size_t i = 0; !err && i < search->names->items.len; i++) {
		const struct container_name *name = &search->names->items.items[i];

		if (name->cgroup && !strcmp(name->id, search->text) &&
		    cgroup_line__is_below(line, name->cgroup))
			err = add(search, name->id, true, line, strlen(name->cgroup));
	}
	return err;
}

static int look_at_processes(struct search *search)
{
	char *text = malloc(CGROUP_TEXT_BYTES);
	struct tree tree = {};
	int err = text ? tree__read(&tree) : -ENOMEM;

	for (size_t i = 0; i < tree.edges.len && !err; i++) {
		const char *at = text;
		struct cgroup_line line;

		if (cgroup__read_process(tree.edges.items[i].pid, text, CGROUP_TEXT_BYTES))
			continue;
		while (!err && cgroup_line__next(&at, &line))
			err = look_at_line(search, &line);
	}
	tree__free(&tree);
	free(text);
	return err;
}

/* Those that are only begun like it do not count beside those that are called so. */
static void keep_whole(struct search *search)
{
	bool any = false;
	size_t kept = 0;

	for (size_t i = 0; i < search->items.len; i++)
		any |= search->items.items[i].whole;
	for (size_t i = 0; i < search->items.len; i++) {
		if (any && !search->items.items[i].whole)
			free(search->items.items[i].path);
		else
			search->items.items[kept++] = search->items.items[i];
	}
	search->items.len = kept;
}

/* --- words --- */

static void add_candidate(const struct search *search, const struct candidate *candidate, struct buf *reason)
{
	const struct container_name *name = container_names__of_id(search->names, candidate->id);

	if (name) {
		buf__add_escaped(reason, name->name, NULL);
		buf__addf(reason, " of %s, ", name->from);
	}
	buf__adds(reason, "id ");
	buf__add_escaped(reason, candidate->id, NULL);
	buf__adds(reason, ", cgroup ");
	buf__add_escaped(reason, candidate->path, NULL);
}

static void explain_many(const struct search *search, struct buf *reason)
{
	buf__addf(reason, "%zu may be meant: ", search->items.len);
	for (size_t i = 0; i < search->items.len && i < CANDIDATES_TOLD; i++) {
		buf__adds(reason, i ? "; " : "");
		add_candidate(search, &search->items.items[i], reason);
	}
	if (search->items.len > CANDIDATES_TOLD)
		buf__addf(reason, "; and %zu more", search->items.len - CANDIDATES_TOLD);
}

/* A runtime that was told to keep its files elsewhere (runc --root) may have ended. */
static void mention_cgroup(const struct search *search, struct buf *reason)
{
	struct buf ignored = {0};
	struct cgroup cgroup;

	if (!cgroup__find(&cgroup, search->mounts, search->text, &ignored) && cgroup.path[1]) {
		buf__adds(reason, "; there is a cgroup of that name, ");
		buf__add_escaped(reason, cgroup.path, NULL);
		buf__adds(reason, ": see --cgroup");
	} else {
		buf__adds(reason, "; if its runtime was told to keep its files elsewhere, see --cgroup");
	}
	cgroup__close(&cgroup);
	buf__free(&ignored);
}

static void explain_none(const struct search *search, struct buf *reason)
{
	const struct container_name *known = NULL;

	for (size_t i = 0; i < search->names->items.len && !known; i++) {
		const struct container_name *name = &search->names->items.items[i];

		if (container_name__is(name, search->text) || !strcmp(name->id, search->text) ||
		    begins(search, name->id))
			known = name;
	}
	if (search->unseen)
		buf__adds(reason, "its cgroup is in no hierarchy that is mounted here");
	else if (known)
		buf__addf(reason,
			  "%s knows it, but no process is in a cgroup of it: it does not run, or cannot be "
			  "seen "
			  "from here",
			  known->from);
	else {
		buf__adds(reason, "no process is in a container with that name or id");
		mention_cgroup(search, reason);
	}
}

static void explain(const struct search *search, int err, struct buf *reason)
{
	buf__adds(reason, "container ");
	buf__add_escaped(reason, search->text, NULL);
	buf__adds(reason, ": ");
	if (err)
		buf__adds(reason, strerror(-err));
	else if (search->items.len)
		explain_many(search, reason);
	else
		explain_none(search, reason);
}

int container__find(struct cgroup *cgroup, const struct cgroup_mounts *mounts,
		    const struct container_names *names, const char *text, struct buf *reason)
{
	struct search search = {.mounts = mounts, .names = names, .text = text};
	int err = look_at_processes(&search);

	*cgroup = (struct cgroup){.fd = -1};
	keep_whole(&search);
	if (!err && search.items.len == 1)
		err = cgroup__open(cgroup, search.items.items[0].mount, search.items.items[0].path);
	if (err || search.items.len != 1)
		explain(&search, err, reason);
	err = err ?: search.items.len == 1 ? err : -ENOENT;
	for (size_t i = 0; i < search.items.len; i++)
		free(search.items.items[i].path);
	vec__free(&search.items);
	return err;
}

/* --- of a process --- */

static bool id_of_line(const struct cgroup_line *line, const struct container_names *names,
		       char id[CONTAINER_ID_BYTES])
{
	struct container_place place;
	size_t longest = 0;

	if (container__in_path(line->path, line->path_len, &place)) {
		snprintf(id, CONTAINER_ID_BYTES, "%s", place.id);
		longest = place.end;
	}
	for (size_t i = 0; i < names->items.len; i++) {
		const char *cgroup = names->items.items[i].cgroup;

		if (!cgroup || !cgroup_line__is_below(line, cgroup) || strlen(cgroup) <= longest)
			continue;
		snprintf(id, CONTAINER_ID_BYTES, "%s", names->items.items[i].id);
		longest = strlen(cgroup);
	}
	return longest;
}

bool container__of_text(const char *text, const struct container_names *names, char id[CONTAINER_ID_BYTES])
{
	struct cgroup_line line;
	int best = INT_MAX;

	while (cgroup_line__next(&text, &line))
		if (cgroup_line__rank(&line) < best && id_of_line(&line, names, id))
			best = cgroup_line__rank(&line);
	return best != INT_MAX;
}
