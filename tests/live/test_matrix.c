/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The matrix: on every Python there is, the profile of truth.py against what that program measures itself.
 * Each target of it (shares, lines, ...) is a row in the file that PYBPFPROF_RESULTS names, which
 * scripts/check prints as a table: version, kind, engine, target, "ok" or what is wrong, and the greatest
 * difference from the truth, in points.
 */
#include "harness.h"

#include "base/util.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS		  2.0	/* that a share may be off, of a small one half of it */
#define MAX_WITHOUT_STATE 0.001 /* of the samples of threads that have one */
#define MAX_UNACCOUNTED	  1.0	/* percent on the way from one slice to the next, or at lines not marked */
#define MIN_WHOLE	  80.0	/* percent of a slice's samples that have its whole stack */
#define MIN_WORKING	  97.0	/* percent of the threads' samples in what they do all the time */
#define UNEVEN_BY_READV	  15.0	/* points: see check_threads */
#define MAX_PARTS	  8

/* One part of a stack that is expected: NAME, NAME:LINE or NAME*MOST. */
struct part {
	char name[64];
	unsigned int line; /* 0: any */
	unsigned int most;
};

struct truth {
	char target[16];
	double percent;
	struct part parts[MAX_PARTS];
	size_t len;
};

static void write_result(const struct python *python, const struct run *run, const char *target,
			 const char *fault, double figure)
{
	const char *path = getenv("PYBPFPROF_RESULTS");
	FILE *file = path && *path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "%s\t%s\t%s\t%s\t%s\t%.2f\n", python->version, python->kind,
		strstr(run->err, "by the bpf engine") ? "bpf" : "readv", target, fault ?: "ok", figure);
	fclose(file);
}

/* Ends the program, which then says what is true: everything that it printed. */
static const char *ask(struct target *target)
{
	kill(target->pid, SIGTERM);
	check(child__wait_line(target->child, "end", 30), "it does not say what is true: %s",
	      child__err(target->child));
	return child__out(target->child);
}

/* --- calls --- */

static void parse_parts(struct truth *truth, char *text)
{
	for (char *part; (part = strsep(&text, ";")) && truth->len < MAX_PARTS;) {
		struct part *out = &truth->parts[truth->len++];
		size_t len = strcspn(part, ":*");

		*out = (struct part){.most = 1};
		if (part[len] == ':')
			out->line = atoi(part + len + 1);
		else if (part[len] == '*')
			out->most = atoi(part + len + 1);
		snprintf(out->name, sizeof(out->name), "%.*s", (int)len, part);
	}
}

static size_t parse_truths(struct truth *truths, size_t max, const char *said)
{
	char *copy = strdup(said), *rest = copy, *line, stack[256];
	size_t count = 0;

	while ((line = strsep(&rest, "\n")) && count < max) {
		struct truth *truth = &truths[count];

		*truth = (struct truth){};
		if (sscanf(line, "truth %15s %lf %255[^\n]", truth->target, &truth->percent, stack) != 3)
			continue;
		parse_parts(truth, stack);
		count++;
	}
	free(copy);
	check(count > 10, "only %zu truths", count);
	return count;
}

/* Is the stack a beginning of that one? `parts`: how many parts it has of it. */
static bool is_begun(const struct stack *stack, const struct truth *truth, bool with_lines, size_t *parts)
{
	size_t at = 0;

	for (*parts = 0; *parts < truth->len && at < stack->len; (*parts)++) {
		const struct part *part = &truth->parts[*parts];
		unsigned int times = 0;

		while (times < part->most && at < stack->len && !strcmp(stack->frames[at].name, part->name) &&
		       (!with_lines || !part->line || stack->frames[at].line == part->line)) {
			times++;
			at++;
		}
		if (!times)
			return false;
	}
	return at == stack->len;
}

/* <module>;run and the slice's own function */
enum { SLICE_PARTS = 3 };

