/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a profile says of programs whose right profile is known: callers, states. One thread, and code that
 * stays. Shares: test_matrix.c. Lines: test_lines.c. Names: test_names.c. Stacks that change fast: test_stacks.c.
 */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weight of the stacks of those names whose leaf is on that line. */
static uint64_t on_line(const struct run *run, const char *names, unsigned int line)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		if (stack__is(stack, names) && stack__leaf(stack)->line == line)
			weight += stack->weight;
	}
	return weight;
}

EACH_PYTHON(profile, lines_and_functions)
{
	struct target *target = start(python, "twolines.py");
	struct run *run = profile(target, .rate = "4999", .min_samples = 1500);
	unsigned int hot[2];

	check(marked_lines("twolines.py", "HOT", hot, 2) == 2, "two lines are hot");
	for (int i = 0; i < 2; i++) {
		double share = percent(run, on_line(run, "<module>;f", hot[i]));

		check(fabs(share - 50) < 8, "line %u has %.2f %%", hot[i], share);
	}
	run = profile(target, .seconds = 0.5, .min_samples = 50, .args = {"--function"});
	check(run->stacks.len <= 2, "%zu stacks, grouped by function", run->stacks.len);
	check_share(run, "<module>;f", 100, 1);
}

static bool is_fib(const struct stack *stack)
{
	return !strcmp(stack->frames[0].name, "<module>") && stack->len <= 24 &&
	       stack__count(stack, "fib") == stack->len - 1;
}

/* The table's percentages: "  96.6%  100.0%      258  fib". */
EACH_PYTHON(profile, recursion)
{
	struct run *run = profile(start(python, "fib.py"), .min_samples = 100);
	double self, total, greatest = 0;
	int rows = 0;

	check_each_stack(run, is_fib, "<module> and 1 to 22 fib");
	check(percent(run, stacks__with(&run->stacks, "fib")) > 98, "fib is in %.2f %%",
	      percent(run, stacks__with(&run->stacks, "fib")));
	for (const char *line = run->out; *line; line = strchr(line, '\n') + 1) {
		if (sscanf(line, "%lf%% %lf%%", &self, &total) != 2)
			continue;
		check(self <= total && total <= 100, "a row of the table says self %.1f, total %.1f", self,
		      total);
		greatest = fmax(greatest, total);
		rows++;
	}
	check(rows >= 2 && greatest > 98, "the table has %d rows, the greatest total is %.1f", rows,
	      greatest);
}

static bool is_step_and_lambda(const struct stack *stack)
{
	for (size_t i = 1; i < stack->len; i++)
		if (strcmp(stack->frames[i].name, i % 2 ? "step" : shown("step.<locals>.<lambda>")))
			return false;
	return !strcmp(stack->frames[0].name, "<module>") && stack->len <= 1 + 2 * 51;
}

/* Every second frame is called from C, 51 times: nothing blank between them, nothing left out. */
EACH_PYTHON(profile, callbacks_in_callbacks)
{
	struct run *run = profile(start(python, "callback.py"));
	uint64_t deep = 0;

	check_each_stack(run, is_step_and_lambda, "step and its lambda in turn");
	for (size_t i = 0; i < run->stacks.len; i++)
		deep += run->stacks.items[i].len >= 2 * 50 ? run->stacks.items[i].weight : 0;
	check(deep, "no stack is as deep as they go");
}

EACH_PYTHON(profile, no_shim_of_init)
{
	struct run *run = profile(start(python, "init.py"));

	check_share(run, shown("<module>;make;Box.__init__"), 100, 2);
	check(run->stacks.total == stacks__exactly(&run->stacks, shown("<module>;make;Box.__init__")) +
					   stacks__exactly(&run->stacks, "<module>;make") +
					   stacks__exactly(&run->stacks, "<module>"),
	      "frames that are no functions of the program");
}

EACH_PYTHON(profile, exceptions)
{
	struct run *run =
		profile(start(python, "raises.py"), .rate = "4999", .seconds = 1.5, .min_samples = 2000);

	check_share(run, "<module>;run;in_handler", 50, 4);
	check_share(run, "<module>;run;outside", 50, 4);
}

EACH_PYTHON(profile, second_interpreter)
{
	struct run *run =
		profile(start(python, "subinterp.py"), .rate = "499", .seconds = 0.7, .min_samples = 50);

	check(percent(run, stacks__ending_in(&run->stacks, "second;[interpreter 1];<module>;inner")) > 95,
	      "inner, called from second, has %.2f %%",
	      percent(run, stacks__ending_in(&run->stacks, "second;[interpreter 1];<module>;inner")));
}

#define NESTED "<module>;enter;second;[interpreter 1];<module>;inner"

/* With a GIL of its own from 3.12 on, and with the main interpreter's. */
EACH_PYTHON(profile, nested_interpreters)
{
	for (int shared = 0; shared < (python->minor < 12 ? 1 : 2); shared++) {
		struct target *target =
			start(python, "subinterp.py", .args = {"nested", shared ? "shared" : NULL});

		check_share(profile(target, .rate = "499", .seconds = 0.7, .min_samples = 50), NESTED, 100, 5);
		target__end(target);
	}
}

/* It is made after the attach; making it takes some time, too. */
EACH_KIND(profile, later_interpreter)
{
	struct run *run = profile(start(python, "subinterp.py", .args = {"late"}), .rate = "499", .seconds = 2,
				  .min_samples = 50);
	double rest = run->report.samples - stacks__with(&run->stacks, "create");

	check(stacks__exactly(&run->stacks, NESTED) > 0.95 * rest, "%llu of %.0f samples are in it",
	      (unsigned long long)stacks__exactly(&run->stacks, NESTED), rest);
}

/* 3.14 and 3.15 have a JIT. The stacks are the same with it and without. */
EACH_PYTHON(profile, jit_on_and_off)
{
	static const char *const settings[] = {"PYTHON_JIT=1", "PYTHON_JIT=0"};

	for (int i = 0; i < 2; i++) {
		struct target *target = start(python, "hotloop.py", .env = {settings[i]});
		struct run *run = profile(target, .seconds = 0.5, .min_samples = 100);

		check_share(run, "<module>;run;hot", 100, 2);
		for (size_t j = 0; j < run->stacks.len; j++) {
			const struct stack_frame *leaf = stack__leaf(&run->stacks.items[j]);

			check(strcmp(leaf->name, "hot") || (leaf->line >= 12 && leaf->line <= 18),
			      "%s: line %u is not of hot", settings[i], leaf->line);
		}
		target__end(target);
	}
}
