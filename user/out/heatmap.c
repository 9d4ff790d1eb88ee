/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files with the time of each line beside its code, as one HTML file that needs nothing else: a page of
 * user/out/viewer (START there: heatmap.html) with the figures and the code as JSON in it:
 *
 *	metadata, unit	as in flamegraph.c
 *	total		weight of all samples
 *	functions	names
 *	files		the hottest first
 *	  name, self, total
 *	  note		what is to be said of its code, null: nothing
 *	  lines		line, self, total, function for each line with samples, in order; line is 0 where not
 *			known, negative if it is approximate
 *	  count		lines of the file; 0: there is no code
 *	  code		pieces of it: number of the first line, and the lines
 *	notes		text, self: samples that were executing no line
 *
 * Of large files only what is around lines with samples is there, and of all files what fits: what is left
 * out is said.
 */
#include "agg/heat.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/util.h"
#include "out/page.h"
#include "out/words.h"
#include "out/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char page[] = {
#include "heatmap_page.inc"
};

#define WHOLE_LINES 3000u	/* files of up to so many lines are shown as a whole */
#define AROUND	    25u		/* lines before and behind one with samples, of larger ones */
#define LINE_BYTES  400u	/* of a line that are shown */
#define CODE_BYTES  (10u << 20) /* of all code */
#define TAB	    8u

/* Names and figures of lines. */
static const struct view_size size = {.frame = 40, .max = 6u << 20};

/* --- code --- */

/* Lines as Python counts them: each of \n, \r\n and \r ends one. */
struct lines {
	const char *at, *end;
	const char *line;
	size_t len;
	uint32_t number; /* of `line` */
};

static bool next_line(struct lines *lines)
{
	const char *stop = lines->at;

	if (lines->at == lines->end)
		return false;
	while (stop < lines->end && *stop != '\n' && *stop != '\r')
		stop++;
	lines->line = lines->at;
	lines->len = stop - lines->at;
	lines->number++;
	if (stop < lines->end)
		stop += stop + 1 < lines->end && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1;
	lines->at = stop;
	return true;
}

static uint32_t count_lines(const struct listing *listing)
{
	struct lines lines = {.at = listing->text, .end = listing->text + listing->len};

	while (next_line(&lines))
		;
	return lines.number;
}

/* A character that a page cannot show as it is, or that would change the order of others. */
static void add_unsafe(struct buf *text, uint32_t code)
{
	if (code < 0x20)
		buf__addf(text, "\xe2\x90%c", 0x80 + code); /* U+2400, pictures of control characters */
	else if (code == 0x7f)
		buf__adds(text, "\xe2\x90\xa1");
	else
		buf__addf(text, "\xe2\x9f\xa8U+%04X\xe2\x9f\xa9", code);
}

/* For people to read: unlike names, in which nothing is ambiguous. */
static void add_line(struct buf *json, const char *line, size_t len)
{
	size_t shown = len > LINE_BYTES ? utf8_fit_bytes(line, len, LINE_BYTES) : len, column = 0;
	struct buf text = {0};

	for (size_t i = 0; i < shown;) {
		uint32_t code = 0;
		size_t bytes = utf8_decode(line + i, shown - i, &code), from = text.len;

		if (line[i] == '\t')
			buf__addf(&text, "%*s", (int)(TAB - column % TAB), "");
		else if (!bytes)
			buf__adds(&text, "\xef\xbf\xbd"); /* U+FFFD */
		else if (utf8_is_unsafe(code))
			add_unsafe(&text, code);
		else
			buf__add(&text, line + i, bytes);
		column += utf8_width(text.data + from, text.len - from);
		i += bytes ?: 1;
	}
	if (shown < len)
		buf__addf(&text, " \xe2\x80\xa6 %zu more bytes", len - shown);
	json__string(json, text.data ?: "", text.len);
	json->err = json->err ?: text.err;
	buf__free(&text);
}

/* Is a line near one with samples? *at: the first that is not far above it; lines come in order. */
static bool is_near(const struct heat_line *hot, size_t count, size_t *at, uint32_t line)
{
	while (*at < count && hot[*at].line + AROUND < line)
		(*at)++;
	return *at < count && hot[*at].line <= line + AROUND;
}

/* The pieces of a file; false: it does not fit any more. */
static bool add_code(struct buf *json, const struct listing *listing, const struct heat_line *hot,
		     size_t count, uint32_t line_count)
{
	struct lines lines = {.at = listing->text, .end = listing->text + listing->len};
	size_t at = 0, begin = json->len;
	bool inside = false;
	uint32_t pieces = 0;

	while (next_line(&lines)) {
		bool shown = line_count <= WHOLE_LINES || is_near(hot, count, &at, lines.number);

		if (shown && !inside)
			buf__addf(json, "%s[%u,[", pieces++ ? "]],\n" : "", lines.number);
		else if (shown)
			buf__adds(json, ",\n");
		if (shown)
			add_line(json, lines.line, lines.len);
		inside = shown;
		if (json->len - begin > CODE_BYTES)
			return false;
	}
	buf__adds(json, pieces ? "]]" : "");
	return true;
}

/* --- files --- */

