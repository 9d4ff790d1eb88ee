/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two profiles laid over each other: shares, what is new and what is gone, and that nothing goes.
 */
#include "agg/compare.h"
#include "base/utf8.h"
#include "made.h"
#include "out/diff.h"

#include <criterion/criterion.h>

static struct profile base, new;
static struct compare compare;

static void begin(void)
{
	cr_assert(!profile__init(&base, 100000) && !profile__init(&new, 100000));
}

static void end(void)
{
	compare__free(&compare);
	profile__free(&base);
	profile__free(&new);
}

TestSuite(compare, .init = begin, .fini = end);

static void lay_over(void)
{
	uint64_t sums[COMPARE_SIDES] = {0};

	cr_assert_eq(compare__init(&compare, &base, &new), 0);
	for (int side = 0; side < COMPARE_SIDES; side++) {
		cr_expect_eq(compare.self[side].len, compare.both.trie.nodes.len);
		for (size_t id = 0; id < compare.self[side].len; id++)
			sums[side] += compare.self[side].items[id];
		cr_expect_eq(sums[side], compare.total[side]);
	}
	cr_expect_eq(sums[COMPARE_BASE], profile__total(&base));
	cr_expect_eq(sums[COMPARE_NEW], profile__total(&new));
}

static const struct compare_row *row_named(const char *name)
{
	for (size_t i = 0; i < compare.rows.len; i++) {
		const struct frame *frame =
			frame_table__get(&compare.both.frames, compare.rows.items[i].frame);

		if (!strcmp(strtab__get(compare.both.strings, frame->function), name))
			return &compare.rows.items[i];
	}
	cr_assert_fail("no row %s", name);
	return NULL;
}

static void expect_row(const char *name, double base_self, double new_self, double base_total,
		       double new_total)
{
	const struct compare_row *row = row_named(name);

	cr_expect_float_eq(compare__share(&compare, COMPARE_BASE, row->self[COMPARE_BASE]), base_self, 1e-9,
			   "%s", name);
	cr_expect_float_eq(compare__share(&compare, COMPARE_NEW, row->self[COMPARE_NEW]), new_self, 1e-9,
			   "%s", name);
	cr_expect_float_eq(compare__share(&compare, COMPARE_BASE, row->total[COMPARE_BASE]), base_total, 1e-9,
			   "%s", name);
	cr_expect_float_eq(compare__share(&compare, COMPARE_NEW, row->total[COMPARE_NEW]), new_total, 1e-9,
			   "%s", name);
}

Test(compare, shop)
{
	make_profile(&base, "shop");
	make_profile(&new, "changed");
	lay_over();
	expect_row("cached", 0, 22, 0, 22);
	expect_row("raw_decode", 40, 20, 40, 20); /* of two versions of Python */
	expect_row("total", 27, 45, 27, 45);	  /* with recursion, and at another line */
	expect_row("price", 13, 0, 13, 0);
	expect_row("serve", 0, 0, 82, 97);
	cr_expect_eq(compare.rows.items, row_named("cached"), "the greatest change is not the first");
	cr_expect_float_eq(compare__per_second(&compare, COMPARE_NEW, compare.total[COMPARE_NEW]), 673.4,
			   0.01);
}

/* The same work in half the time is no change of shares, but one of milliseconds a second. */
Test(compare, of_other_lengths)
{
	make_profile(&base, "shop");
	make_profile(&new, "shop");
	new.duration_ns *= 2;
	lay_over();
	for (size_t i = 0; i < compare.rows.len; i++)
		cr_expect_eq(compare.rows.items[i].self[COMPARE_BASE],
			     compare.rows.items[i].self[COMPARE_NEW]);
	cr_expect_float_eq(compare__per_second(&compare, COMPARE_NEW, compare.total[COMPARE_NEW]), 336.7,
			   0.01);
}

/* What was waited for is of the function that waited, and has no row. */
Test(compare, waits)
{
	struct profile *const sides[] = {&base, &new};

	for (uint64_t i = 0; i < 2; i++) {
		struct frame wait = {
			.kind = FRAME_SPECIAL, .function = made_text(sides[i], "[sleep]"), .wait = true};
		uint32_t node = made_add_frame(sides[i], TRIE_ROOT, MADE_FRAME("nap", "a.py", 3, 1));

		made_add_weight(sides[i], node, 1);
		node = trie__child(&sides[i]->trie, node, frame_table__add(&sides[i]->frames, &wait));
		made_add_weight(sides[i], node, 1 + 2 * i);
		MADE_STACK(sides[i], 2, MADE_FRAME("work", "a.py", 9, 8));
	}
	lay_over();
	cr_expect_eq(compare.rows.len, 2);
	expect_row("nap", 50, 100.0 * 4 / 6, 50, 100.0 * 4 / 6);
}

