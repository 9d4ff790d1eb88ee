/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last two columns of a table: functions, and their places (file:line). Texts are escaped, and cut to
 * what the terminal leaves: long names lose their middle, long paths their beginning.
 */
#pragma once

#include "agg/frame.h"
#include "base/buf.h"
#include "base/strtab.h"

#include <stddef.h>

struct place_text {
	char *bytes; /* escaped */
	size_t len, columns;
};

struct place {
	struct place_text function, where;
};

struct places {
	struct place *items;
	size_t count;
	int function_columns;
};

/* Room for so many rows, which are empty. 0 or -ENOMEM. */
int places__init(struct places *places, size_t count);
/* 0 or -ENOMEM. */
int places__set(struct places *places, size_t row, const struct strtab *strings, const struct frame *frame);
/* After all are set: in `width` columns (0: no limit), of which `before` are taken. 0 or -ENOMEM. */
int places__fit(struct places *places, size_t width, size_t before);

void places__add_heading(const struct places *places, struct buf *out);
/* The sequences (or "") stand around the function. */
void places__add(const struct places *places, size_t row, const char *color, const char *reset,
		 struct buf *out);

void places__free(struct places *places);
