/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame table: every field tells frames apart, ids are dense and stay.
 */
#include "agg/frame.h"

#include <criterion/criterion.h>

Test(frame, each_field_counts)
{
	const struct frame base = {
		.function = 1, .file = 2, .line = 3, .first_line = 4, .kind = FRAME_PYTHON};
	struct frame variants[] = {base, base, base, base, base, base, base};
	struct frame_table table = {0};

	variants[1].function++;
	variants[2].file++;
	variants[3].line++;
	variants[4].first_line++;
	variants[5].kind = FRAME_SPECIAL;
	variants[6].approximate = true;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 7; i++)
			cr_assert_eq(frame_table__add(&table, &variants[i]), i, "variant %u, round %d", i,
				     round);
	cr_assert_eq(table.frames.len, 7);
	cr_assert_eq(frame_table__get(&table, 4)->first_line, 5);
	cr_assert_eq(frame_table__get(&table, 5)->kind, FRAME_SPECIAL);
	frame_table__free(&table);
}

/* Numbers trade places between fields: a hash that only adds them up would chain all of these. */
Test(frame, fields_do_not_mix)
{
	struct frame_table table = {0};

	for (uint32_t a = 0; a < 40; a++)
		for (uint32_t b = 0; b < 40; b++)
			for (uint32_t c = 0; c < 40; c++) {
				struct frame frame = {
					.function = a, .file = b, .line = c, .first_line = 40 - c};

				cr_assert_eq(frame_table__add(&table, &frame), (a * 40 + b) * 40 + c);
			}
	cr_assert_eq(table.index.len, 64000, "hashes collide");
	frame_table__free(&table);
}

/*
 * Equal hashes cannot be had on purpose, so they are made by hand: the stored frame is exchanged for one that
 * differs in a single field, which the search must notice without the help of the hash.
 */
static void check_chain(struct frame other)
{
	const struct frame frame = {.function = 1, .file = 2, .line = 3, .first_line = 4};
	struct frame_table table = {0};

	cr_assert_eq(frame_table__add(&table, &frame), 0);
	table.frames.items[0] = other;
	cr_assert_eq(frame_table__add(&table, &frame), 1);
	cr_assert_eq(frame_table__add(&table, &frame), 1);
	cr_assert_eq(table.index.len, 1);
	cr_assert_eq(table.next.items[1], 1);
	cr_assert_eq(table.next.items[0], 0);
	frame_table__free(&table);
}

Test(frame, equal_hashes_form_a_chain)
{
	check_chain((struct frame){.function = 9, .file = 2, .line = 3, .first_line = 4});
	check_chain((struct frame){.function = 1, .file = 9, .line = 3, .first_line = 4});
	check_chain((struct frame){.function = 1, .file = 2, .line = 9, .first_line = 4});
	check_chain((struct frame){.function = 1, .file = 2, .line = 3, .first_line = 9});
	check_chain(
		(struct frame){.function = 1, .file = 2, .line = 3, .first_line = 4, .kind = FRAME_SPECIAL});
	check_chain((struct frame){.function = 1, .file = 2, .line = 3, .first_line = 4, .approximate = true});
	frame_table__free(NULL);
}