/* Every stack is one of the program's, and nearly all are told at the right lines. What is wrong, or NULL. */
static const char *find_strange(const struct run *run, const struct truth *truths, size_t count)
{
	uint64_t impossible = 0, unaccounted = 0;
	static char fault[512];
	const struct stack *example = NULL;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		bool possible = stack__is(stack, "[no Python frames]"), accounted = possible;
		size_t parts;

		for (size_t j = 0; j < count; j++) {
			possible |= is_begun(stack, &truths[j], false, &parts);
			accounted |= is_begun(stack, &truths[j], true, &parts) && parts >= SLICE_PARTS;
		}
		example = possible ? example : stack;
		impossible += possible ? 0 : stack->weight;
		unaccounted += possible && !accounted ? stack->weight : 0;
	}
	if (impossible)
		snprintf(fault, sizeof(fault), "%llu impossible stacks, such as %.400s",
			 (unsigned long long)impossible, stack__text(example));
	else if (percent(run, unaccounted) > MAX_UNACCOUNTED)
		snprintf(fault, sizeof(fault), "%.2f %% at lines that take no time",
			 percent(run, unaccounted));
	else if (run->report.without_python > MAX_WITHOUT_STATE * run->report.samples)
		snprintf(fault, sizeof(fault), "%.0f of %.0f samples without a thread state",
			 run->report.without_python, run->report.samples);
	else
		return NULL;
	return fault;
}

/* How many points a truth is missed by. */
static double compare(const struct run *run, const struct truth *truth, const char **fault)
{
	uint64_t all = 0, whole = 0;
	static char text[256];
	size_t parts;
	double off;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		if (!is_begun(stack, truth, true, &parts) || parts < SLICE_PARTS)
			continue;
		all += stack->weight;
		whole += parts == truth->len ? stack->weight : 0;
	}
	off = fabs(percent(run, all) - truth->percent);
	snprintf(text, sizeof(text), "%s has %.2f %% of %.2f, %.1f %% of that whole",
		 truth->parts[SLICE_PARTS - 1].name, percent(run, all), truth->percent,
		 100.0 * whole / (all ?: 1));
	if (off > fmin(POINTS, truth->percent / 2) || whole < MIN_WHOLE / 100 * all)
		*fault = text;
	if (!strcmp(truth->target, "names") && !strstr(run->out, truth->parts[SLICE_PARTS - 1].name)) {
		snprintf(text, sizeof(text), "%s is not in the table", truth->parts[SLICE_PARTS - 1].name);
		*fault = text;
	}
	return off;
}

EACH_OF(supported_pythons, truth, calls)
{
	static const char *const targets[] = {"shares",	   "lines",    "recursion", "generators",
					      "callbacks", "released", "names"};
	struct target *target = start(python, "truth.py");
	struct run *run =
		profile(target, .seconds = 2.5, .rate = "1999", .min_samples = 3500, .args = {"-l", "100"});
	const char *said = ask(target), *strange, *first = NULL;
	struct truth truths[32];
	size_t count = parse_truths(truths, ARRAY_SIZE(truths), said);

	strange = find_strange(run, truths, count);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		const char *fault = NULL;
		double most = -1;

		for (size_t j = 0; j < count; j++)
			if (!strcmp(truths[j].target, targets[i]))
				most = fmax(most, compare(run, &truths[j], &fault));
		check(most >= 0, "nothing is said of %s", targets[i]);
		fault = fault ?: strange;
		first = first ?: fault ? strdup(fault) : NULL;
		write_result(python, run, targets[i], fault, most);
	}
	check(!first, "%s", first);
	check(fabs(run->report.given - 1999) < 60, "%.1f Hz given", run->report.given);
}

/* --- threads --- */

struct thread_truth {
	char target[16], function[16], label[24]; /* "[thread 123 (" */
	double percent;
	uint64_t samples, working, without_state;
};

static size_t parse_threads(struct thread_truth *truths, size_t max, const char *said)
{
	size_t count = 0;
	int tid;

	for (const char *at = strstr(said, "truth "); at && count < max; at = strstr(at + 1, "truth ")) {
		struct thread_truth *truth = &truths[count++];

		*truth = (struct thread_truth){};
		check(sscanf(at, "truth %15s %lf %d %15s", truth->target, &truth->percent, &tid,
			     truth->function) == 4,
		      "it says: %s", at);
		snprintf(truth->label, sizeof(truth->label), "[thread %d (", tid);
	}
	check(count == 5, "%zu threads", count);
	return count;
}

/* Threading's own frames, then the thread's function. */
static bool is_of_thread(const struct stack *stack, const struct thread_truth *truth)
{
	size_t at = 1;

	while (at < stack->len && strstr(stack->frames[at].file, "threading.py"))
		at++;
	return at == stack->len || (at + 1 == stack->len && !strcmp(stack->frames[at].name, truth->function));
}

