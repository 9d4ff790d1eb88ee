/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small profiles for tests: a stack is written as frames "function file line first_line", outermost first.
 */
#pragma once

#include "agg/profile.h"

#include <criterion/criterion.h>
#include <string.h>

struct fixture_frame {
	const char *function, *file; /* file NULL: an annotation */
	uint32_t line, first_line;
};

static inline uint32_t fixture_string(struct profile *profile, const char *text)
{
	return text ? strtab__add(profile->strings, text, strlen(text)) : 0;
}

static inline uint32_t fixture_frame(struct profile *profile, struct fixture_frame frame)
{
	return frame_table__add(&profile->frames, &(struct frame){
							  .function = fixture_string(profile, frame.function),
							  .file = fixture_string(profile, frame.file),
							  .line = frame.line,
							  .first_line = frame.first_line,
							  .kind = frame.file ? FRAME_PYTHON : FRAME_SPECIAL,
						  });
}

static inline void fixture_stack(struct profile *profile, uint64_t weight, const struct fixture_frame *frames,
				 size_t len)
{
	uint32_t node = TRIE_ROOT;

	for (size_t i = 0; i < len; i++)
		node = trie__child(&profile->trie, node, fixture_frame(profile, frames[i]));
	cr_assert_neq(node, TRIE_FULL);
	trie__add(&profile->trie, node, weight);
	profile->samples += weight;
}

/* Of one frame, with such a line. */
static inline void add_approximate(struct profile *profile, uint64_t weight, struct fixture_frame frame)
{
	struct frame copy = *frame_table__get(&profile->frames, fixture_frame(profile, frame));

	copy.approximate = true;
	trie__add(&profile->trie,
		  trie__child(&profile->trie, TRIE_ROOT, frame_table__add(&profile->frames, &copy)), weight);
	profile->samples += weight;
}

/* add_stack(&profile, 3, {"outer", "a.py", 7, 1}, {"inner", "a.py", 9, 8}) */
#define add_stack(profile, weight, ...)                                                                      \
	fixture_stack((profile), (weight), (const struct fixture_frame[]){__VA_ARGS__},                      \
		      sizeof((const struct fixture_frame[]){__VA_ARGS__}) / sizeof(struct fixture_frame))
