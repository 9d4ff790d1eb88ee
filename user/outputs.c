/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See outputs.h.
 */
#include "outputs.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *host(void)
{
	static char name[HOST_NAME_MAX + 1];

	if (!*name)
		gethostname(name, sizeof(name) - 1);
	return name;
}

void outputs__facts(struct name_facts *facts, pid_t pid)
{
	*facts = (struct name_facts){.pid = pid, .time_s = (uint64_t)time(NULL), .host = host()};
}

static bool is_record(const struct outputs *outputs, size_t i)
{
	return outputs->options->outputs.items[i].writer->streams;
}

static bool is_replay(const struct outputs *outputs, size_t i)
{
	return outputs->options->outputs.items[i].writer->replays;
}

static struct output *output_of(const struct outputs *outputs, size_t i)
{
	return is_record(outputs, i)   ? &outputs->records[i].output
	       : is_replay(outputs, i) ? &outputs->replays[i].output
				       : &outputs->items[i];
}

static void close_one(struct outputs *outputs, size_t i)
{
	if (is_record(outputs, i))
		record_output__close(&outputs->records[i]);
	else if (is_replay(outputs, i))
		replay__close(&outputs->replays[i]);
	else
		output__close(&outputs->items[i]);
}

static const char *reason(int err)
{
	return err == -ENOTSUP ? "it is no text, and a terminal shows nothing else: name a file, or pipe it on"
			       : strerror(-err);
}

static int open_one(struct outputs *outputs, const struct name_facts *facts)
{
	size_t i = outputs->open;
	const struct output_option *wanted = &outputs->options->outputs.items[i];
	char *name = outputs->names[i] = name__expand(wanted->path, facts);
	int err;

	if (!name)
		return -ENOMEM;
	err = is_record(outputs, i)
		      ? record_output__open(&outputs->records[i], name, &outputs->options->rotation)
	      : is_replay(outputs, i)
		      ? replay__open(&outputs->replays[i], name, wanted->writer, outputs->options->group)
		      : output__open(&outputs->items[i], name, wanted->writer);
	if (err)
		log_err("cannot write %s: %s", log_shown(name), reason(err));
	else if (outputs__have(outputs, output_of(outputs, i)))
		err = -EEXIST;
	if (err == -EEXIST)
		close_one(outputs, i);
	return err;
}

bool outputs__have(const struct outputs *outputs, const struct output *other)
{
	for (size_t i = 0; i < outputs->open; i++)
		if (output__is_same(output_of(outputs, i), other)) {
			log_err("cannot write %s: it is another output, too", log_shown(other->path));
			return true;
		}
	return false;
}

bool outputs__replace(const struct outputs *outputs, const char *file)
{
	struct stat read, there;

	for (size_t i = 0; i < outputs->open; i++) {
		const char *path = output_of(outputs, i)->final_path;

		if (path && !stat(path, &there) && !stat(file, &read) && there.st_dev == read.st_dev &&
		    there.st_ino == read.st_ino) {
			log_err("cannot write %s: it is what is read", log_shown(path));
			return true;
		}
	}
	return false;
}

int outputs__open(struct outputs *outputs, const struct options *options, const struct name_facts *facts)
{
	size_t count = options->outputs.len;
	int err = 0;

	*outputs = (struct outputs){.options = options};
	outputs->names = calloc(count + 1, sizeof(*outputs->names));
	outputs->items = calloc(count + 1, sizeof(*outputs->items));
	outputs->records = calloc(count + 1, sizeof(*outputs->records));
	outputs->replays = calloc(count + 1, sizeof(*outputs->replays));
	if (!outputs->names || !outputs->items || !outputs->records || !outputs->replays)
		return -ENOMEM;
	for (; outputs->open < count && !err; outputs->open += !err)
		err = open_one(outputs, facts);
	return err;
}

bool outputs__record(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->open; i++)
		if (is_record(outputs, i) || is_replay(outputs, i))
			return true;
	return false;
}

