/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See container_names.h. Here: what the files say; container_files.c: where they are.
 */
#include "os/container_names.h"

#include "base/util.h"
#include "os/container.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX      32
#define NAMES_MAX      65536
#define USER_NAMES_MAX 256 /* of one user */
#define TEXT_MAX       512 /* of an id or a name */

static void free_name(struct container_name *name)
{
	free(name->id);
	free(name->name);
	free(name->cgroup);
}

void container_names__free(struct container_names *names)
{
	for (size_t i = 0; i < names->items.len; i++)
		free_name(&names->items.items[i]);
	vec__free(&names->items);
}

static bool root_has(const struct container_names *names, const char *id)
{
	for (size_t i = 0; i < names->items.len; i++)
		if (!names->items.items[i].owner && !strcmp(names->items.items[i].id, id))
			return true;
	return false;
}

void container_names__settle(struct container_names *names)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->items.len; i++) {
		struct container_name *name = &names->items.items[i];

		if (name->owner && root_has(names, name->id)) {
			free_name(name);
			*name = (struct container_name){.owner = name->owner};
		}
	}
	for (size_t i = 0; i < names->items.len; i++)
		if (names->items.items[i].id)
			names->items.items[kept++] = names->items.items[i];
	names->items.len = kept;
}

const struct container_name *container_names__of_id(const struct container_names *names, const char *id)
{
	for (size_t i = 0; i < names->items.len; i++)
		if (names->items.items[i].name && !strcmp(names->items.items[i].id, id))
			return &names->items.items[i];
	return NULL;
}

bool container_name__is(const struct container_name *name, const char *text)
{
	size_t len, end = strlen(text);

	if (!end || !name->name)
		return false;
	len = strlen(name->name);
	return len >= end && !strcmp(name->name + len - end, text) &&
	       (len == end || name->name[len - end - 1] == '/');
}

/* --- values --- */

/* NULL: there is none, or it is no text that could be one of ours. */
static const char *text_of(struct json_object *value)
{
	const char *text =
		json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
	size_t len = text ? json_object_get_string_len(value) : 0;

	return len && len < TEXT_MAX && strlen(text) == len ? text : NULL;
}

/* By its name in an object; NULL. */
static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	return json_object_is_type(object, json_type_object) &&
			       json_object_object_get_ex(object, name, &value)
		       ? value
		       : NULL;
}

static int64_t number_of(struct json_object *value)
{
	return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;
}

static pid_t pid_of(struct json_object *value)
{
	int64_t pid = number_of(value);

	return pid > 0 && pid <= INT_MAX ? pid : 0;
}

/* Copies all. */
static int add(struct container_names *names, struct container_name name)
{
	struct container_name copy = {
		.from = name.from, .owner = names->owner, .init = name.init, .start_ticks = name.start_ticks};

	if (!name.id || strlen(name.id) >= CONTAINER_ID_BYTES || names->items.len >= names->most)
		return 0;
	copy.id = strdup(name.id);
	copy.name = name.name ? strdup(name.name) : NULL;
	copy.cgroup = name.cgroup ? strdup(name.cgroup) : NULL;
	if (copy.id && !copy.name == !name.name && !copy.cgroup == !name.cgroup &&
	    !vec__push(&names->items, copy))
		return 0;
	free_name(&copy);
	return -ENOMEM;
}

/* "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT", whose parts have no '_', as "NAMESPACE/POD/CONTAINER". */
static int add_named(struct container_names *names, const char *id, const char *name, const char *from)
{
	char joined[3 * TEXT_MAX], parts[TEXT_MAX], *rest = parts, *part[5];
	size_t count = 0;

	snprintf(parts, sizeof(parts), "%s", name);
	while (count < 5 && (part[count] = strsep(&rest, "_")))
		count++;
	if (count == 5 && !strcmp(part[0], "k8s")) {
		snprintf(joined, sizeof(joined), "%s/%s/%s", part[3], part[2], part[1]);
		name = joined;
	}
	return add(names, (struct container_name){.id = (char *)id, .name = (char *)name, .from = from});
}

/* --- files --- */

static int take_docker(struct container_names *names, struct json_object *root)
{
	const char *id = text_of(member(root, "ID")), *name = text_of(member(root, "Name"));

	return id && name ? add_named(names, id, name + (*name == '/'), "Docker") : 0;
}

static int take_storage(struct container_names *names, struct json_object *root)
{
	size_t count = json_object_is_type(root, json_type_array) ? json_object_array_length(root) : 0;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct json_object *item = json_object_array_get_idx(root, i), *list = member(item, "names");
		const char *id = text_of(member(item, "id"));
		size_t given =
			json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

		for (size_t k = 0; id && k < given && !err; k++) {
			const char *name = text_of(json_object_array_get_idx(list, k));

			err = name ? add_named(names, id, name, "Podman or CRI-O") : 0;
		}
	}
	return err;
}

/* A path, and not that of the root, where it has none of its own. */
static bool is_cgroup(const char *path)
{
	return path && path[0] == '/' && path[1];
}

