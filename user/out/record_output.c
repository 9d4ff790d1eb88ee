/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_output.h. Numbers begin beyond those of files that are there, so that none is replaced; and only
 * files of this run are removed.
 */
#include "out/record_output.h"

#include "base/log.h"
#include "out/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(const struct record_output *out, int err)
{
	if (err && err != -EPIPE)
		log_err("cannot write %s: %s%s", log_shown(out->file), strerror(-err),
			out->output.written ? "; what is there up to now can be read" : "");
	return err;
}

static int open_file(struct record_output *out)
{
	free(out->file);
	out->file = out->number ? name__numbered(out->name, out->number) : strdup(out->name);
	return out->file ? output__open(&out->output, out->file, &pbp_writer) : -ENOMEM;
}

static void remove_old(const struct record_output *out)
{
	char *file;

	if (!out->rotation.keep || out->number < out->first + out->rotation.keep)
		return;
	file = name__numbered(out->name, out->number - out->rotation.keep);
	if (file && unlink(file) && errno != ENOENT)
		log_warn("cannot remove %s: %s", log_shown(file), strerror(errno));
	free(file);
}

int record_output__open(struct record_output *out, const char *name, const struct record_rotation *rotation)
{
	*out = (struct record_output){.name = name, .rotation = *rotation, .output.fd = -1};
	if (rotation->bytes || rotation->ns)
		out->first = out->number = name__first_free_number(name);
	return open_file(out);
}

static int append(void *context, const void *bytes, size_t len)
{
	struct record_output *out = context;

	return complain(out, output__append(&out->output, bytes, len));
}

static int begin_next(void *context)
{
	struct record_output *out = context;
	int err = complain(out, output__finish(&out->output));

	if (err)
		return err;
	output__close(&out->output);
	out->number++;
	remove_old(out);
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
	*out = (struct record_output){.output.fd = -1};
}
