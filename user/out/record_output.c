/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_output.h. Numbers begin beyond those of files that are there; one that somebody else has taken
 * meanwhile is left out, so that no file is replaced. Only files of this run are removed, and none before the
 * one that it makes room for is there.
 */
#include "out/record_output.h"

#include "base/log.h"
#include "out/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_TRIED 100

/* Who reads stdout may have seen enough. */
static int complain(const struct record_output *out, int err)
{
	if (err && (err != -EPIPE || out->output.fd != STDOUT_FILENO))
		log_err("cannot write %s: %s%s", log_shown(out->file), strerror(-err),
			out->output.written ? "; what is there up to now can be read" : "");
	return err;
}

/* Its name, by its number. 0 or -ENOMEM. */
static int make_name(struct record_output *out)
{
	free(out->file);
	out->file = out->number ? name__numbered(out->name, out->number) : strdup(out->name);
	return out->file ? 0 : -ENOMEM;
}

static int open_file(struct record_output *out)
{
	return make_name(out) ?: out->number ? output__open_new(&out->output, out->file, &pbp_writer)
					     : output__open(&out->output, out->file, &pbp_writer);
}

static void remove_old(struct record_output *out)
{
	while (out->rotation.keep && out->written.len - out->removed > out->rotation.keep) {
		char *file = name__numbered(out->name, out->written.items[out->removed++]);

		if (file && unlink(file) && errno != ENOENT)
			log_warn("cannot remove %s: %s", log_shown(file), strerror(errno));
		free(file);
	}
}

int record_output__open(struct record_output *out, const char *name, const struct record_rotation *rotation)
{
	*out = (struct record_output){.name = name, .rotation = *rotation, .output.fd = -1};
	if (rotation->bytes || rotation->ns)
		out->number = name__first_free_number(name);
	return open_file(out);
}

static int take_next_name(struct record_output *out)
{
	uint32_t number = name__first_free_number(out->name);

	out->number = number > out->number ? number : out->number + 1;
	return make_name(out) ?: output__take_name(&out->output, out->file);
}

/* The file has its first bytes, and its name. */
static int note_file(struct record_output *out)
{
	free(out->last);
	out->last = strdup(out->file);
	if (!out->last || vec__push(&out->written, out->number))
		return -ENOMEM;
	remove_old(out);
	return 0;
}

static int append(void *context, const void *bytes, size_t len)
{
	struct record_output *out = context;
	bool is_first = !out->output.written;
	int err = output__append(&out->output, bytes, len);

	for (int i = 0; err == -EEXIST && out->number && i < NAMES_TRIED; i++)
		err = take_next_name(out) ?: output__append(&out->output, bytes, len);
	if (!err && is_first)
		err = note_file(out);
	return complain(out, err);
}

static int begin_next(void *context)
{
	struct record_output *out = context;
	int err = complain(out, output__finish(&out->output));

	if (err)
		return err;
	output__close(&out->output);
	out->number++;
	return complain(out, open_file(out));
}

int record_output__start(struct record_output *out, struct recorder_config *config)
{
	config->write = append;
	config->next = begin_next;
	config->context = out;
	if (out->number) {
		config->rotate_bytes = out->rotation.bytes;
		config->rotate_ns = out->rotation.ns;
	}
	return recorder__new(&out->recorder, config);
}

int record_output__end(struct record_output *out)
{
	int err = recorder__end(out->recorder);

	return err ?: complain(out, output__finish(&out->output));
}

void record_output__close(struct record_output *out)
{
	recorder__free(out->recorder);
	output__close(&out->output);
	free(out->file);
	free(out->last);
	vec__free(&out->written);
	*out = (struct record_output){.output.fd = -1};
}