static int take_containerd(struct container_names *names, struct json_object *root, const char *id)
{
	struct json_object *notes = member(root, "annotations");
	const char *name = text_of(member(notes, "io.kubernetes.cri.container-name"));
	const char *pod = text_of(member(notes, "io.kubernetes.cri.sandbox-name"));
	const char *space = text_of(member(notes, "io.kubernetes.cri.sandbox-namespace"));
	const char *cgroup = text_of(member(member(root, "linux"), "cgroupsPath"));
	struct container_name found = {.id = (char *)id, .from = "containerd"};
	char joined[3 * TEXT_MAX];

	if (name && pod && space) {
		snprintf(joined, sizeof(joined), "%s/%s/%s", space, pod, name);
		found.name = joined;
	} else {
		found.name = (char *)(name ?: text_of(member(notes, "nerdctl/name")));
	}
	if (is_cgroup(cgroup) && !container__is_id(id, strlen(id)))
		found.cgroup = (char *)cgroup;
	return found.name || found.cgroup ? add(names, found) : 0;
}

static int take_runc(struct container_names *names, struct json_object *root)
{
	return add(names,
		   (struct container_name){.id = (char *)text_of(member(root, "id")),
					   .from = "runc",
					   .init = pid_of(member(root, "init_process_pid")),
					   .start_ticks = number_of(member(root, "init_process_start"))});
}

static int take_crun(struct container_names *names, struct json_object *root, const char *id)
{
	const char *path = text_of(member(root, "cgroup-path"));

	if (!is_cgroup(path))
		return 0;
	return add(names,
		   (struct container_name){.id = (char *)id,
					   .from = "crun",
					   .cgroup = (char *)path,
					   .init = pid_of(member(root, "pid")),
					   .start_ticks = number_of(member(root, "process-start-time"))});
}

/* The file is called by the name. */
static int take_nerdctl(struct container_names *names, const char *text, size_t len, const char *name)
{
	char id[CONTAINER_ID_BYTES];

	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	if (!container__is_id(text, len))
		return 0;
	memcpy(id, text, len);
	id[len] = '\0';
	return add(names, (struct container_name){.id = id, .name = (char *)name, .from = "nerdctl"});
}

const char *container_names__option(const char *words, size_t len, const char *option)
{
	size_t option_len = strlen(option);

	for (const char *at = words, *end = words + len, *next; at < end; at = next + 1) {
		next = memchr(at, '\0', end - at);
		if (!next)
			return NULL;
		if (strncmp(at, option, option_len))
			continue;
		if (at[option_len] == '=')
			return at + option_len + 1;
		if (!at[option_len])
			return memchr(next + 1, '\0', end - next - 1) ? next + 1 : NULL;
	}
	return NULL;
}

static int take_conmon(struct container_names *names, const char *words, size_t len)
{
	const char *id =
		container_names__option(words, len, "-c") ?: container_names__option(words, len, "--cid");
	const char *name =
		container_names__option(words, len, "-n") ?: container_names__option(words, len, "--name");

	if (!id || !container__is_id(id, strlen(id)) || !name || !*name || strlen(name) >= TEXT_MAX)
		return 0;
	return add_named(names, id, name, "Podman or CRI-O");
}

static int take(struct container_names *names, enum container_file kind, struct json_object *root,
		const char *directory)
{
	switch (kind) {
	case CONTAINER_FILE_DOCKER:
		return take_docker(names, root);
	case CONTAINER_FILE_STORAGE:
		return take_storage(names, root);
	case CONTAINER_FILE_CONTAINERD:
		return take_containerd(names, root, directory);
	case CONTAINER_FILE_RUNC:
		return take_runc(names, root);
	case CONTAINER_FILE_CRUN:
		return take_crun(names, root, directory);
	case CONTAINER_FILE_NERDCTL:
	case CONTAINER_FILE_CONMON:
		break;
	}
	return 0;
}

/* NULL: it is no JSON. */
static struct json_object *parse(const char *text, size_t len)
{
	struct json_tokener *tokener = len <= INT_MAX ? json_tokener_new_ex(DEPTH_MAX) : NULL;
	struct json_object *root;

	if (!tokener)
		return NULL;
	root = json_tokener_parse_ex(tokener, text, len);
	json_tokener_free(tokener);
	return root;
}

/* How many there may be in all when a file of that owner has been read. */
static size_t most_names(const struct container_names *names)
{
	size_t own = 0, len = names->items.len;

	for (size_t i = 0; names->owner && i < len; i++)
		own += names->items.items[i].owner == names->owner;
	return names->owner ? min_u64(NAMES_MAX, len + USER_NAMES_MAX - own) : NAMES_MAX;
}

int container_names__parse(struct container_names *names, enum container_file kind, const char *text,
			   size_t len, const char *directory)
{
	struct json_object *root;
	int err;

	names->most = most_names(names);
	if (kind == CONTAINER_FILE_NERDCTL)
		return take_nerdctl(names, text, len, directory);
	if (kind == CONTAINER_FILE_CONMON)
		return take_conmon(names, text, len);
	root = parse(text, len);
	err = take(names, kind, root, directory);
	json_object_put(root);
	return err;
}

char *container_names__docker_root(const char *text, size_t len)
{
	struct json_object *root = parse(text, len);
	const char *path = text_of(member(root, "data-root"));
	char *copy = path ? strdup(path) : NULL;

	json_object_put(root);
	return copy;
}
