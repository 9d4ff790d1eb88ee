/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See containers.h. Names are read from the runtimes' files when there is one that is not known yet.
 */
#include "run/containers.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/util.h"
#include "os/cgroup.h"
#include "os/container_find.h"

#include <stdio.h>
#include <string.h>

#define SECOND	       1000000000ull
#define CONTAINERS_MAX 16384
#define NAMES_SHARE    100 /* of the time may be spent on reading names: one part in that many */

static void read_names(struct containers *containers)
{
	uint64_t start = now_ns(), end;

	if (start < containers->names_ns)
		return;
	container_names__free(&containers->names);
	container_names__read(&containers->names);
	end = now_ns();
	containers->names_ns = end + max_u64(SECOND, (end - start) * NAMES_SHARE);
}

static struct container *find(const struct containers *containers, const char *id)
{
	for (size_t i = 0; i < containers->items.len; i++)
		if (!strcmp(containers->items.items[i]->id, id))
			return containers->items.items[i];
	return NULL;
}

static void set_words(struct container *container)
{
	size_t id_len = strlen(container->id);
	bool is_long = container__is_id(container->id, id_len);
	const char *called = container->name ?: container->id;
	size_t most = !container->name && is_long ? CONTAINER_ID_SHOWN : sizeof(container->called) - 1;
	const char *behind = container->name ? container->id : is_long ? "unnamed" : "id";
	struct buf label = {0};

	snprintf(container->called, sizeof(container->called), "%.*s",
		 (int)utf8_fit_bytes(called, strlen(called), most), called);
	snprintf(container->raw_label, sizeof(container->raw_label), "%s (%.*s)", container->called,
		 (int)utf8_fit_bytes(behind, strlen(behind), CONTAINER_ID_SHOWN), behind);
	buf__add_escaped(&label, container->raw_label, NULL);
	if (!label.err)
		snprintf(container->label, sizeof(container->label), "%.*s", (int)label.len, label.data);
	buf__free(&label);
}

static void set_name(const struct containers *containers, struct container *container)
{
	const struct container_name *known = container_names__of_id(&containers->names, container->id);

	container->name = known ? strdup(known->name) : NULL;
	set_words(container);
}

static struct container *add(struct containers *containers, const char *id)
{
	struct container *container = calloc(1, sizeof(*container));

	if (!container || vec__push(&containers->items, container)) {
		free(container);
		return NULL;
	}
	snprintf(container->id, sizeof(container->id), "%s", id);
	set_name(containers, container);
	return container;
}

struct container *containers__of(struct containers *containers, pid_t pid)
{
	char id[CONTAINER_ID_BYTES];
	struct container *container;

	containers->text = containers->text ?: malloc(CGROUP_TEXT_BYTES);
	if (!containers->text || cgroup__read_process(pid, containers->text, CGROUP_TEXT_BYTES))
		return NULL;
	if (!containers->names_ns)
		read_names(containers);
	if (!container__of_text(containers->text, &containers->names, id)) {
		read_names(containers); /* some are found by their files only */
		if (!container__of_text(containers->text, &containers->names, id))
			return NULL;
	}
	container = find(containers, id);
	if (container ? container->name != NULL : containers->items.len >= CONTAINERS_MAX)
		return container;
	if (!container_names__of_id(&containers->names, id))
		read_names(containers);
	if (!container)
		return add(containers, id);
	set_name(containers, container); /* of one that was just started it may have come since */
	return container;
}

void containers__free(struct containers *containers)
{
	for (size_t i = 0; i < containers->items.len; i++) {
		free(containers->items.items[i]->name);
		free(containers->items.items[i]);
	}
	vec__free(&containers->items);
	container_names__free(&containers->names);
	free(containers->text);
	containers->text = NULL;
}