/* ... also where it is told whom it waited for, who is no callee of its. */
Test(compare, holders)
{
	struct profile *sides[] = {&base, &new};

	for (uint64_t i = 0; i < 2; i++) {
		struct frame wait = {.kind = FRAME_SPECIAL,
				     .function = made_text(sides[i], "[waits for the GIL]"),
				     .wait = true};
		uint32_t node = made_add_frame(sides[i], TRIE_ROOT, MADE_FRAME("want", "a.py", 3, 1));

		node = trie__child(&sides[i]->trie, node, frame_table__add(&sides[i]->frames, &wait));
		node = made_add_frame(sides[i], node, MADE_FRAME("hold", "b.py", 9, 8));
		node = made_add_frame(sides[i], node, MADE_NOTE("[holder: sleep]", FRAME_SPECIAL));
		made_add_weight(sides[i], node, 1);
		MADE_STACK(sides[i], 1 + 2 * i, MADE_FRAME("hold", "b.py", 9, 8));
	}
	lay_over();
	cr_expect_eq(compare.rows.len, 2);
	expect_row("want", 50, 25, 50, 25);
	expect_row("hold", 50, 75, 50, 75);
}

Test(compare, refuses)
{
	struct diff_side sides[] = {{"a", &base}, {"b", &new}};

	cr_expect_null(diff__refuse(sides));
	base.account.mode = "cpu";
	new.unit = PROFILE_TIME;
	cr_expect(diff__refuse(sides));
	new.account.mode = "cpu";
	cr_expect_null(diff__refuse(sides));
	new.account.mode = "offcpu";
	cr_expect(strstr(diff__refuse(sides), "off it"));
	base.account.mode = "wall";
	cr_expect(strstr(diff__refuse(sides), "all time"));
	base.account.mode = "exception";
	new.account.mode = "cpu";
	cr_expect(strstr(diff__refuse(sides), "other kinds"));
}

/* On a terminal each row is one line of it. */
Test(compare, narrow)
{
	struct summary_style style = {.width = 80};
	struct buf text = {0};

	make_profile(&base, "hostile");
	make_profile(&new, "shop");
	lay_over();
	diff__table(&compare, &style, &text);
	buf__addc(&text, '\0');
	for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"))
		cr_expect(utf8_width(line, strlen(line)) <= 80, "%s", line);
	buf__free(&text);
}

/* Of thousands of threads; numbers stand apart. */
Test(compare, many_seconds_a_second)
{
	struct summary_style style = {.width = 80};
	struct buf text = {0};

	for (struct profile *side = &base; side; side = side == &base ? &new : NULL) {
		MADE_STACK(side, 12345678000000, MADE_FRAME("work", "a.py", 9, 8));
		side->period_ns = side->duration_ns = 1000000;
	}
	lay_over();
	diff__table(&compare, &style, &text);
	buf__addc(&text, '\0');
	cr_expect(strstr(text.data, " 100.0% 100.0%  12345678000  12345678000     0.0"), "%s", text.data);
	buf__free(&text);
}

/* Names are escaped, in the table and on the page. */
Test(compare, hostile)
{
	struct diff_side sides[] = {{"</script>", &base}, {"\x1b[31m", &new}};
	struct summary_style style = {0};
	struct buf text = {0};

	make_profile(&base, "hostile");
	make_profile(&new, "hostile");
	lay_over();
	diff__table(&compare, &style, &text);
	diff__head(sides, &compare, &text);
	for (size_t i = 0; i < text.len; i++)
		cr_assert(text.data[i] == '\n' || (unsigned char)text.data[i] >= ' ', "a control character");
	text.len = 0;
	cr_assert_eq(diff__page(sides, &compare, &text), 0);
	buf__addc(&text, '\0');
	cr_expect(!strstr(strstr(text.data, "id=\"profile\">") + 13, "<!--"));
	cr_expect(!strstr(text.data, "</script><script>"));
	buf__free(&text);
}
