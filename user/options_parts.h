/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For options.c (START HERE) and options_report.c, which has those of `report`.
 */
#pragma once

#include "options.h"

#define RATE_DEFAULT 99
#define ROWS_DEFAULT 15

/* --- options.c: all but the last give -EINVAL, after they have told what is wrong --- */

int bad_value(const char *option, const char *value, const char *want);
int refuse(const char *text);
/* What getopt does not take, as it says: '?' or ':'. */
int refuse_word(int option, const char *word);
/* Formats of outputs, by `format` or by their names. 0 or -EINVAL. */
int choose_writers(struct options *options, const struct writer *format);

/* --- options_report.c --- */

/* argv[0] is no option. 0 or -EINVAL. */
int options_parse_report(struct options *options, int argc, char **argv);

/* --- options_diff.c: the same --- */

int options_parse_diff(struct options *options, int argc, char **argv);
