/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks that change while they are read: not one may be a mixture of two moments. And deep ones: they are
 * whole.
 */
#include "harness.h"

#include "base/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A profile of half a second to some seconds at 5 kHz, as the machine allows. */
#define profile_fast(target, ...)                                                                            \
	profile(target, .rate = "4999", .seconds = 1, .min_samples = 1500, ##__VA_ARGS__)

static bool is_one_chain(const struct stack *stack)
{
	return !strcmp(stack->frames[0].name, "<module>") && stack->len <= 11 &&
	       (stack->len == 1 || stack__count(stack, "x") == stack->len - 1 ||
		stack__count(stack, "y") == stack->len - 1);
}

EACH_KIND(stacks, two_chains)
{
	struct run *run = profile_fast(start(python, "chains.py"));
	double x = percent(run, stacks__with(&run->stacks, "x"));
	double y = percent(run, stacks__with(&run->stacks, "y"));

	for (size_t i = 0; i < run->stacks.len; i++) {
		struct stack *stack = &run->stacks.items[i];

		/* randint, of another file */
		while (stack->len > 1 && strstr(stack__leaf(stack)->file, "random.py"))
			stack->len--;
	}
	check_each_stack(run, is_one_chain, "<module> and one name repeated");
	check(x > 20 && fabs(x - y) < 8, "x is in %.2f %%, y in %.2f %%", x, y);
}

static bool is_prefix_of_yields(const struct stack *stack)
{
	return stack__is(stack, "<module>;c;b;a") || stack__is(stack, "<module>;c;b") ||
	       stack__is(stack, "<module>;c") || stack__is(stack, "<module>");
}

EACH_PYTHON(stacks, generators_in_a_row)
{
	struct run *run = profile_fast(start(python, "gens.py"));

	check_each_stack(run, is_prefix_of_yields, "a prefix of <module>;c;b;a");
	check(stacks__exactly(&run->stacks, "<module>;c;b;a"), "a was never seen");
}

/* threading's own frames, then loop and churn; or the main thread, in threading's code. */
static bool is_churn(const struct stack *stack)
{
	bool is_main = !strcmp(stack->frames[0].name, "<module>");
	size_t base = is_main;

	while (base < stack->len && strstr(stack->frames[base].file, "threading.py"))
		base++;
	if (is_main || base == stack->len)
		return base == stack->len;
	return base == 3 && stack->len <= 12 && !strcmp(stack->frames[3].name, "loop") &&
	       stack__count(stack, "churn") == stack->len - 4;
}

EACH_KIND(stacks, churn_in_threads)
{
	struct run *run = profile(start(python, "churn.py"), .rate = "9999", .min_samples = 1500);

	check_each_stack(run, is_churn, "loop and up to 8 churn");
}

static bool is_shallow(const struct stack *stack)
{
	return !strcmp(stack->frames[0].name, "<module>") && stack->len <= 42 &&
	       stack__count(stack, "d") == stack->len - 1;
}

/* What a deep stack left in memory does not show under a shallow one. */
EACH_KIND(stacks, deep_and_shallow)
{
	struct run *run = profile_fast(start(python, "shallow.py"));

	check_each_stack(run, is_shallow, "<module> and up to 41 d");
	check(percent(run, stacks__exactly(&run->stacks, "<module>")) > 40, "<module> alone has %.2f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>")));
}

static bool is_task(const struct stack *stack)
{
	return stack__count(stack, "leaf") <= 1 && stack__count(stack, "mid") <= 1;
}

EACH_KIND(stacks, two_tasks)
{
	struct run *run = profile_fast(start(python, "tasks.py"));
	uint64_t both = stacks__ending_in(&run->stacks, "mid;leaf");
	uint64_t leaf = stacks__ending_in(&run->stacks, "leaf");
	double share = leaf ? 100.0 * both / leaf : 0;

	check_each_stack(run, is_task, "no frame of a task twice");
	check(fabs(share - 50) < 5, "mid;leaf has %.2f %% of leaf", share);
}

static bool is_greenlet(const struct stack *stack)
{
	size_t len = stack->len - !strcmp(stack__leaf(stack)->name, "work");
	bool first = !strcmp(stack->frames[0].name, "first");

	if (first)
		return len == 2 && !strcmp(stack->frames[1].name, "first_turn");
	return len == 12 && !strcmp(stack->frames[0].name, "second") && stack__count(stack, "down") == 10 &&
	       !strcmp(stack->frames[11].name, "second_turn");
}

/* Stacks that are exchanged by code that is no part of Python. */
EACH_WITH_TABLE(stacks, greenlets)
{
	struct target *target = start(python, "greenlets.py");
	struct run *run;
	double share;

	if (strstr(child__out(target->child), "absent"))
		return;
	run = profile_fast(target);
	share = percent(run, stacks__with(&run->stacks, "first_turn"));
	check_each_stack(run, is_greenlet, "one greenlet's");
	check(fabs(share - 100.0 / 3) < 4, "first_turn is in %.2f %%", share);
}

/* --- deep --- */

static bool is_whole_deep(const struct stack *stack, size_t depth)
{
	return stack->len == 3 + depth + 1 && stack__count(stack, "down") == depth &&
	       !strcmp(stack__leaf(stack)->name, "leaf") && strstr(stack->frames[2].file, "threading.py");
}

