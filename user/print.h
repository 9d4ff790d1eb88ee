/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is printed for people: the table, and lines on stderr that fit the terminal.
 */
#pragma once

#include "agg/profile.h"
#include "base/buf.h"
#include "out/summary.h"

#include <stdbool.h>

/* Columns of the terminal, 0 where the stream is none. */
unsigned int print__width(int fd);
bool print__wants_color(int fd);
/* The table. 0, also if the reader has seen enough, or -errno, which has been told. */
int print__table(const struct profile *profile, enum group_by group, unsigned int rows, int fd);
/* Lines of a text as messages; frees it. */
void print__lines(struct buf *text);
