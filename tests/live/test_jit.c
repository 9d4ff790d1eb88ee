/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines under the JIT of 3.14 and 3.15: those of code that it made are marked, others are not, and nothing is
 * without it.
 */
#include "harness.h"

#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITH_JIT    "PYTHON_JIT=1"
#define WITHOUT_JIT "PYTHON_JIT=0"

static const char *const ENGINES[] = {"--engine=bpf", "--engine=readv"};

/* The versions that have one. */
static struct criterion_test_params pythons_with_jit(void)
{
	const struct python *all;
	size_t count = pythons__all(&all), taken = 0;
	struct python *copy = cr_malloc((count + 1) * sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		if (all[i].minor >= 14 && python__is_supported(&all[i]) && !all[i].free_threaded &&
		    !strcmp(all[i].kind, "debian"))
			copy[taken++] = all[i];
	return cr_make_param_array(struct python, copy, taken);
}

static struct target *start_jit(const struct python *python, const char *setting)
{
	struct target *target = start(python, "jit.py", .env = {setting});
	const char *jit = child__wait_line(target->child, "jit ", 1);

	check(jit && atoi(jit) == !strcmp(setting, WITH_JIT), "with %s its JIT is %s", setting,
	      jit ?: "not told");
	return target;
}

/* Samples in which the innermost function is the one of that name: all, or those with a line of that kind. */
static uint64_t leaves(const struct run *run, const char *name)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->stacks.len; i++)
		if (!strcmp(stack__leaf(&run->stacks.items[i])->name, name))
			sum += run->stacks.items[i].weight;
	return sum;
}

static double approximate_share(const struct run *run, const char *name)
{
	uint64_t all = leaves(run, name), marked = 0;

	check(all >= 30, "only %llu samples of %s", (unsigned long long)all, name);
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack_frame *leaf = stack__leaf(&run->stacks.items[i]);

		if (!strcmp(leaf->name, name) && leaf->approximate)
			marked += run->stacks.items[i].weight;
	}
	return 100.0 * marked / all;
}

static bool has_exact_callers(const struct stack *stack)
{
	for (size_t i = 0; i + 1 < stack->len; i++)
		if (stack->frames[i].approximate)
			return false;
	return true;
}

/*
 * What calls says where it does so, also if both functions have become one piece of code, and if it is C that
 * calls the function.
 */
static bool is_called_there(const struct stack *stack)
{
	static const char *const called[] = {"helper", "other", "key"};
	static unsigned int lines[ARRAY_SIZE(called)];
	const struct stack_frame *caller = stack->len > 1 ? &stack->frames[stack->len - 2] : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(called); i++) {
		char mark[32];

		snprintf(mark, sizeof(mark), "CALLS %s", called[i]);
		if (!lines[i])
			marked_lines("jit.py", mark, &lines[i], 1);
		if (!strcmp(stack__leaf(stack)->name, called[i]))
			return caller && !strcmp(caller->name, "caller") && caller->line == lines[i];
	}
	return true;
}

EACH_OF(pythons_with_jit, jit, lines_are_marked)
{
	struct target *target = start_jit(python, WITH_JIT);

	for (size_t i = 0; i < ARRAY_SIZE(ENGINES); i++) {
		/* At such a rate, as helper has a twentieth of the time. */
		struct run *run = profile(target, .args = {ENGINES[i]}, .rate = "4999", .seconds = 2,
					  .min_samples = 5000);
		double marked = number_before(run->err, "%) approximate, marked ~");
		uint64_t all = 0;

		for (size_t j = 0; j < run->stacks.len; j++)
			all += stack__leaf(&run->stacks.items[j])->approximate ? run->stacks.items[j].weight
									       : 0;
		check(approximate_share(run, "hot") > 95, "hot: %.1f %%", approximate_share(run, "hot"));
		check(approximate_share(run, "helper") > 80, "helper: %.1f %%",
		      approximate_share(run, "helper"));
		check(approximate_share(run, "cold") < 1, "cold: %.1f %%", approximate_share(run, "cold"));
		check_each_stack(run, has_exact_callers, "callers have lines");
		check_each_stack(run, is_called_there, "functions are called where they are");
		check(marked > 0 && marked - 100.0 * all / run->stacks.total < 0.1 &&
			      100.0 * all / run->stacks.total - marked < 0.1,
		      "%.1f %% are said to be approximate, %.1f %% are", marked,
		      100.0 * all / run->stacks.total);
	}
}

static bool is_exact(const struct stack *stack)
{
	return has_exact_callers(stack) && !stack__leaf(stack)->approximate;
}

EACH_OF(pythons_with_jit, jit, nothing_is_marked_without)
{
	struct target *target = start_jit(python, WITHOUT_JIT);

	for (size_t i = 0; i < ARRAY_SIZE(ENGINES); i++) {
		struct run *run = profile(target, .args = {ENGINES[i]});

		check_each_stack(run, is_exact, "lines are exact");
		check_each_stack(run, is_called_there, "functions are called where they are");
		check(!strstr(run->err, "approximate"), "the report tells of approximate lines");
	}
}

/* By function there is nothing to mark. */
EACH_OF(pythons_with_jit, jit, functions_are_not_marked)
{
	struct run *run = profile(start_jit(python, WITH_JIT), .args = {"--function"});

	check_each_stack(run, is_exact, "functions have exact lines");
}

EACH_OF(pythons_with_jit, jit, dump_marks_lines)
{
	struct target *target = start_jit(python, WITH_JIT);
	bool in_hot = false, in_cold = false;
	char text[16];

	snprintf(text, sizeof(text), "%d", target->pid);
	for (int i = 0; i < 50 && !(in_hot && in_cold); i++) {
		struct run *run = profiler_run("dump", "-p", text, "--json");
		const char *hot = strstr(run->out, "{\"function\": \"hot\""),
			   *cold = strstr(run->out, "{\"function\": \"cold\""),
			   *below = strstr(run->out, "{\"function\": \"run\"");

		check(run->code == 0, "exit code %d", run->code);
		if (hot) {
			const char *mark = strstr(hot, "\"line_approximate\": ");

			in_hot |= mark && !strncmp(mark + 20, "true", 4);
		}
		if (cold) {
			const char *mark = strstr(cold, "\"line_approximate\": ");

			check(mark && !strncmp(mark + 20, "false", 5), "%s", run->out);
			in_cold = true;
		}
		check(!below || !strncmp(strstr(below, "\"line_approximate\": ") + 20, "false", 5), "%s",
		      run->out);
		pause_for(0.013 + 0.001 * i);
	}
	check(in_hot && in_cold, "hot %d, cold %d", in_hot, in_cold);
}
