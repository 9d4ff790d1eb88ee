/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Just enough Unicode to print foreign text: a strict UTF-8 decoder, and how many columns of a terminal a
 * character takes. Independent of the locale, since a profiler is often started with LC_ALL=C.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decode the character that starts at s, looking at no more than len bytes. Returns its length, 1 to 4, or 0
 * when there is no well-formed one: overlong, surrogate, above U+10FFFF, cut short, stray continuation byte,
 * len 0.
 */
size_t utf8_decode(const char *s, size_t len, uint32_t *code);

/*
 * Characters that move the cursor, break the line or reorder what a person reads: controls, line separators,
 * bidirectional marks. All are below U+10000.
 */
bool utf8_is_unsafe(uint32_t code);

/* Columns of one character: 0 (combining), 1 or 2 (East Asian wide, emoji). Control characters count 0. */
unsigned int utf8_columns(uint32_t code);

/* Columns of a text. A byte that is not UTF-8 counts as one column, here and below. */
size_t utf8_width(const char *s, size_t len);

/*
 * Bytes of the longest beginning of a text that fits in `columns`; never parts a character from its accents.
 */
size_t utf8_fit(const char *s, size_t len, size_t columns);

/* Offset of the longest end of a text that fits in `columns`; never starts with a loose accent. */
size_t utf8_fit_end(const char *s, size_t len, size_t columns);

/* Bytes of the longest beginning that has at most `max` bytes and ends with a whole character. */
size_t utf8_fit_bytes(const char *s, size_t len, size_t max);

/* Every byte that is not UTF-8 becomes a question mark. */
void utf8_repair(char *text);
