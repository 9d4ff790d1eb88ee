/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See source.h. Each file is read once.
 */
#include "os/source.h"

#include "base/clock.h"
#include "base/util.h"

#include <stdlib.h>
#include <string.h>

#define ALL_BYTES_MAX  (64u << 20)
#define FILES_MAX      4096
#define LINE_BYTES_MAX 400

void sources__init(struct sources *sources, pid_t pid)
{
	*sources = (struct sources){.pid = pid, .view = {.root = -1, .cwd = -1}};
}

void sources__free(struct sources *sources)
{
	for (size_t i = 0; i < sources->files.len; i++)
		free(sources->files.items[i].text);
	vec__free(&sources->files);
	hmap__free(&sources->index);
	file_view__close(&sources->view);
}

static bool may_look(struct sources *sources)
{
	if (!sources->looked)
		sources->known = !file_view__open(&sources->view, sources->pid);
	sources->looked = true;
	return sources->known;
}

static void load(struct sources *sources, const char *path, struct source_file *file)
{
	struct file_read read = {.path = path};

	if (!may_look(sources))
		return;
	file_view__read(&sources->view, &read, 1, now_ns() + FILES_WAIT_NS);
	/* The next one would not be better. */
	sources->known = read.fault != FILE_SLOW;
	if (read.len > ALL_BYTES_MAX - sources->bytes) {
		free(read.text);
		return;
	}
	file->text = read.text;
	file->len = read.len;
	sources->bytes += read.len;
}

static const struct source_file *find_file(struct sources *sources, uint64_t key, const char *path)
{
	const uint64_t *known = hmap__get(&sources->index, key);
	struct source_file file = {0};

	if (known)
		return &sources->files.items[*known];
	if (sources->files.len >= FILES_MAX)
		return NULL;
	/* "<string>", "<frozen importlib._bootstrap>" */
	if (*path && *path != '<')
		load(sources, path, &file);
	if (vec__push(&sources->files, file)) {
		free(file.text);
		return NULL;
	}
	hmap__set(&sources->index, key, sources->files.len - 1);
	return &sources->files.items[sources->files.len - 1];
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f' || c == '\r';
}

const char *sources__line(struct sources *sources, uint64_t key, const char *path, uint32_t line, size_t *len)
{
	const struct source_file *file = line ? find_file(sources, key, path) : NULL;
	const char *at = file ? file->text : NULL, *end = at ? at + file->len : NULL, *stop;

	for (; at && line > 1; line--) {
		at = memchr(at, '\n', end - at);
		at += !!at;
	}
	if (!at)
		return NULL;
	while (at < end && is_blank(*at))
		at++;
	stop = memchr(at, '\n', end - at) ?: end;
	stop = memchr(at, '\0', stop - at) ?: stop;
	while (stop > at && is_blank(stop[-1]))
		stop--;
	*len = min_u64(stop - at, LINE_BYTES_MAX);
	return *len ? at : NULL;
}