static const char *note_of(const struct profile *profile, const struct listing *listing)
{
	if (!listing)
		return profile->listings.items.len ? "Its code was not read." : "Code is not in a recording.";
	switch (listing->state) {
	case LISTING_READ:
		return listing->changed && listing->differs
			       ? "The file was changed after the process began, and processes have different "
				 "files of "
				 "this name: the code may be another than what ran."
		       : listing->changed ? "The file was changed after the process began: the code may be "
					    "another than what ran."
		       : listing->differs ? "Processes have different files of this name: the code is that "
					    "of the first one."
					  : NULL;
	case LISTING_NO_FILE:
		return "No file: the code was made by the program, or is part of Python.";
	case LISTING_MISSING:
		return "No code: the process has no file of this name.";
	case LISTING_DENIED:
		return "No code: the user that the process runs as may not read the file.";
	case LISTING_NO_TEXT:
		return "No code: this is no text.";
	case LISTING_TOO_LARGE:
		return "No code: the file is too large.";
	case LISTING_SLOW:
		return "No code: reading the file took too long.";
	case LISTING_FAILED:
		return "No code: the file could not be read.";
	case LISTING_GONE:
		return "No code: the process ended before its files could be looked for.";
	case LISTING_NOT_READ:
		break;
	}
	return "No code: there is more in other files than is kept.";
}

static void add_note(struct buf *json, const char *note)
{
	buf__adds(json, ",\"note\":");
	if (note)
		json__string(json, note, strlen(note));
	else
		buf__adds(json, "null");
}

/* Numbers of function names, in the order in which they are met. */
struct names {
	uint32_t *number; /* by string; 0: not there yet */
	VEC(uint32_t) strings;
};

static uint32_t number_of(struct names *names, uint32_t string)
{
	if (!names->number[string] && !vec__push(&names->strings, string))
		names->number[string] = names->strings.len;
	return names->number[string] - 1;
}

static void add_numbers(struct buf *json, const struct heat_line *lines, size_t count, struct names *names)
{
	buf__adds(json, ",\"lines\":[");
	for (size_t i = 0; i < count; i++)
		buf__addf(json, "%s%s%u,%" PRIu64 ",%" PRIu64 ",%u", i ? "," : "",
			  lines[i].approximate && lines[i].line ? "-" : "", lines[i].line, lines[i].self,
			  lines[i].total, number_of(names, lines[i].function));
	buf__addc(json, ']');
}

/* *room: for code, of all files. */
static void add_file(struct buf *json, const struct profile *profile, const struct heat *heat, size_t number,
		     struct names *names, size_t *room)
{
	const struct heat_file *file = &heat->files.items[number];
	const struct heat_line *hot = &heat->lines.items[file->first_line];
	const struct listing *listing = listings__get(&profile->listings, file->name);
	uint32_t count = listing && listing->state == LISTING_READ ? count_lines(listing) : 0;
	const char *note = note_of(profile, listing);
	struct buf code = {0};

	if (count && (!add_code(&code, listing, hot, file->line_count, count) || code.len > *room)) {
		note = "No code: there is more in hotter files than fits into this page.";
		code.len = count = 0;
	}
	if (!count && !note)
		note = "No code: the file is empty now.";
	*room -= code.len;
	buf__adds(json, number ? ",\n{\"name\":" : "\n{\"name\":");
	words__json_text(json, profile->strings, file->name);
	buf__addf(json, ",\"self\":%" PRIu64 ",\"total\":%" PRIu64, file->self, file->total);
	add_note(json, note);
	add_numbers(json, hot, file->line_count, names);
	buf__addf(json, ",\"count\":%u,\"code\":[", count);
	buf__add(json, code.data ?: "", code.len);
	buf__adds(json, "]}");
	json->err = json->err ?: code.err;
	buf__free(&code);
}

static void add_files(struct buf *json, const struct profile *profile, const struct heat *heat,
		      struct names *names)
{
	size_t room = CODE_BYTES;

	buf__adds(json, ",\n\"files\":[");
	for (size_t i = 0; i < heat->files.len && !json->err; i++)
		add_file(json, profile, heat, i, names, &room);
	buf__adds(json, "],\n\"functions\":[");
	for (size_t i = 0; i < names->strings.len; i++) {
		buf__adds(json, i ? ",\n" : "");
		words__json_name(json, profile->strings,
				 &(struct frame){.function = names->strings.items[i]});
	}
	buf__addc(json, ']');
}

static void add_notes(struct buf *json, const struct profile *profile, const struct heat *heat)
{
	buf__adds(json, ",\n\"notes\":[");
	for (size_t i = 0; i < heat->notes.len; i++) {
		buf__adds(json, i ? ",\n[" : "[");
		words__json_text(json, profile->strings, heat->notes.items[i].text);
		buf__addf(json, ",%" PRIu64 "]", heat->notes.items[i].self);
	}
	buf__addc(json, ']');
}

static int add_heat(struct buf *json, const struct profile *profile, const struct view *view)
{
	struct names names = {.number = calloc(strtab__count(profile->strings), sizeof(*names.number))};
	struct heat heat;
	int err = heat__init(&heat, &view->trie, &view->frames, profile->strings)
			  ?: names.number ? 0
					  : -ENOMEM;

	if (!err) {
		buf__adds(json, "{\"metadata\":");
		words__metadata(json, profile, view);
		words__unit(json, profile);
		buf__addf(json, ",\n\"total\":%" PRIu64, profile__total(profile));
		add_files(json, profile, &heat, &names);
		add_notes(json, profile, &heat);
		buf__addc(json, '}');
		err = json->err;
	}
	heat__free(&heat);
	free(names.number);
	vec__free(&names.strings);
	return err;
}

static int write_heatmap(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct buf json = {0};
	struct view view;
	int err = view__init(&view, profile, GROUP_LINE, &size);

	err = err ?: add_heat(&json, profile, &view);
	view__free(&view);
	err = err ?: page__write(buf, page, sizeof(page), &json);
	buf__free(&json);
	return err;
}

static const char *const suffixes[] = {".heatmap.html", NULL};

const struct writer heatmap_writer = {
	.name = "heatmap",
	.suffixes = suffixes,
	.help = "the time of each line beside its code, one page for a browser",
	.shows_code = true,
	.write = write_heatmap,
};