/* Counts the samples of each thread. Number of stacks that are of no thread, or of another one. */
static uint64_t count_samples(const struct run *run, struct thread_truth *truths, size_t count)
{
	uint64_t strange = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		bool empty = stack->len == 2 && !strcmp(stack->frames[1].name, "[no Python frames]"),
		     right = false;

		/* The main thread, which waits for the signal, may show up. */
		right = !strcmp(stack__leaf(stack)->name, "threads") && stack->len == 3;
		for (size_t j = 0; j < count; j++) {
			if (strncmp(stack->frames[0].name, truths[j].label, strlen(truths[j].label)))
				continue;
			truths[j].samples += stack->weight;
			truths[j].working +=
				strcmp(stack__leaf(stack)->name, truths[j].function) ? 0 : stack->weight;
			truths[j].without_state += empty ? stack->weight : 0;
			right = empty || is_of_thread(stack, &truths[j]);
		}
		strange += right ? 0 : stack->weight;
	}
	return strange;
}

/*
 * From outside, a thread that waits for a CPU looks as one that runs. Without a GIL these threads are five at
 * once, and which of them wait is a matter of what else the machine does; and the share of the native one is
 * then not to be had in any case.
 */
static void check_threads(const struct python *python, const struct thread_truth *truths,
			  const struct run *run, uint64_t strange, bool is_result)
{
	double points = by_readv() && python->free_threaded ? UNEVEN_BY_READV : POINTS, most = 0, off;
	uint64_t known = 0, working = 0, without_state = 0, native = truths[4].samples;
	char text[160] = "", empty[96] = "";

	for (int i = 0; i < 4; i++) {
		known += truths[i].samples;
		working += truths[i].working;
		without_state += truths[i].without_state;
	}
	for (int i = 0; i < 4; i++)
		most = fmax(most, fabs(100.0 * truths[i].samples / (known ?: 1) - truths[i].percent));
	if (strange)
		snprintf(text, sizeof(text), "%llu impossible stacks", (unsigned long long)strange);
	else if (most > points)
		snprintf(text, sizeof(text), "a thread's share is %.2f points off", most);
	else if (working < MIN_WORKING / 100 * known)
		snprintf(text, sizeof(text), "%.2f %% are in the threads' functions",
			 100.0 * working / known);
	if (is_result)
		write_result(python, run, "threads", text[0] ? text : NULL, most);

	off = fabs(100.0 * native / (known + native ?: 1) - truths[4].percent);
	if (without_state > MAX_WITHOUT_STATE * known)
		snprintf(empty, sizeof(empty), "%llu samples of Python's threads without a thread state",
			 (unsigned long long)without_state);
	else if (truths[4].without_state < native || !native)
		snprintf(empty, sizeof(empty), "the native thread has Python frames, or no samples");
	else if (off > POINTS && !by_readv())
		snprintf(empty, sizeof(empty), "the native thread's share is %.2f points off", off);
	if (is_result)
		write_result(python, run, "native", empty[0] ? empty : NULL, off);
	check(!text[0] && !empty[0], "%s %s", text, empty);
	check(known > 1000, "%llu samples of Python's threads", (unsigned long long)known);
}

EACH_OF(supported_pythons, truth, threads)
{
	struct target *target = start(python, "truth.py", .args = {"threads"});
	struct run *run = profile(target, .seconds = 2, .rate = "1999", .min_samples = 3500, .args = {"-t"});
	struct thread_truth truths[5];
	size_t count = parse_threads(truths, ARRAY_SIZE(truths), ask(target));

	check_threads(python, truths, run, count_samples(run, truths, count), true);
}

/* The same where no thread's own slot is known, as with another libc: the kernel side walks the lists. */
EACH_KIND(truth, threads_by_their_lists)
{
	struct target *target = start(python, "truth.py", .args = {"threads"});
	struct thread_truth truths[5];
	struct run *run;
	size_t count;

	if (by_readv())
		return; /* it knows no other way */
	run = profile(target, .seconds = 2, .rate = "1999", .min_samples = 3500,
		      .args = {"-t", "-v", "--debug-slot", "off"});
	count = parse_threads(truths, ARRAY_SIZE(truths), ask(target));
	check(strstr(run->err, "thread state: list of thread states"), "the lists are not used: %s",
	      run->err);
	check_threads(python, truths, run, count_samples(run, truths, count), false);
}
