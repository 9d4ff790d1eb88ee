/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON lines, for programs: one object a line, told apart by "type", in this order.
 *
 *	meta	schema (1; a reader refuses what it does not know), and the metadata (words.h)
 *	frame	id: 0, 1, 2, ...; kind: "python", "process", "thread", "container", or "note" for an
 *		annotation; function; and of a Python one file, line, first_line (null where not known)
 *		and, if it is so, "line_approximate": true
 *	stack	frames: ids, outermost first; samples, of that stack alone ("microseconds" instead, if the
 *		profile is of time), and ns, the time that they stand for
 *	end	samples, stacks, frames: how many there were, so that a file that was cut off shows
 *
 * Texts are escaped as in the other formats (buf__add_escaped), so that they are safe to print.
 */
#include "out/words.h"
#include "out/writer.h"

#include <errno.h>
#include <inttypes.h>

static const struct view_size size = {
	.texts = TEXTS_IN_FRAMES, .frame = 120, .stack = 50, .stack_frame = 6, .max = 64u << 20};

static void add_line_number(struct buf *buf, const char *name, uint32_t line)
{
	if (line)
		buf__addf(buf, ",\"%s\":%" PRIu32, name, line);
	else
		buf__addf(buf, ",\"%s\":null", name);
}

static void add_frame(struct buf *buf, const struct view *view, const struct strtab *strings, uint32_t id)
{
	static const char *const kinds[] = {[FRAME_PYTHON] = "python",
					    [FRAME_SPECIAL] = "note",
					    [FRAME_PROCESS] = "process",
					    [FRAME_THREAD] = "thread",
					    [FRAME_CONTAINER] = "container"};
	const struct frame *frame = frame_table__get(&view->frames, id);

	buf__addf(buf, "{\"type\":\"frame\",\"id\":%" PRIu32 ",\"kind\":\"%s\",\"function\":", id,
		  kinds[frame->kind]);
	words__json_name(buf, strings, frame);
	if (frame->kind == FRAME_PYTHON) {
		buf__adds(buf, ",\"file\":");
		words__json_text(buf, strings, frame->file);
		add_line_number(buf, "line", frame->line);
		add_line_number(buf, "first_line", frame->first_line);
		buf__adds(buf, frame->approximate ? ",\"line_approximate\":true" : "");
	}
	buf__adds(buf, "}\n");
}

static int add_stacks(struct buf *buf, const struct profile *profile, const struct view *view,
		      uint64_t *count)
{
	struct view_stacks stacks;
	int err = view_stacks__open(&stacks, view);

	while (!err && view_stacks__next(&stacks)) {
		buf__addf(buf, "{\"type\":\"stack\",\"%s\":", profile__unit_name(profile));
		buf__add_number(buf, profile__value(profile, stacks.weight));
		buf__adds(buf, ",\"ns\":");
		buf__add_number(buf, profile__ns(profile, stacks.weight));
		buf__adds(buf, ",\"frames\":");
		for (uint32_t i = 0; i < stacks.depth; i++) {
			buf__addc(buf, i ? ',' : '[');
			buf__add_number(buf, stacks.path[i]);
		}
		buf__adds(buf, "]}\n");
		++*count;
		err = buf->err;
	}
	view_stacks__close(&stacks);
	return err;
}

static int write_jsonl(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct view view;
	uint64_t count = 0;
	int err = view__init(&view, profile, group, &size);

	if (!err) {
		buf__adds(buf, "{\"type\":\"meta\",\"schema\":1,\"metadata\":");
		words__metadata(buf, profile, &view);
		buf__adds(buf, "}\n");
		for (size_t id = 0; id < view.frames.frames.len; id++)
			add_frame(buf, &view, profile->strings, (uint32_t)id);
		err = add_stacks(buf, profile, &view, &count);
		buf__addf(buf,
			  "{\"type\":\"end\",\"samples\":%" PRIu64 ",\"stacks\":%" PRIu64
			  ",\"frames\":%zu}\n",
			  profile->samples, count, view.frames.frames.len);
	}
	view__free(&view);
	return err ?: buf->err;
}

static const char *const suffixes[] = {".jsonl", NULL};

const struct writer jsonl_writer = {
	.name = "jsonl",
	.suffixes = suffixes,
	.help = "JSON lines, for programs; README tells the schema",
	.write = write_jsonl,
};
