/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where cgroups are mounted, paths of cgroups, and the files of container runtimes: names in them are
 * anybody's. */
#include "fuzz.h"
#include "os/cgroup.h"
#include "os/container_find.h"

static void look_at_paths(const char *text, const struct container_names *names)
{
	const char *at = text;
	struct cgroup_line line;
	char id[CONTAINER_ID_BYTES];

	while (cgroup_line__next(&at, &line)) {
		struct container_place place;
		size_t len = line.path_len, end;

		for (; container__in_path(line.path, len, &place); len = place.start)
			check(*place.id && strlen(place.id) < sizeof(place.id) && place.start < place.end &&
			      place.end <= len);
		if (container__pod_in_path(line.path, line.path_len, "12345678-90ab", &end))
			check(end <= line.path_len);
		cgroup_line__is_of(&line, "rw,memory,name=x");
	}
	if (container__of_text(text, names, id))
		check(*id && strlen(id) < sizeof(id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct container_names names = {};
	struct cgroup_mounts mounts;
	uint8_t kind;
	char *text;

	fuzz_take(&data, &len, &kind, 1);
	text = strndup((const char *)data, len);
	check(!container_names__parse(&names, kind % (CONTAINER_FILE_CONMON + 1), text, strlen(text),
				      "name"));
	for (size_t i = 0; i < names.items.len; i++)
		check(names.items.items[i].id && strlen(names.items.items[i].id) < CONTAINER_ID_BYTES);
	check(!cgroup_mounts__parse(&mounts, text));
	look_at_paths(text, &names);
	cgroup_mounts__free(&mounts);
	container_names__free(&names);
	free(text);
	return 0;
}