bool outputs__want_profile(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->open; i++)
		if (!is_record(outputs, i) && !is_replay(outputs, i))
			return true;
	return false;
}

static int start_one(struct outputs *outputs, size_t i, struct recorder_config *config, struct sink **sink)
{
	int err;

	if (is_replay(outputs, i))
		return outputs->settled ? replay__start_settled(&outputs->replays[i], config->profile, sink)
					: replay__start(&outputs->replays[i], config, sink);
	err = record_output__start(&outputs->records[i], config);
	if (!err)
		*sink = recorder__sink(outputs->records[i].recorder);
	return err;
}

int outputs__start(struct outputs *outputs, const struct profile *profile, struct record_apart apart,
		   struct sink **sinks)
{
	int err = 0;

	*sinks = NULL;
	for (size_t i = 0; i < outputs->open && !err; i++) {
		struct recorder_config config = {
			.profile = profile, .host = outputs->host ?: host(), .apart = apart};
		struct sink *sink;

		if (!is_record(outputs, i) && !is_replay(outputs, i))
			continue;
		err = start_one(outputs, i, &config, &sink);
		if (err)
			break;
		sink->next = *sinks;
		*sinks = sink;
	}
	return err;
}

static int write_one(struct outputs *outputs, size_t i, const struct profile *profile, bool last)
{
	struct output *output = output_of(outputs, i);
	enum group_by group = outputs->options->group;
	int err = is_record(outputs, i)	  ? record_output__end(&outputs->records[i])
		  : is_replay(outputs, i) ? replay__write(&outputs->replays[i], last)
					  : output__write(output, profile, group);

	if (err == -EPIPE && output->fd == STDOUT_FILENO)
		return 0; /* the reader has seen enough */
	if (err && !is_record(outputs, i))
		log_err("cannot write %s: %s; no profile is left there", log_shown(output->path),
			strerror(-err));
	return err;
}

int outputs__write(struct outputs *outputs, const struct profile *profile, bool snapshot)
{
	int first = 0;

	for (size_t i = 0; i < outputs->open; i++) {
		int err = 0;

		if (!snapshot || (!is_record(outputs, i) && output_of(outputs, i)->final_path))
			err = write_one(outputs, i, profile, !snapshot);
		first = first ?: err;
	}
	return first;
}

bool outputs__take_snapshots(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->open; i++)
		if (output_of(outputs, i)->final_path)
			return true;
	return false;
}

static void tell_record(const struct record_output *record)
{
	const char *wrote = recorder__error(record->recorder) ? "wrote a part of" : "wrote";

	if (record->written.len > 1)
		log_info("%s %s, the last of %zu files%s", wrote, log_shown(record->last),
			 record->written.len,
			 record->removed ? ", of which the first are gone by --keep" : "");
	else if (record->last)
		log_info("%s %s%s", wrote, log_shown(record->last),
			 record->output.replaces ? ", in place of the file that was there" : "");
}

void outputs__tell(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->open; i++) {
		const struct output *output = output_of(outputs, i);

		if (output->fd == STDOUT_FILENO)
			continue;
		if (is_record(outputs, i))
			tell_record(&outputs->records[i]);
		else if (output->written)
			log_info("wrote %s%s", log_shown(output->path),
				 output->replaces ? ", in place of the file that was there" : "");
	}
}

void outputs__unlink_temporary(const struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->open; i++)
		if (output_of(outputs, i)->tmp_path)
			unlink(output_of(outputs, i)->tmp_path);
}

void outputs__close(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->open; i++)
		close_one(outputs, i);
	for (size_t i = 0; outputs->names && i < outputs->options->outputs.len; i++)
		free(outputs->names[i]);
	free(outputs->names);
	free(outputs->items);
	free(outputs->records);
	free(outputs->replays);
	*outputs = (struct outputs){.options = outputs->options};
}
