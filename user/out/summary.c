/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table on stdout. All text is escaped into cells first; then the columns of the terminal are shared out
 * and the cells cut to fit; then the lines are printed.
 */
#include "out/summary.h"

#include "base/utf8.h"
#include "base/util.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_COLUMNS 7 /* "  61.2%" */
#define TOTAL_COLUMNS 8
#define GAP	      2
#define WAIT_HEADING  "mostly" /* waited for what */
#define MIN_COLUMNS   12 /* of a text column, however narrow the terminal is */
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
	uint64_t hidden_self, hidden_waited, whole;
	bool tells_waits; /* apart from the rest, which was not waited: a lock was held */
	int value_columns, wait_columns, function_columns; /* wait_columns 0: there is no such column */
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Take over the bytes of buf, also when it failed, so that there is one place to free them. */
static int set_text(struct text *text, struct buf *buf)
{
	free(text->bytes);
	*text = (struct text){.bytes = buf->data, .len = buf->len};
	text->columns = utf8_width(text->bytes, text->len);
	return buf->err;
}

/* Keep the two ends of a name: "work.<loc…>.inner". */
static int shorten_name(struct text *text, size_t columns)
{
	size_t head, tail;
	struct buf buf = {0};

	if (text->columns <= columns)
		return 0;
	head = utf8_fit(text->bytes, text->len, columns / 2);
	tail = utf8_fit_end(text->bytes, text->len, columns - 1 - columns / 2);
	buf__add(&buf, text->bytes, head);
	buf__adds(&buf, ELLIPSIS);
	buf__add(&buf, text->bytes + tail, text->len - tail);
	return set_text(text, &buf);
}

/* Keep the end of a path, from a slash on if one is near enough: "…/pkg/mod.py:12". */
static int shorten_path(struct text *text, size_t columns)
{
	const char *from, *end = text->bytes + text->len, *slash;
	struct buf buf = {0};

	if (text->columns <= columns)
		return 0;
	from = text->bytes + utf8_fit_end(text->bytes, text->len, columns - 1);
	slash = memchr(from, '/', (size_t)(end - from));
	if (slash)
		from = slash;
	buf__adds(&buf, ELLIPSIS);
	buf__add(&buf, from, (size_t)(end - from));
	return set_text(text, &buf);
}

/* "[sleep]" without its brackets: all that stand there are of one kind. Of a recording they may be anything. */
static const char *wait_text(const struct strtab *strings, const struct profile_row *row)
{
	static char text[64];
	const char *name = strtab__get(strings, row->wait);
	size_t len = strlen(name);
	struct buf escaped = {0};

	if (!row->wait || len < 2)
		return row->self ? "on CPU" : "";
	len = utf8_fit_bytes(name + 1, len - 2, sizeof(text) - 1);
	snprintf(text, sizeof(text), "%.*s", (int)len, name + 1);
	buf__add_escaped(&escaped, text, NULL);
	name = escaped.data ?: "";
	len = utf8_fit_bytes(name, escaped.len, sizeof(text) - 1);
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	buf__free(&escaped);
	return text;
}

static int make_cells(struct cells *cells, const struct strtab *strings, const struct profile_row *row)
{
	const char *name = strtab__get(strings, row->function);
	struct buf function = {0}, place = {0};
	int err;

	buf__add_escaped(&function, *name ? name : "[unnamed]", NULL);
	if (row->kind == FRAME_PYTHON) {
		buf__add_escaped(&place, strtab__get(strings, row->file), NULL);
		if (row->line)
			buf__addf(&place, row->approximate ? ":~%u" : ":%u", row->line);
	}
	err = set_text(&cells->function, &function);
	return set_text(&cells->place, &place) ?: err;
}

/* Samples, or seconds. Valid until the next call. */
static const char *value_text(const struct profile *profile, uint64_t weight)
{
	static char text[32];

	if (profile->unit == PROFILE_TIME)
		snprintf(text, sizeof(text), "%.3f", weight / 1e9);
	else
		snprintf(text, sizeof(text), "%llu", (unsigned long long)profile__value(profile, weight));
	return text;
}

static const char *value_heading(const struct table *table)
{
	return table->tells_waits ? "held" : table->profile->unit == PROFILE_TIME ? "seconds" : "samples";
}

/* One number, or two. */
static void add_values(const struct table *table, uint64_t self, uint64_t waited, struct buf *buf)
{
	buf__addf(buf, "%*s", table->value_columns,
		  value_text(table->profile, self - (table->tells_waits ? waited : 0)));
	if (table->tells_waits)
		buf__addf(buf, "%*s", table->value_columns, value_text(table->profile, waited));
}

/* Columns that the two texts need: the widest cell, and the heading. */
static size_t function_need(const struct table *table)
{
	size_t need = strlen("function");

	for (size_t i = 0; i < table->shown; i++)
		need = max_u64(need, table->cells[i].function.columns);
	return need;
}

static size_t place_need(const struct table *table)
{
	size_t need = strlen("file:line");

	for (size_t i = 0; i < table->shown; i++)
		need = max_u64(need, table->cells[i].place.columns);
	return need;
}

/*
 * Share out what the numbers leave: places get half of it, or more if the names need less. Places come first,
 * since they are cut at a slash and so may give columns back to the names.
 */
