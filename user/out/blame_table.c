/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See blame_table.h. Waiter and holder are "function (file:line)"; where the terminal is too narrow for both
 * they lose their middles.
 */
#include "out/blame_table.h"

#include "agg/blame_rows.h"
#include "base/utf8.h"
#include "base/util.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_COLUMNS	9 /* "  waited%" */
#define SECONDS_COLUMNS 9
#define GAP		2
#define MIN_COLUMNS	16
#define STATE_HEADING	"meanwhile"
#define ELLIPSIS	"\xe2\x80\xa6"
#define BOLD		"\x1b[1m"
#define RESET		"\x1b[0m"

struct cell {
	struct buf text; /* escaped */
	size_t columns;
};

struct table {
	const struct profile *profile;
	struct blame_rows rows;
	size_t shown;
	struct cell (*cells)[2]; /* waiter, holder */
	int columns[2];
	uint64_t whole_ns, hidden_ns;
};

static void add_place(struct buf *buf, const struct table *table, uint32_t group)
{
	const struct strtab *strings = table->profile->strings;
	const struct frame *frame =
		group == UINT32_MAX ? NULL : frame_table__get(&table->rows.groups.groups, group);
	const char *name = frame ? strtab__get(strings, frame->function) : "-";

	buf__add_escaped(buf, *name ? name : "[unnamed]", NULL);
	if (!frame || frame->kind != FRAME_PYTHON)
		return;
	buf__adds(buf, " (");
	buf__add_escaped(buf, strtab__get(strings, frame->file), NULL);
	if (frame->line)
		buf__addf(buf, frame->approximate ? ":~%u" : ":%u", frame->line);
	buf__addc(buf, ')');
}

/* The name's beginning and the file's end stay. */
static void shorten(struct cell *cell, size_t columns)
{
	struct buf text = {0};
	size_t head, tail;

	if (cell->columns <= columns)
		return;
	head = utf8_fit(cell->text.data, cell->text.len, columns / 2);
	tail = utf8_fit_end(cell->text.data, cell->text.len, columns - 1 - columns / 2);
	buf__add(&text, cell->text.data, head);
	buf__adds(&text, ELLIPSIS);
	buf__add(&text, cell->text.data + tail, cell->text.len - tail);
	text.err = text.err ?: cell->text.err;
	buf__free(&cell->text);
	cell->text = text;
	cell->columns = utf8_width(text.data, text.len);
}

/* "[holder: sleep]" is "sleep"; any other note is as it is. */
static void add_state(struct buf *buf, const char *text)
{
	static const char holder[] = "[holder: ";
	size_t len = strlen(text);
	bool is_holder = !strncmp(text, holder, sizeof(holder) - 1) && text[len - 1] == ']';
	char *bare = is_holder ? strndup(text + sizeof(holder) - 1, len - sizeof(holder)) : NULL;

	buf__add_escaped(buf, bare ?: text, NULL);
	free(bare);
}

static size_t state_columns(const struct table *table)
{
	size_t columns = strlen(STATE_HEADING);

	for (size_t i = 0; i < table->shown; i++)
		columns = max_u64(columns, strlen(strtab__get(table->profile->strings,
							      table->rows.rows.items[i].state)));
	return columns;
}

static int make_cells(struct table *table, const struct summary_style *style)
{
	static const char *const headings[] = {"waiter", "held by"};
	size_t numbers = SHARE_COLUMNS + SECONDS_COLUMNS + 3 * GAP + state_columns(table);
	size_t left = max_u64(style->width, numbers + 2 * MIN_COLUMNS) - numbers;
	size_t most = style->width ? left / 2 : SIZE_MAX;
	int err = 0;

	table->cells = calloc(table->shown, sizeof(*table->cells));
	if (!table->cells)
		return -ENOMEM;
	for (size_t side = 0; side < 2; side++) {
		size_t columns = strlen(headings[side]);

		for (size_t i = 0; i < table->shown; i++) {
			const struct blame_row *row = &table->rows.rows.items[i];
			struct cell *cell = &table->cells[i][side];

			add_place(&cell->text, table, side ? row->holder : row->waiter);
			cell->columns = utf8_width(cell->text.data, cell->text.len);
			shorten(cell, most);
			columns = max_u64(columns, cell->columns);
			err = err ?: cell->text.err;
		}
		table->columns[side] = (int)min_u64(columns, INT16_MAX);
	}
	return err;
}

static void add_cell(const struct table *table, size_t row, size_t side, struct buf *buf)
{
	const struct cell *cell = &table->cells[row][side];
	size_t columns = min_u64(cell->columns, table->columns[side]);

	buf__add(buf, cell->text.data, cell->text.len);
	buf__addf(buf, "%*s", (int)(table->columns[side] - columns) + GAP, "");
}

static void add_numbers(const struct table *table, uint64_t time_ns, struct buf *buf)
{
	buf__addf(buf, "%*.1f%%%*.3f  ", SHARE_COLUMNS - 1, 100.0 * time_ns / (table->whole_ns ?: 1),
		  SECONDS_COLUMNS, time_ns / 1e9);
}

static void add_table(const struct table *table, const struct summary_style *style, struct buf *buf)
{
	buf__addf(buf, "\n%s%*s%*s  %-*s  %-*s  %s%s\n", style->color ? BOLD : "", SHARE_COLUMNS, "waited%",
		  SECONDS_COLUMNS, "seconds", table->columns[0], "waiter", table->columns[1], "held by",
		  STATE_HEADING, style->color ? RESET : "");
	for (size_t i = 0; i < table->shown; i++) {
		const struct blame_row *row = &table->rows.rows.items[i];

		add_numbers(table, row->time_ns, buf);
		add_cell(table, i, 0, buf);
		add_cell(table, i, 1, buf);
		add_state(buf, strtab__get(table->profile->strings, row->state));
		buf__addc(buf, '\n');
	}
	if (table->shown == table->rows.rows.len)
		return;
	add_numbers(table, table->hidden_ns, buf);
	buf__addf(buf, "... and %zu more\n", table->rows.rows.len - table->shown);
}

int blame_table__format(const struct profile *profile, const struct summary_style *style, struct buf *buf)
{
	struct table table = {.profile = profile};
	int err = blame_rows__init(&table.rows, profile, style->group);
	size_t count = table.rows.rows.len;

	table.shown = style->max_rows ? min_u64(style->max_rows, count) : count;
	for (size_t i = 0; i < count; i++) {
		table.whole_ns += table.rows.rows.items[i].time_ns;
		table.hidden_ns += i < table.shown ? 0 : table.rows.rows.items[i].time_ns;
	}
	if (!err && count)
		err = make_cells(&table, style);
	if (!err && count)
		add_table(&table, style, buf);
	for (size_t i = 0; i < table.shown && table.cells; i++)
		for (size_t side = 0; side < 2; side++)
			buf__free(&table.cells[i][side].text);
	free(table.cells);
	blame_rows__free(&table.rows);
	return err ?: buf->err;
}