static void check_deep(const struct python *python, const char *depth, size_t frames, const char *kernel)
{
	struct target *target = start(python, "deep.py", .args = {depth});
	struct run *run = kernel ? profile(target, .min_samples = 150, .args = {"--kernel-frames", kernel})
				 : profile(target, .min_samples = 150);
	uint64_t whole = 0, main = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		whole += is_whole_deep(stack, frames) ? stack->weight : 0;
		main += stack->len < 8 && !strcmp(stack->frames[0].name, "<module>") ? stack->weight : 0;
	}
	check(percent(run, whole + main) >= 99.9 || run->stacks.total - whole - main <= 1, "%.2f %% are whole",
	      percent(run, whole + main));
	/* It is on its way into join at the start. Without a GIL it may wait there for a CPU as if it ran. */
	check(main <= 4 || (python->free_threaded && by_readv()), "%llu samples of the main thread",
	      (unsigned long long)main);
}

EACH_PYTHON(deep, five_thousand)
{
	check_deep(python, "5000", 5000, NULL);
	if (!by_readv())
		check_deep(python, "5000", 5000, "64");
}

EACH_KIND(deep, twenty_thousand)
{
	check_deep(python, "20000", 20000, NULL);
}

/* What is unverified or truncated is counted and shown as such; of the rest each is right. */
static bool is_marked(const struct stack *stack)
{
	return stack->frames[0].name[0] == '[';
}

static bool is_deepchurn(const struct stack *stack)
{
	size_t start =
		is_marked(stack); /* one that just fits may be marked, and begin with <module> all the same */

	if (start && strcmp(stack->frames[1].name, "<module>"))
		return stack__count(stack, "f") == stack->len - 1;
	return !strcmp(stack->frames[start].name, "<module>") && stack->len <= start + 702 &&
	       stack__count(stack, "f") == stack->len - 1 - start;
}

/* Of two runs the second has fewer frames walked in the kernel; there is none with the readv engine. */
static int runs(void)
{
	return by_readv() ? 1 : 2;
}

static void check_marks(const struct run *run)
{
	uint64_t marked = 0;

	for (size_t i = 0; i < run->stacks.len; i++)
		marked += is_marked(&run->stacks.items[i]) ? run->stacks.items[i].weight : 0;
	check(marked == run->report.unverified + run->report.truncated + run->report.without_python,
	      "%llu samples are marked in the profile", (unsigned long long)marked);
}

EACH_PYTHON(deep, going_down_and_up)
{
	struct target *target = start(python, "deepchurn.py");

	for (int i = 0; i < runs(); i++) {
		struct run *run = i ? profile(target, .args = {"--kernel-frames", "64"}) : profile(target);

		check_each_stack(run, is_deepchurn, "<module> and up to 701 f");
		check_marks(run);
	}
}

static bool has_matching_ends(const struct stack *stack)
{
	return !(stack__count(stack, "A") && (stack__count(stack, "B") || stack__count(stack, "tagB"))) &&
	       !(stack__count(stack, "B") && (stack__count(stack, "A") || stack__count(stack, "tagA"))) &&
	       stack->len <= 2 + 700 + 1;
}

EACH_PYTHON(deep, two_ends)
{
	struct target *target = start(python, "deepends.py");

	for (int i = 0; i < runs(); i++) {
		struct run *run =
			i ? profile_fast(target, .args = {"--kernel-frames", "64"}) : profile_fast(target);

		check_each_stack(run, has_matching_ends, "both ends are of one moment");
		check_marks(run);
		check(stacks__with(&run->stacks, "A") && stacks__with(&run->stacks, "B"),
		      "no stack is whole");
	}
}

/* The same below twenty different functions: the difference is far from the base. */
EACH_KIND(deep, two_ends_in_a_framework)
{
	struct target *target = start(python, "deepends.py", .args = {"400", "20"});
	struct run *run = profile_fast(target, .args = {"--kernel-frames", "100"});

	check_each_stack(run, has_matching_ends, "both ends are of one moment");
	check_marks(run);
}

/* The kernel side walks 64 frames, or one more. */
EACH_KIND(deep, as_deep_as_the_budget)
{
	static const char *const depths[] = {"59", "60", "61", "62", "63", "64"};
	double samples = 0, unverified = 0;

	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		struct target *target = start(python, "deep.py", .args = {depths[i]});
		struct run *run = profile(target, .min_samples = 30, .args = {"--kernel-frames", "64"});

		samples += run->report.samples;
		unverified += run->report.unverified;
		target__end(target);
	}
	check(unverified <= 0.01 * samples, "%.0f of %.0f are unverified", unverified, samples);
}

static bool is_await(const struct stack *stack)
{
	return stack__count(stack, "level") <= 900;
}

EACH_KIND(deep, awaits)
{
	/* At this rate the kernel side walks them whole. */
	struct run *run = profile(start(python, "awaits.py"), .rate = "99", .min_samples = 50);
	uint64_t whole = 0;

	check_each_stack(run, is_await, "up to 900 level");
	check_marks(run);
	for (size_t i = 0; i < run->stacks.len; i++)
		if (stack__count(&run->stacks.items[i], "level") == 900 && !is_marked(&run->stacks.items[i]))
			whole += run->stacks.items[i].weight;
	check(percent(run, whole) > 60, "%.2f %% are 900 deep, %.0f unverified", percent(run, whole),
	      run->report.unverified);
}
