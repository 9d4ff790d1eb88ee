/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table on stdout. All text is escaped and cut to terminal columns first (struct cells); then the widths
 * of the two text columns are shared out, and the lines are printed. Numbers have fixed widths, so a row
 * never moves them.
 */
#include "out/summary.h"

#include "base/utf8.h"
#include "base/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_COLUMNS 7u /* "  61.2%" */
#define TOTAL_COLUMNS 8u
#define GAP	      2u
#define MIN_COLUMNS   12u /* of a text column, however narrow the terminal is */
#define HOT_PERCENT   10.0
#define ELLIPSIS      "\xe2\x80\xa6"
#define BOLD	      "\x1b[1m"
#define BOLD_RED      "\x1b[1;31m"
#define RESET	      "\x1b[0m"

struct text {
	char *bytes; /* escaped */
	size_t len, columns;
};

struct cells {
	struct text function, place;
};

struct table {
	const struct summary_style *style;
	const struct profile *profile;
	const struct profile_row *rows;
	struct cells *cells; /* of the shown rows */
	size_t shown, hidden;
	uint64_t hidden_self;
	unsigned int sample_columns, function_columns, place_columns;
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Keep the two ends of a name: "work.<loc…>.inner". */
static void shorten_name(struct text *text, size_t columns, struct buf *out)
{
	size_t head, tail;

	if (text->columns <= columns) {
		buf__add(out, text->bytes, text->len);
		return;
	}
	head = utf8_fit(text->bytes, text->len, columns / 2);
	tail = utf8_fit_end(text->bytes, text->len, columns - 1 - columns / 2);
	buf__add(out, text->bytes, head);
	buf__adds(out, ELLIPSIS);
	buf__add(out, text->bytes + tail, text->len - tail);
}

/* Keep the end of a path, from a slash on if one is near enough: "…/pkg/mod.py:12". */
static void shorten_path(struct text *text, size_t columns, struct buf *out)
{
	const char *from, *slash;

	if (text->columns <= columns) {
		buf__add(out, text->bytes, text->len);
		return;
	}
	from = text->bytes + utf8_fit_end(text->bytes, text->len, columns - 1);
	slash = memchr(from, '/', (size_t)(text->bytes + text->len - from));
	if (slash)
		from = slash;
	buf__adds(out, ELLIPSIS);
	buf__add(out, from, (size_t)(text->bytes + text->len - from));
}

static int set_text(struct text *text, struct buf *buf)
{
	*text = (struct text){.bytes = buf->data, .len = buf->len};
	if (buf->err)
		return buf->err;
	text->columns = utf8_width(text->bytes, text->len);
	return 0;
}

static int make_cells(struct cells *cells, const struct strtab *strings, const struct profile_row *row)
{
	const char *name = strtab__get(strings, row->function);
	struct buf function = {0}, place = {0};

	buf__add_escaped(&function, *name ? name : "[unnamed]", NULL);
	if (row->kind != FRAME_SPECIAL) {
		buf__add_escaped(&place, strtab__get(strings, row->file), NULL);
		if (row->line)
			buf__addf(&place, ":%u", row->line);
	}
	/* Both take their bytes over, so that a failure frees them, too. */
	return set_text(&cells->function, &function) | set_text(&cells->place, &place) ? -ENOMEM : 0;
}

/* Share the columns that are left to the two texts: by need, and evenly if both need more than half. */
static void share_columns(struct table *table, unsigned int function, unsigned int place)
{
	unsigned int numbers = SHARE_COLUMNS + TOTAL_COLUMNS + table->sample_columns + 2 * GAP, left, half;

	table->function_columns = function;
	table->place_columns = place;
	if (!table->style->width || numbers + function + place <= table->style->width)
		return;

	left = table->style->width > numbers ? table->style->width - numbers : 0;
	half = left / 2;
	if (place <= half)
		table->function_columns = left - place;
	else if (function <= left - half)
		table->place_columns = left - function;
	else {
		table->function_columns = left - half;
		table->place_columns = half;
	}
	table->function_columns = max_u64(table->function_columns, min_u64(function, MIN_COLUMNS));
	table->place_columns = max_u64(table->place_columns, min_u64(place, MIN_COLUMNS));
}

static unsigned int decimal_digits(uint64_t number)
{
	unsigned int digits = 1;

	while (number /= 10)
		digits++;
	return digits;
}

static void lay_out(struct table *table)
{
	uint64_t function = strlen("function"), place = strlen("file:line");
	uint64_t most = max_u64(table->rows[0].self, table->hidden_self);

	for (size_t i = 0; i < table->shown; i++) {
		function = max_u64(function, table->cells[i].function.columns);
		place = max_u64(place, table->cells[i].place.columns);
	}
	table->sample_columns = GAP + max_u64(strlen("samples"), decimal_digits(most));
	/* Names have bounds elsewhere, but a padding is an int. */
	share_columns(table, min_u64(function, UINT16_MAX), min_u64(place, UINT16_MAX));
}

/* ANSI sequences take no columns, so they stay outside the padding. */
static void paint(const struct table *table, const char *sequence, struct buf *buf)
{
	if (table->style->color)
		buf__adds(buf, sequence);
}

static void add_header(const struct table *table, struct buf *buf)
{
	paint(table, BOLD, buf);
	buf__addf(buf, "%*s%*s%*s  %-*s  %s", SHARE_COLUMNS, "self%", TOTAL_COLUMNS, "total%",
		  table->sample_columns, "samples", table->function_columns, "function", "file:line");
	paint(table, RESET, buf);
	buf__addc(buf, '\n');
}

static void add_row(const struct table *table, size_t i, struct buf *buf)
{
	const struct profile_row *row = &table->rows[i];
	struct cells *cells = &table->cells[i];
	double self = percent(row->self, table->profile->samples);
	bool hot = self >= HOT_PERCENT;
	size_t start, columns;

	paint(table, hot ? BOLD_RED : "", buf);
	buf__addf(buf, "%*.1f%%", SHARE_COLUMNS - 1, self);
	paint(table, hot ? RESET : "", buf);
	buf__addf(buf, "%*.1f%%%*llu  ", TOTAL_COLUMNS - 1, percent(row->total, table->profile->samples),
		  table->sample_columns, (unsigned long long)row->self);
	paint(table, hot ? BOLD_RED : "", buf);
	start = buf->len;
	shorten_name(&cells->function, table->function_columns, buf);
	columns = utf8_width(buf->data + start, buf->len - start);
	paint(table, hot ? RESET : "", buf);
	if (cells->place.len) {
		buf__addf(buf, "%*s", (int)(table->function_columns - columns + GAP), "");
		shorten_path(&cells->place, table->place_columns, buf);
	}
	buf__addc(buf, '\n');
}

static void add_rest(const struct table *table, struct buf *buf)
{
	buf__addf(buf, "%*.1f%%%*s%*llu  ... and %zu more\n", SHARE_COLUMNS - 1,
		  percent(table->hidden_self, table->profile->samples), TOTAL_COLUMNS, "",
		  table->sample_columns, (unsigned long long)table->hidden_self, table->hidden);
}

static int format_table(struct table *table, struct buf *buf)
{
	int err = 0;

	table->cells = calloc(table->shown, sizeof(*table->cells));
	if (!table->cells)
		return -ENOMEM;
	for (size_t i = 0; !err && i < table->shown; i++)
		err = make_cells(&table->cells[i], table->profile->strings, &table->rows[i]);
	if (!err) {
		lay_out(table);
		add_header(table, buf);
		for (size_t i = 0; i < table->shown && !buf->err; i++)
			add_row(table, i, buf);
		if (table->hidden)
			add_rest(table, buf);
		err = buf->err;
	}
	for (size_t i = 0; i < table->shown; i++) {
		free(table->cells[i].function.bytes);
		free(table->cells[i].place.bytes);
	}
	free(table->cells);
	return err;
}

int summary__format(const struct profile *profile, const struct summary_style *style, struct buf *buf)
{
	struct table table = {.style = style, .profile = profile};
	struct profile_rows rows;
	int err = profile__rows(profile, style->group, &rows);

	if (err || !rows.rows.len)
		goto out;
	table.rows = rows.rows.items;
	table.shown = style->max_rows ? min_u64(style->max_rows, rows.rows.len) : rows.rows.len;
	table.hidden = rows.rows.len - table.shown;
	for (size_t i = table.shown; i < rows.rows.len; i++)
		table.hidden_self += table.rows[i].self;
	err = format_table(&table, buf);
out:
	profile_rows__free(&rows);
	return err;
}
