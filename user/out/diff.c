/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See diff.h. The page is flamegraph.c's.
 */
#include "out/diff.h"

#include "base/util.h"
#include "out/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAST_CHANGE 0.05 /* points: what is less is 0.0 in the table */
#define NUMBERS	     37u  /* columns before the names, but for ... */
#define RATE_COLUMNS 8	  /* ... milliseconds a second, of each side, at least */
#define RATE_WHOLE   10000.0 /* of these what is behind the point is left out */

static const char *const SIDE_NAMES[COMPARE_SIDES] = {"base", "  new "};

/* --- the two --- */

static const char *mode_of(const struct diff_side *side)
{
	return side->profile->account.mode ?: side->profile->unit == PROFILE_TIME ? "time" : "cpu";
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_mode(const struct diff_side *base, const struct diff_side *new, const char *mode)
{
	return !strcmp(mode_of(base), mode) || !strcmp(mode_of(new), mode);
}

const char *diff__refuse(const struct diff_side sides[COMPARE_SIDES])
{
	const struct diff_side *base = &sides[COMPARE_BASE], *new = &sides[COMPARE_NEW];

	if (same_text(mode_of(base), mode_of(new)))
		return NULL;
	if (is_mode(base, new, "wall"))
		return "one is of all time, the other only of a part of it (--mode)";
	if (is_mode(base, new, "cpu") && is_mode(base, new, "offcpu"))
		return "one is of time on the CPU, the other of time off it (--mode)";
	return "they are of time of other kinds (--mode)";
}

static void add_text(struct buf *out, const char *text)
{
	buf__add_escaped(out, text, NULL);
}

static void add_side(struct buf *out, const struct diff_side *side, const char *name)
{
	const struct profile *profile = side->profile;

	buf__addf(out, "%s ", name);
	add_text(out, side->name);
	if (profile->unit == PROFILE_TIME)
		buf__addf(out, ": %.3f s", (double)profile__total(profile) / 1e9);
	else
		buf__addf(out, ": %" PRIu64 " sample%s", profile->samples, plural(profile->samples));
	buf__adds(out, " of ");
	if (profile->account.processes == 1 && profile->command && *profile->command)
		buf__adds(out, profile->command);
	else
		buf__addf(out, "%" PRIu64 " processes", profile->account.processes);
	buf__addf(out, " in %.1f s", (double)profile->duration_ns / 1e9);
	if (profile->account.cpu_ns)
		buf__addf(out, ", %.3f s of CPU time", (double)profile->account.cpu_ns / 1e9);
	if (profile->account.lost)
		buf__addf(out, "; %" PRIu64 " lost, which are not in it", profile->account.lost);
	buf__addc(out, '\n');
}

static void add_difference(struct buf *out, const char *what, const char *base, const char *new)
{
	if (same_text(base, new))
		return;
	buf__addf(out, "  they differ in %s: ", what);
	add_text(out, base ?: "not known");
	buf__adds(out, ", ");
	add_text(out, new ?: "not known");
	buf__addc(out, '\n');
}

void diff__head(const struct diff_side sides[COMPARE_SIDES], const struct compare *compare, struct buf *out)
{
	const struct account *base = &sides[COMPARE_BASE].profile->account;
	const struct account *new = &sides[COMPARE_NEW].profile->account;
	double per_second[COMPARE_SIDES];

	for (int i = 0; i < COMPARE_SIDES; i++) {
		add_side(out, &sides[i], SIDE_NAMES[i]);
		per_second[i] = compare__per_second(compare, i, compare->total[i]);
	}
	buf__addf(out, "  in all %.0f ms a second, and now %.0f ms (%+.1f %%)\n", per_second[COMPARE_BASE],
		  per_second[COMPARE_NEW],
		  per_second[COMPARE_BASE] > 0
			  ? 100 * (per_second[COMPARE_NEW] / per_second[COMPARE_BASE] - 1)
			  : 0);
	add_difference(out, "engine", base->engine, new->engine);
	add_difference(out, "version of pybpfprof", base->version, new->version);
	if (base->rate_hz != new->rate_hz)
		buf__addf(out, "  they differ in rate: %u, %u Hz\n", base->rate_hz, new->rate_hz);
}

/* --- the table --- */

/* "+12.3", "-0.4", "0.0": without a sign, which would say that there is something. */
static void add_change(struct buf *out, int columns, double change)
{
	bool none = change < LEAST_CHANGE && change > -LEAST_CHANGE;

	buf__addf(out, none ? "%*.1f" : "%+*.1f", columns, none ? 0.0 : change);
}

static double change_of(const struct compare *compare, const uint64_t weights[COMPARE_SIDES])
{
	return compare__share(compare, COMPARE_NEW, weights[COMPARE_NEW]) -
	       compare__share(compare, COMPARE_BASE, weights[COMPARE_BASE]);
}

#define GREW   "\x1b[1;31m"
#define SHRANK "\x1b[1;34m"
#define RESET  "\x1b[0m"

/* Of many threads together they may be millions. */
static int rate_columns(const struct compare *compare, size_t shown)
{
	int columns = RATE_COLUMNS;

	for (size_t row = 0; row < shown; row++)
		for (int i = 0; i < COMPARE_SIDES; i++) {
			double rate = compare__per_second(compare, i, compare->rows.items[row].self[i]);
			int len = snprintf(NULL, 0, "  %.*f", rate < RATE_WHOLE, rate);

			columns = len > columns ? len : columns;
		}
	return columns;
}

static void add_rate(struct buf *out, int columns, double rate)
{
	buf__addf(out, "%*.*f", columns, rate < RATE_WHOLE, rate);
}

static void add_numbers(const struct compare *compare, const struct compare_row *row,
			const struct summary_style *style, int rate, struct buf *out)
{
	double change = change_of(compare, row->self);
	const char *mark = !row->total[COMPARE_BASE] ? "new" : !row->total[COMPARE_NEW] ? "gone" : "";
	bool color = style->color && (change >= LEAST_CHANGE || change <= -LEAST_CHANGE);

	buf__adds(out, color ? change > 0 ? GREW : SHRANK : "");
	add_change(out, 7, change);
	buf__adds(out, color ? RESET : "");
	for (int i = 0; i < COMPARE_SIDES; i++)
		buf__addf(out, "%6.1f%%", compare__share(compare, i, row->self[i]));
	for (int i = 0; i < COMPARE_SIDES; i++)
		add_rate(out, rate, compare__per_second(compare, i, row->self[i]));
	add_change(out, 8, change_of(compare, row->total));
	buf__addf(out, "  %-4s  ", mark);
}

static int make_places(struct places *places, const struct compare *compare, const struct summary_style *style,
		       size_t before)
{
	int err = 0;

	for (size_t i = 0; !err && i < places->count; i++)
		err = places__set(places, i, compare->both.strings,
				  frame_table__get(&compare->both.frames, compare->rows.items[i].frame));
	return err ?: places__fit(places, style->width, before);
}

void diff__table(const struct compare *compare, const struct summary_style *style, struct buf *out)
{
	size_t count = compare->rows.len, shown = style->max_rows ? min_u64(style->max_rows, count) : count;
	int rate = rate_columns(compare, shown);
	size_t before = NUMBERS + COMPARE_SIDES * (size_t)rate;
	struct places places;

	out->err = out->err ?: places__init(&places, shown) ?: make_places(&places, compare, style, before);
	if (out->err)
		goto out;
	buf__addf(out, "%7s%7s%7s%*s%*s%8s        ", "self+-", "base%", "new%", rate, "ms/s", rate, "ms/s", "total+-");
	places__add_heading(&places, out);
	buf__addc(out, '\n');
	for (size_t i = 0; i < shown; i++) {
		add_numbers(compare, &compare->rows.items[i], style, rate, out);
		places__add(&places, i, "", "", out);
		buf__addc(out, '\n');
	}
	if (shown < count)
		buf__addf(out, "%*s... and %zu more\n", (int)before, "", count - shown);
out:
	places__free(&places);
}
