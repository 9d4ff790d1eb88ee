/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table on stdout. Functions and places are made to fit (out/places.h) before the lines are printed.
 */
#include "out/summary.h"

#include "base/utf8.h"
#include "base/util.h"
#include "out/places.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SHARE_COLUMNS 7 /* "  61.2%" */
#define TOTAL_COLUMNS 8
#define GAP	      2
#define WAIT_HEADING  "mostly" /* waited for what */
#define HOT_PERCENT   10.0
#define BOLD	      "\x1b[1m"
#define BOLD_RED      "\x1b[1;31m"
#define RESET	      "\x1b[0m"

struct table {
	const struct summary_style *style;
	const struct profile *profile;
	const struct profile_row *rows;
	struct places places; /* of the shown rows */
	size_t shown, hidden;
	uint64_t hidden_self, hidden_waited, whole;
	bool tells_waits; /* apart from the rest, which was not waited: a lock was held */
	int value_columns, wait_columns; /* wait_columns 0: there is no such column */
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/*
 * "[sleep]" without its brackets: all that stand there are of one kind. Of a recording they may be anything.
 */
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
	buf__adds(buf, "  ");
	places__add_heading(&table->places, buf);
	paint(table, RESET, buf);
	buf__addc(buf, '\n');
}

static void add_row(const struct table *table, size_t i, struct buf *buf)
{
	const struct profile_row *row = &table->rows[i];
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
	hot &= table->style->color;
	places__add(&table->places, i, hot ? BOLD_RED : "", hot ? RESET : "", buf);
	buf__addc(buf, '\n');
}

static void add_rest(const struct table *table, struct buf *buf)
{
	buf__addf(buf, "%*.1f%%%*s", SHARE_COLUMNS - 1, percent(table->hidden_self, table->whole),
		  TOTAL_COLUMNS, "");
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

static struct frame frame_of(const struct profile_row *row)
{
	return (struct frame){.function = row->function,
			      .file = row->file,
			      .line = row->line,
			      .kind = row->kind,
			      .approximate = row->approximate};
}

static int make_table(struct table *table)
{
	uint64_t most = max_u64(table->rows[0].self, table->hidden_self);
	int len = strlen(value_text(table->profile, most)), columns, err;

	table->value_columns =
		GAP + (int)max_u64(strlen(table->tells_waits ? "waited" : value_heading(table)), len);
	table->wait_columns = wait_columns(table);
	err = places__init(&table->places, table->shown);
	for (size_t i = 0; !err && i < table->shown; i++) {
		struct frame frame = frame_of(&table->rows[i]);

		err = places__set(&table->places, i, table->profile->strings, &frame);
	}
	columns = SHARE_COLUMNS + TOTAL_COLUMNS + table->value_columns * (1 + table->tells_waits) +
		  table->wait_columns + GAP;
	return err ?: places__fit(&table->places, table->style->width, columns);
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
	places__free(&table.places);
	profile_rows__free(&rows);
	return err;
}
