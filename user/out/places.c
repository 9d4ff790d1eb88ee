/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See places.h.
 */
#include "out/places.h"

#include "base/utf8.h"
#include "base/util.h"
#include "out/words.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEADING	       "function"
#define WHERE_HEADING  "file:line"
#define GAP	       2
#define MIN_COLUMNS    12 /* of each of the two, however narrow the terminal is */
#define COLUMNS_MAX    100 /* of the functions, where there is no terminal */
#define ELLIPSIS       "\xe2\x80\xa6"

/* Take over the bytes of buf, also when it failed, so that there is one place to free them. */
static int set_text(struct place_text *text, struct buf *buf)
{
	free(text->bytes);
	*text = (struct place_text){.bytes = buf->data, .len = buf->len};
	text->columns = utf8_width(text->bytes, text->len);
	return buf->err;
}

/* Keep the two ends of a name: "work.<loc…>.inner". */
static int shorten_name(struct place_text *text, size_t columns)
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
static int shorten_path(struct place_text *text, size_t columns)
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

int places__init(struct places *places, size_t count)
{
	*places = (struct places){.items = calloc(count, sizeof(*places->items)), .count = count};
	return places->items || !count ? 0 : -ENOMEM;
}

int places__set(struct places *places, size_t row, const struct strtab *strings, const struct frame *frame)
{
	struct place *place = &places->items[row];
	struct buf function = {0}, where = {0};
	int err;

	words__name(&function, strings, frame);
	if (frame->kind == FRAME_PYTHON) {
		words__text(&where, strings, frame->file);
		if (frame->line)
			buf__addf(&where, frame->approximate ? ":~%u" : ":%u", frame->line);
	}
	err = set_text(&place->function, &function);
	return set_text(&place->where, &where) ?: err;
}

/* Columns that the two need: the widest text, and the heading. */
static size_t function_need(const struct places *places)
{
	size_t need = strlen(HEADING);

	for (size_t i = 0; i < places->count; i++)
		need = max_u64(need, places->items[i].function.columns);
	return need;
}

static size_t where_need(const struct places *places)
{
	size_t need = strlen(WHERE_HEADING);

	for (size_t i = 0; i < places->count; i++)
		need = max_u64(need, places->items[i].where.columns);
	return need;
}

/*
 * Share out what is left: places get half of it, or more if the names need less. Places come first, since they
 * are cut at a slash and so may give columns back to the names.
 */
int places__fit(struct places *places, size_t width, size_t before)
{
	size_t taken = before + GAP, left = SIZE_MAX / 2, columns;
	int err = 0;

	if (width)
		left = max_u64(width, taken + 2 * MIN_COLUMNS) - taken;
	columns = max_u64(left / 2, left - min_u64(left, function_need(places)));
	for (size_t i = 0; !err && i < places->count; i++)
		err = shorten_path(&places->items[i].where, columns);
	columns = left - min_u64(left, where_need(places));
	for (size_t i = 0; !err && i < places->count; i++)
		err = shorten_name(&places->items[i].function, columns);
	/* Longer names only push their own place to the right, and do not make all rows so long. */
	places->function_columns = (int)min_u64(function_need(places), width ? INT16_MAX : COLUMNS_MAX);
	return err;
}

void places__add_heading(const struct places *places, struct buf *out)
{
	buf__addf(out, "%-*s%*s%s", places->function_columns, HEADING, GAP, "", WHERE_HEADING);
}

void places__add(const struct places *places, size_t row, const char *color, const char *reset, struct buf *out)
{
	const struct place *place = &places->items[row];
	size_t columns;

	buf__adds(out, color);
	buf__add(out, place->function.bytes, place->function.len);
	buf__adds(out, reset);
	if (!place->where.len)
		return;
	columns = min_u64(place->function.columns, (size_t)places->function_columns);
	buf__addf(out, "%*s", places->function_columns - (int)columns + GAP, "");
	buf__add(out, place->where.bytes, place->where.len);
}

void places__free(struct places *places)
{
	for (size_t i = 0; places->items && i < places->count; i++) {
		free(places->items[i].function.bytes);
		free(places->items[i].where.bytes);
	}
	free(places->items);
}
