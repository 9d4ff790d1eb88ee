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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS		  2.0	/* that a share may be off */
#define MAX_WITHOUT_STATE 0.001 /* of the samples of threads that have one */
#define MAX_UNVERIFIED	  0.001
#define MAX_OTHER_LINES	  0.2  /* percent of samples at lines not marked */
#define MAX_BETWEEN	  3.0  /* percent on the way from one slice to the next */
#define MIN_WHOLE	  80.0 /* percent of a slice's samples that have its whole stack */
#define MIN_WORKING	  97.0 /* percent of the threads' samples in what they do all the time */
#define UNEVEN_AT_ONCE	  8.0  /* points: see compare_natives */
#define UNEVEN_BY_READV	  4.0  /* points: see compare_threads */
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

struct result {
	double figure;	 /* points; below 0: none */
	char fault[512]; /* "": none */
	bool is_share;	 /* the fault is nothing but a share that is off */
};

/* The first one counts. */
static void set_fault(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_fault(struct result *result, const char *format, ...)
{
	va_list args;

	if (result->fault[0])
		return;
	va_start(args, format);
	vsnprintf(result->fault, sizeof(result->fault), format, args);
	va_end(args);
}

static void write_result(const struct python *python, const struct run *run, const char *target,
			 const struct result *result)
{
	const char *path = getenv("PYBPFPROF_RESULTS");
	FILE *file = path && *path ? fopen(path, "a") : NULL;
	char figure[16] = "-";

	if (!file)
		return;
	if (result->figure >= 0)
		snprintf(figure, sizeof(figure), "%.2f", result->figure);
	fprintf(file, "%s\t%s\t%s\t%s\t%s\t%s\n", python->version, python->kind,
		strstr(run->err, "by the bpf engine") ? "bpf" : "readv", target,
		result->fault[0] ? result->fault : "ok", figure);
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

/* The dealer's own calls, of another file. */
static void cut_dealing(struct run *run)
{
	for (size_t i = 0; i < run->stacks.len; i++) {
		struct stack *stack = &run->stacks.items[i];

		while (stack->len > 1 && strstr(stack__leaf(stack)->file, "random.py"))
			stack->len--;
	}
}

/* Every stack is one of the program's, hardly any has a line that takes no time, and all have a thread state.
 */
static void find_strange(const struct run *run, const struct truth *truths, size_t count,
			 struct result *result)
{
	uint64_t impossible = 0, other_lines = 0, between = 0;
	const struct stack *example = NULL;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		/* What is marked claims nothing; how much of it there may be is checked below. */
		bool possible = stack__is(stack, "[no Python frames]") ||
				!strcmp(stack->frames[0].name, "[callers not verified]");
		bool in_slice = possible, right = possible;
		size_t parts;

		for (size_t j = 0; j < count; j++) {
			possible |= is_begun(stack, &truths[j], false, &parts);
			in_slice |= is_begun(stack, &truths[j], false, &parts) && parts >= SLICE_PARTS;
			right |= is_begun(stack, &truths[j], true, &parts) && parts >= SLICE_PARTS;
		}
		example = possible ? example : stack;
		impossible += possible ? 0 : stack->weight;
		other_lines += in_slice && !right ? stack->weight : 0;
		between += possible && !in_slice ? stack->weight : 0;
	}
	if (impossible)
		set_fault(result, "%llu impossible stacks, such as %.400s", (unsigned long long)impossible,
			  stack__text(example));
	else if (percent(run, other_lines) > MAX_OTHER_LINES)
		set_fault(result, "%.2f %% at lines that take no time", percent(run, other_lines));
	else if (percent(run, between) > MAX_BETWEEN)
		set_fault(result, "%.2f %% between slices", percent(run, between));
	else if (run->report.without_python > MAX_WITHOUT_STATE * run->report.samples)
		set_fault(result, "%.0f of %.0f samples without a thread state", run->report.without_python,
			  run->report.samples);
	else if (run->report.unverified > MAX_UNVERIFIED * run->report.samples)
		set_fault(result, "%.0f of %.0f samples unverified", run->report.unverified,
			  run->report.samples);
}

/* Points that a share may be off: of a small one half of it, and what chance does to so few samples. */
static double tolerance(const struct run *run, double share)
{
	double chance = 3 * sqrt(share * (100 - share) / run->report.samples);

	return fmin(POINTS, share / 2 + chance);
}

static void compare(const struct run *run, const struct truth *truth, struct result *result)
{
	const char *name = truth->parts[SLICE_PARTS - 1].name;
	uint64_t all = 0, whole = 0;
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
	result->figure = fmax(result->figure, off);
	if (!all || whole < MIN_WHOLE / 100 * all)
		set_fault(result, "%s has %.2f %%, %.1f %% of that whole", name, percent(run, all),
			  100.0 * whole / (all ?: 1));
	else if (!result->fault[0] && (result->is_share = off > tolerance(run, truth->percent)))
		set_fault(result, "%s has %.2f %% instead of %.2f", name, percent(run, all), truth->percent);
	if (!strcmp(truth->target, "names") && !strstr(run->out, name))
		set_fault(result, "%s is not in the table", name);
}

static const char *const TARGETS[] = {"shares",	"lines",     "recursion", "generators",
				      "callbacks", "released", "names"};

/* Of one target, by all of its slices. */
static void compare_target(const struct run *run, const struct truth *truths, size_t count, const char *name,
			   struct result *result)
{
	size_t compared = 0;

	find_strange(run, truths, count, result);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(truths[i].target, name))
			continue;
		compare(run, &truths[i], result);
		compared++;
	}
	check(compared, "nothing is said of %s", name);
}

