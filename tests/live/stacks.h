/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A collapsed profile, read back: stacks of frames, outermost first, with their weights.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_frame {
	const char *name;  /* as it stands in the file; an annotation with its brackets */
	const char *file;  /* "" for an annotation */
	unsigned int line; /* 0: none */
	bool approximate;  /* ... a line with ~ */
};

struct stack {
	struct stack_frame *frames;
	size_t len;
	uint64_t weight;
};

struct stacks {
	struct stack *items;
	size_t len;
	uint64_t total;
	char *text;
};

/* Parses a whole file. NULL, or what is wrong with it (with the line's number). */
const char *stacks__parse(struct stacks *stacks, const char *path);

/* Is it of these frames and no others? Names with ';' between: "<module>;run;a". */
bool stack__is(const struct stack *stack, const char *names);
/* Does it end in these frames? */
bool stack__ends_in(const struct stack *stack, const char *names);
/* How many of its frames have that name. */
size_t stack__count(const struct stack *stack, const char *name);
const struct stack_frame *stack__leaf(const struct stack *stack);
/* For messages: its names, the middle of a deep one left out. Valid until the next call. */
const char *stack__text(const struct stack *stack);

/* Weight of the stacks that are, end in, contain. */
uint64_t stacks__exactly(const struct stacks *stacks, const char *names);
uint64_t stacks__ending_in(const struct stacks *stacks, const char *names);
uint64_t stacks__with(const struct stacks *stacks, const char *name);
/* The same in percent of the total. */
double stacks__percent(const struct stacks *stacks, uint64_t weight);