static int fit_cells(struct table *table)
{
	size_t values = table->value_columns * (1 + table->tells_waits);
	size_t numbers = SHARE_COLUMNS + TOTAL_COLUMNS + values + table->wait_columns + 2 * GAP, width, left, columns;
	int err = 0;

	width = max_u64(table->style->width, numbers + 2 * MIN_COLUMNS);
	left = table->style->width ? width - numbers : SIZE_MAX / 2;
	columns = max_u64(left / 2, left - min_u64(left, function_need(table)));
	for (size_t i = 0; !err && i < table->shown; i++)
		err = shorten_path(&table->cells[i].place, columns);
	columns = left - min_u64(left, place_need(table));
	for (size_t i = 0; !err && i < table->shown; i++)
		err = shorten_name(&table->cells[i].function, columns);
	/* A padding is an int; longer names only push their own place to the right. */
	table->function_columns = (int)min_u64(function_need(table), INT16_MAX);
	return err;
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
	buf__addf(buf, "%*s%*s%*s", SHARE_COLUMNS, "self%", TOTAL_COLUMNS, "total%", table->value_columns,
		  value_heading(table));
	if (table->tells_waits)
		buf__addf(buf, "%*s", table->value_columns, "waited");
	if (table->wait_columns)
		buf__addf(buf, "  %-*s", table->wait_columns - GAP, WAIT_HEADING);
	buf__addf(buf, "  %-*s  %s", table->function_columns, "function", "file:line");
	paint(table, RESET, buf);
	buf__addc(buf, '\n');
}

static void add_row(const struct table *table, size_t i, struct buf *buf)
{
	const struct profile_row *row = &table->rows[i];
	const struct cells *cells = &table->cells[i];
	double self = percent(row->self, table->whole);
	bool hot = self >= HOT_PERCENT;

	paint(table, hot ? BOLD_RED : "", buf);
	buf__addf(buf, "%*.1f%%", SHARE_COLUMNS - 1, self);
	paint(table, hot ? RESET : "", buf);
	buf__addf(buf, "%*.1f%%", TOTAL_COLUMNS - 1, percent(row->total, table->whole));
	add_values(table, row->self, row->waited, buf);
	buf__adds(buf, "  ");
	if (table->wait_columns)
		buf__addf(buf, "%-*s  ", table->wait_columns - GAP, wait_text(table->profile->strings, row));
	paint(table, hot ? BOLD_RED : "", buf);
	buf__add(buf, cells->function.bytes, cells->function.len);
	paint(table, hot ? RESET : "", buf);
	if (cells->place.len) {
		int padding = table->function_columns - (int)min_u64(cells->function.columns, INT16_MAX);

		buf__addf(buf, "%*s", padding + GAP, "");
		buf__add(buf, cells->place.bytes, cells->place.len);
	}
	buf__addc(buf, '\n');
}

static void add_rest(const struct table *table, struct buf *buf)
{
	buf__addf(buf, "%*.1f%%%*s", SHARE_COLUMNS - 1, percent(table->hidden_self, table->whole), TOTAL_COLUMNS, "");
	add_values(table, table->hidden_self, table->hidden_waited, buf);
	buf__addf(buf, "%*s  ... and %zu more\n", table->wait_columns, "", table->hidden);
}

static int wait_columns(const struct table *table)
{
	size_t need = strlen(WAIT_HEADING);

	if (table->profile->unit != PROFILE_TIME)
		return 0;
	for (size_t i = 0; i < table->shown; i++)
		need = max_u64(need, strlen(wait_text(table->profile->strings, &table->rows[i])));
	return GAP + (int)need;
}

static int make_table(struct table *table)
{
	uint64_t most = max_u64(table->rows[0].self, table->hidden_self);
	int err = 0, len = strlen(value_text(table->profile, most));

	table->cells = calloc(table->shown, sizeof(*table->cells));
	if (!table->cells)
		return -ENOMEM;
	table->value_columns = GAP + (int)max_u64(strlen(table->tells_waits ? "waited" : value_heading(table)), len);
	table->wait_columns = wait_columns(table);
	for (size_t i = 0; !err && i < table->shown; i++)
		err = make_cells(&table->cells[i], table->profile->strings, &table->rows[i]);
	return err ?: fit_cells(table);
}

static void free_table(struct table *table)
{
	for (size_t i = 0; table->cells && i < table->shown; i++) {
		free(table->cells[i].function.bytes);
		free(table->cells[i].place.bytes);
	}
	free(table->cells);
}

int summary__format(const struct profile *profile, const struct summary_style *style, struct buf *buf)
{
	struct table table = {.style = style, .profile = profile};
	struct profile_rows rows;
	int err = profile__rows(profile, style->group, &rows);

	if (err || !rows.rows.len)
		goto out;
	table.whole = profile__total(profile);
	table.rows = rows.rows.items;
	table.shown = style->max_rows ? min_u64(style->max_rows, rows.rows.len) : rows.rows.len;
	table.hidden = rows.rows.len - table.shown;
	for (size_t i = 0; i < rows.rows.len; i++) {
		table.hidden_self += i < table.shown ? 0 : table.rows[i].self;
		table.hidden_waited += i < table.shown ? 0 : table.rows[i].waited;
		table.tells_waits |= table.rows[i].waited > 0;
	}
	err = make_table(&table);
	if (err)
		goto out;

	add_header(&table, buf);
	for (size_t i = 0; i < table.shown; i++)
		add_row(&table, i, buf);
	if (table.hidden)
		add_rest(&table, buf);
	err = buf->err;
out:
	free_table(&table);
	profile_rows__free(&rows);
	return err;
}