/* As check_threads(): a difference of shares counts if it is there twice. */
static bool check_calls(const struct python *python, struct target *target, struct run *run, bool is_first)
{
	struct result results[ARRAY_SIZE(TARGETS)] = {}, all = {};
	struct truth truths[32];
	size_t count = parse_truths(truths, ARRAY_SIZE(truths), ask(target));
	bool shares = true;

	cut_dealing(run);
	for (size_t i = 0; i < ARRAY_SIZE(TARGETS); i++) {
		compare_target(run, truths, count, TARGETS[i], &results[i]);
		if (!results[i].fault[0])
			continue;
		shares &= results[i].is_share;
		set_fault(&all, "%s: %.400s", TARGETS[i], results[i].fault);
	}
	if (is_first && all.fault[0] && shares)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(TARGETS); i++)
		write_result(python, run, TARGETS[i], &results[i]);
	check(!all.fault[0], "%s", all.fault);
	check(fabs(run->report.given - 1999) < 60 + 19.99 * run->stolen, "%.1f Hz given, %.1f %% stolen",
	      run->report.given, run->stolen);
	return true;
}

EACH_OF(supported_pythons, truth, calls)
{
	for (int i = 0; i < 2; i++) {
		struct target *target = start(python, "truth.py");
		struct run *run = profile(target, .seconds = 2.5, .rate = "1999", .min_samples = 3500,
					  .signal = SIGUSR1, .args = {"-l", "100"});

		if (check_calls(python, target, run, !i))
			break;
	}
}

/* --- threads --- */

enum { KNOWN_THREADS = 4, THREADS = 6 }; /* then the native ones */

struct thread_truth {
	char target[16], function[16], label[24]; /* "thread 123" */
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
		snprintf(truth->label, sizeof(truth->label), "thread %d", tid);
	}
	check(count == THREADS, "%zu threads", count);
	return count;
}

