/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See container.h. The forms, outermost parts left out; ID is 64 hexadecimal digits:
 *
 *	docker/ID   docker-ID.scope                        Docker
 *	libpod-ID.scope   libpod_parent/libpod-ID          Podman; libpod-conmon-ID is its monitor
 *	podUID/ID   cri-containerd-ID.scope   crio-ID.scope   X:cri-containerd:ID   Kubernetes
 *	nerdctl-ID.scope   NAMESPACE/ID                    containerd
 *	runc-NAME.scope   crun-NAME.scope                  OCI runtimes by themselves
 *	lxc.payload.NAME   lxc.payload/NAME   lxc/NAME     LXC; lxc.monitor is its monitor
 *	machine-NAME.scope   systemd-nspawn@NAME.service   systemd-nspawn; "\x2d" is a dash
 */
#include "os/container.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ID_DIGITS 64

struct part {
	const char *at;
	size_t len;
};

bool container__is_id(const char *text, size_t len)
{
	if (len != ID_DIGITS)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)text[i]) && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	return true;
}

static bool is(struct part part, const char *text)
{
	return part.len == strlen(text) && !memcmp(part.at, text, part.len);
}

static bool strip_start(struct part *part, const char *start)
{
	size_t len = strlen(start);

	if (part->len <= len || memcmp(part->at, start, len))
		return false;
	part->at += len;
	part->len -= len;
	return true;
}

static bool strip_end(struct part *part, const char *end)
{
	size_t len = strlen(end);

	if (part->len <= len || memcmp(part->at + part->len - len, end, len))
		return false;
	part->len -= len;
	return true;
}

static bool take_id(struct part part, struct container_place *place)
{
	if (!part.len || part.len >= sizeof(place->id))
		return false;
	memcpy(place->id, part.at, part.len);
	place->id[part.len] = '\0';
	return true;
}

/* As systemd escapes: "\x2d". */
static bool take_unescaped(struct part part, struct container_place *place)
{
	size_t len = 0;

	for (size_t i = 0; i < part.len; i++) {
		char digits[3] = "";
		unsigned int code;

		if (len + 1 >= sizeof(place->id))
			return false;
		if (part.len - i >= 4 && part.at[i] == '\\' && part.at[i + 1] == 'x') {
			memcpy(digits, part.at + i + 2, 2);
			if (!isxdigit((unsigned char)digits[0]) || sscanf(digits, "%2x", &code) != 1 || !code)
				return false;
			place->id[len++] = code;
			i += 3;
		} else {
			place->id[len++] = part.at[i];
		}
	}
	place->id[len] = '\0';
	return len;
}

/* "docker-ID", "ID", "PREFIX:cri-containerd:ID" */
static bool take_long_id(struct part part, struct container_place *place)
{
	struct part id = {part.at + part.len - ID_DIGITS, ID_DIGITS};
	size_t before = part.len - ID_DIGITS;

	if (part.len < ID_DIGITS || !container__is_id(id.at, id.len))
		return false;
	if (before && id.at[-1] != '-' && id.at[-1] != ':')
		return false;
	if (memmem(part.at, before, "conmon", 6))
		return false;
	return take_id(id, place);
}

static bool take_part(struct part part, struct part above, struct container_place *place)
{
	struct part rest = part;
	bool scope = strip_end(&rest, ".scope"), service = !scope && strip_end(&rest, ".service");

	if (take_long_id(rest, place))
		return true;
	if (scope && (strip_start(&rest, "runc-") || strip_start(&rest, "crun-")))
		return take_id(rest, place);
	if (scope && strip_start(&rest, "machine-"))
		return take_unescaped(rest, place);
	if (service && strip_start(&rest, "systemd-nspawn@"))
		return take_unescaped(rest, place);
	if (strip_start(&part, "lxc.payload.") || is(above, "lxc.payload") || is(above, "lxc"))
		return take_id(part, place);
	return false;
}

/* What stands before `end` and behind the slash before it. */
static struct part last_part(const char *path, size_t end)
{
	size_t start = end;

	while (start && path[start - 1] != '/')
		start--;
	return (struct part){path + start, end - start};
}

bool container__in_path(const char *path, size_t len, struct container_place *place)
{
	while (len) {
		struct part part = last_part(path, len);
		size_t start = part.at - path, above = start ? start - 1 : 0;

		if (part.len && take_part(part, last_part(path, above), place)) {
			place->start = start;
			place->end = len;
			return true;
		}
		len = above;
	}
	return false;
}

static bool is_uid(struct part part, const char *uid)
{
	if (part.len != strlen(uid))
		return false;
	for (size_t i = 0; i < part.len; i++) {
		int a = part.at[i] == '_' ? '-' : part.at[i], b = uid[i] == '_' ? '-' : uid[i];

		if (a != tolower(b))
			return false;
	}
	return true;
}

/* "podUID", "kubepods-burstable-podUID.slice", and that with ":cri-containerd:ID" behind. */
static bool is_pod(struct part part, const char *uid)
{
	const char *colon = memchr(part.at, ':', part.len), *pod;

	if (colon)
		part.len = colon - part.at;
	strip_end(&part, ".slice");
	if (strip_start(&part, "pod"))
		return is_uid(part, uid);
	pod = memmem(part.at, part.len, "-pod", 4);
	return pod && part.len > 8 && !memcmp(part.at, "kubepods", 8) &&
	       is_uid((struct part){pod + 4, part.at + part.len - pod - 4}, uid);
}

bool container__pod_in_path(const char *path, size_t len, const char *uid, size_t *end)
{
	while (*uid && len) {
		struct part part = last_part(path, len);
		size_t start = part.at - path;

		*end = len;
		if (part.len && is_pod(part, uid))
			return true;
		len = start ? start - 1 : 0;
	}
	return false;
}
