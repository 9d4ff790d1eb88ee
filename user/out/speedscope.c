/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file format of speedscope (https://www.speedscope.app/file-format-schema.json), which other viewers
 * read, too: one "sampled" profile, where a sample is a distinct stack and its weight the time of all
 * samples of it. They stand in no order of time. "pybpfprof" holds the metadata; viewers leave unknown keys
 * alone.
 */
#include "base/json.h"
#include "out/words.h"
#include "out/writer.h"

#include <errno.h>
#include <string.h>

/* A browser has to hold it. */
static const struct view_size size = {
	.texts = TEXTS_IN_FRAMES, .frame = 50, .stack = 20, .stack_frame = 6, .max = 64u << 20};

/* There is no other place for what is to be said of a line. */
static void add_name(struct buf *buf, const struct strtab *strings, const struct frame *frame)
{
	struct buf name = {0};

	words__name(&name, strings, frame);
	if (frame->approximate)
		buf__adds(&name, " [line approximate]");
	json__string(buf, name.data, name.len);
	buf->err = buf->err ?: name.err;
	buf__free(&name);
}

static void add_frames(struct buf *buf, const struct view *view, const struct strtab *strings)
{
	for (size_t id = 0; id < view->frames.frames.len; id++) {
		const struct frame *frame = frame_table__get(&view->frames, (uint32_t)id);

		buf__adds(buf, id ? ",\n{\"name\":" : "\n{\"name\":");
		add_name(buf, strings, frame);
		if (frame->kind == FRAME_PYTHON) {
			buf__adds(buf, ",\"file\":");
			words__json_text(buf, strings, frame->file);
		}
		if (frame->line)
			buf__addf(buf, ",\"line\":%u", frame->line);
		buf__addc(buf, '}');
	}
}

static void add_stack(struct buf *buf, const struct view_stacks *stacks)
{
	for (uint32_t i = 0; i < stacks->depth; i++) {
		buf__addc(buf, i ? ',' : '[');
		buf__add_number(buf, stacks->path[i]);
	}
	buf__addc(buf, ']');
}

/* The stacks, or their weights. */
static int add_samples(struct buf *buf, const struct profile *profile, const struct view *view, bool weights)
{
	struct view_stacks stacks;
	const char *separator = "\n";
	int err = view_stacks__open(&stacks, view);

	while (!err && view_stacks__next(&stacks)) {
		buf__adds(buf, separator);
		if (weights)
			buf__add_number(buf, profile__ns(profile, stacks.weight));
		else
			add_stack(buf, &stacks);
		separator = ",\n";
		err = buf->err;
	}
	view_stacks__close(&stacks);
	return err;
}

static int add_file(struct buf *buf, const struct profile *profile, const struct view *view)
{
	const char *command = profile->command ?: "";
	int err;

	buf__adds(buf, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		       "\"exporter\":\"pybpfprof " PYBPFPROF_VERSION "\",\n\"name\":");
	json__string(buf, command, strlen(command));
	buf__adds(buf, ",\n\"pybpfprof\":");
	words__metadata(buf, profile, view);
	buf__adds(buf, ",\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	add_frames(buf, view, profile->strings);
	buf__addf(buf,
		  "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\"%s\",\"unit\":\"nanoseconds\",\n"
		  "\"startValue\":0,\"endValue\":",
		  profile->unit == PROFILE_TIME ? "time" : "CPU time");
	buf__add_number(buf, profile__ns(profile, profile__total(profile)));
	buf__adds(buf, ",\n\"samples\":[");
	err = add_samples(buf, profile, view, false);
	buf__adds(buf, "],\n\"weights\":[");
	if (!err)
		err = add_samples(buf, profile, view, true);
	buf__adds(buf, "]}]}\n");
	return err ?: buf->err;
}

static int write_speedscope(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct view view;
	int err = view__init(&view, profile, group, &size);

	if (!err)
		err = add_file(buf, profile, &view);
	view__free(&view);
	return err;
}

static const char *const suffixes[] = {".json", NULL};

const struct writer speedscope_writer = {
	.name = "speedscope",
	.suffixes = suffixes,
	.help = "for speedscope and the viewers that read its files",
	.write = write_speedscope,
};
