/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For options.c (START HERE: `record`, `dump`, `doctor`), options_report.c, options_diff.c, and what they
 * have in common.
 */
#pragma once

#include "options.h"

#define RATE_DEFAULT 99
#define ROWS_DEFAULT 15

/* Options without a letter; each command's own begin at OPTION_OWN. */
enum { OPTION_FORMAT = 256, OPTION_LINE, OPTION_OWN };

/* --- options_common.c: the first three give -EINVAL, after they have told what is wrong --- */

int bad_value(const char *option, const char *value, const char *want);
int refuse(const char *text);
/* What getopt does not take, as it says: '?' or ':'. */
int refuse_word(int option, const char *word);
/* One that has the same meaning everywhere. 0 or -EINVAL (or -ENOMEM). */
int take_common_option(struct options *options, int option, const char *value, const struct writer **format);
/* Formats of outputs, by `format` or by their names. 0 or -EINVAL. */
int choose_writers(struct options *options, const struct writer *format);

/* --- options_report.c --- */

/* argv[0] is no option. 0 or -EINVAL. */
int options_parse_report(struct options *options, int argc, char **argv);

/* --- options_diff.c: the same --- */

int options_parse_diff(struct options *options, int argc, char **argv);