/* "thread 123", or from 3.14 on, where the name has a space, "thread 123 (Thread-1". */
static bool is_label(const char *name, const char *label)
{
	size_t len = strlen(label);

	return !strncmp(name, label, len) && (!name[len] || name[len] == ' ');
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

		/* The main thread, which waits for signals, may show up. */
		right = stack->len >= 3 && !strcmp(stack->frames[1].name, "<module>") &&
			!strcmp(stack->frames[2].name, "threads");
		for (size_t j = 0; j < count; j++) {
			if (!is_label(stack->frames[0].name, truths[j].label))
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
 * From outside, a thread that waits for a CPU looks as one that runs, and a thread that has just been given
 * the GIL may have to. Without a GIL these threads are six at once, and which of them wait is a matter of
 * what else the machine does.
 */
static void compare_threads(const struct python *python, const struct thread_truth *truths, uint64_t strange,
			    struct result *result)
{
	double points = by_readv() ? UNEVEN_BY_READV : POINTS;
	uint64_t all = 0, working = 0;

	for (int i = 0; i < KNOWN_THREADS; i++) {
		all += truths[i].samples;
		working += truths[i].working;
	}
	for (int i = 0; i < KNOWN_THREADS; i++)
		result->figure = fmax(result->figure,
				      fabs(100.0 * truths[i].samples / (all ?: 1) - truths[i].percent));
	if (by_readv() && python->free_threaded)
		result->figure = -1;
	if (strange)
		set_fault(result, "%llu impossible stacks", (unsigned long long)strange);
	else if ((result->is_share = result->figure > points))
		set_fault(result, "a thread's share is %.2f points off", result->figure);
	else if (working < MIN_WORKING / 100 * all)
		set_fault(result, "%.2f %% are in the threads' functions", 100.0 * working / all);
	else if (all < 1000)
		set_fault(result, "%llu samples of Python's threads", (unsigned long long)all);
}

/*
 * Those that run no Python code: they are seen, as such, and the others are not taken for such. How the CPUs
 * are shared between three that could run at once changes with what else the machine does, also between the
 * signal and the first sample.
 */
static void compare_natives(const struct thread_truth *truths, struct result *result)
{
	uint64_t all = 0, known = 0, without_state = 0;

	for (int i = 0; i < THREADS; i++) {
		all += truths[i].samples;
		known += i < KNOWN_THREADS ? truths[i].samples : 0;
		without_state += i < KNOWN_THREADS ? truths[i].without_state : 0;
	}
	for (int i = KNOWN_THREADS; i < THREADS; i++) {
		result->figure = fmax(result->figure,
				      fabs(100.0 * truths[i].samples / (all ?: 1) - truths[i].percent));
		if (truths[i].without_state < truths[i].samples || !truths[i].samples)
			set_fault(result, "a native thread has Python frames, or no samples");
	}
	if (without_state > MAX_WITHOUT_STATE * known)
		set_fault(result, "%llu of %llu samples of Python's threads without a thread state",
			  (unsigned long long)without_state, (unsigned long long)known);
	else if (!result->fault[0] && (result->is_share = result->figure > UNEVEN_AT_ONCE && !by_readv()))
		set_fault(result, "a native thread's share is %.2f points off", result->figure);
	if (by_readv())
		result->figure = -1;
}

/*
 * Between the signal and the first sample the machine may do other things than later, which moves the shares:
 * a difference of shares counts if it is there twice, anything else at once. False: it has to be seen again.
 */
static bool check_threads(const struct python *python, struct target *target, struct run *run, bool is_first,
			  bool is_result)
{
	struct thread_truth truths[THREADS];
	size_t count = parse_threads(truths, ARRAY_SIZE(truths), ask(target));
	struct result threads = {}, natives = {};
	bool wrong;

	compare_threads(python, truths, count_samples(run, truths, count), &threads);
	compare_natives(truths, &natives);
	wrong = (threads.fault[0] && !threads.is_share) || (natives.fault[0] && !natives.is_share);
	if (is_first && !wrong && (threads.is_share || natives.is_share))
		return false;
	if (is_result) {
		write_result(python, run, "threads", &threads);
		write_result(python, run, "native", &natives);
	}
	check(!threads.fault[0] && !natives.fault[0], "%s %s", threads.fault, natives.fault);
	return true;
}

EACH_OF(supported_pythons, truth, threads)
{
	for (int i = 0; i < 2; i++) {
		struct target *target = start(python, "truth.py", .args = {"threads"});
		struct run *run = profile(target, .seconds = 2, .rate = "1999", .min_samples = 3500,
					  .signal = SIGUSR1, .args = {"-t"});

		if (check_threads(python, target, run, !i, true))
			break;
	}
}

/* The same where no thread's own slot is known, as with another libc: the kernel side walks the lists. */
EACH_KIND(truth, threads_by_their_lists)
{
	for (int i = 0; i < 2 && !by_readv(); i++) { /* the readv engine knows no other way */
		struct target *target = start(python, "truth.py", .args = {"threads"});
		struct run *run = profile(target, .seconds = 2, .rate = "1999", .min_samples = 3500,
					  .signal = SIGUSR1, .args = {"-t", "-v", "--debug-slot", "off"});

		check(strstr(run->err, "thread state: list of thread states"), "the lists are not used: %s",
		      run->err);
		if (check_threads(python, target, run, !i, false))
			break;
	}
}
