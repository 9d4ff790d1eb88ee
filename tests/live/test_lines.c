/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names and lines of threads that stay where they are, below many kinds of calls (shapes.py): those that
 * sys._current_frames() gives. What profiles say of them, while they are busy, and dump, while they wait.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACKS = 6, TEXT_MAX = 8192, FRAMES_MAX = 256 };

/* "name:line;name:line", outermost first, as the program says it of each of its threads. */
struct truths {
	char *text;
	const char *stacks[STACKS];
};

static void read_truths(struct truths *truths, const struct target *target)
{
	char *rest = truths->text = strdup(child__out(target->child)), *line;
	size_t count = 0;

	while ((line = strsep(&rest, "\n"))) {
		if (strncmp(line, "stack ", 6))
			continue;
		check(count < STACKS, "more stacks than there should be");
		truths->stacks[count++] = line + 6;
	}
	check(count == STACKS, "%zu stacks", count);
}

/* Where two texts begin to differ. */
static const char *differing(const char *text, const char *from)
{
	size_t at = 0, start = 0;

	for (; text[at] && text[at] == from[at]; at++)
		start = text[at] == ';' ? at + 1 : start;
	return text + start;
}

static void write_stack(const struct stack *stack, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < stack->len && used < size; i++)
		used += snprintf(out + used, size - used, "%s%s:%u", i ? ";" : "", stack->frames[i].name,
				 stack->frames[i].line);
}

EACH_OF(supported_pythons, lines, of_profiles)
{
	struct target *target = start(python, "shapes.py");
	struct run *run = profile(target, .seconds = 1, .min_samples = 600);
	static char text[TEXT_MAX];
	struct truths truths;
	uint64_t all = 0;

	read_truths(&truths, target);
	for (size_t i = 0; i < STACKS; i++) {
		uint64_t weight = 0;

		for (size_t j = 0; j < run->stacks.len; j++) {
			write_stack(&run->stacks.items[j], text, sizeof(text));
			weight += strcmp(text, truths.stacks[i]) ? 0 : run->stacks.items[j].weight;
		}
		write_stack(&run->stacks.items[0], text, sizeof(text));
		check(percent(run, weight) > 3, "%s has %.2f %%; one stack is %s", truths.stacks[i],
		      percent(run, weight), text);
		all += weight;
	}
	check(percent(run, all) > 98, "these have %.2f %%", percent(run, all));
	free(truths.text);
}

/* The stack of one thread in the JSON, of which `end` is the end. Frames are there from the innermost on. */
static void read_frames(const char *json, const char *end, char *out, size_t size)
{
	static const char function[] = "{\"function\": \"", line[] = "\"line\": ";
	const char *frames[FRAMES_MAX];
	size_t count = 0, used = 0;

	for (const char *at = json; (at = strstr(at, function)) && at < end; at++) {
		check(count < FRAMES_MAX, "more frames than there are");
		frames[count++] = at + strlen(function);
	}
	out[0] = '\0';
	while (count-- && used < size) {
		const char *name = frames[count], *number = strstr(name, line);

		check(number, "a frame has no line");
		used += snprintf(out + used, size - used, "%s%.*s:%d", used ? ";" : "",
				 (int)strcspn(name, "\""), name, atoi(number + strlen(line)));
	}
}

static void check_dump(const struct truths *truths, const char *json)
{
	static const char frames[] = "\"frames\": [";
	static char text[TEXT_MAX], nearest[STACKS][TEXT_MAX];
	bool seen[STACKS] = {};

	for (const char *at = strstr(json, frames), *next; at; at = next) {
		next = strstr(at + 1, frames);
		read_frames(at, next ?: at + strlen(at), text, sizeof(text));
		for (size_t i = 0; i < STACKS; i++) {
			seen[i] |= !strcmp(text, truths->stacks[i]);
			if (differing(truths->stacks[i], text) - truths->stacks[i] >=
			    differing(truths->stacks[i], nearest[i]) - truths->stacks[i])
				snprintf(nearest[i], sizeof(nearest[i]), "%s", text);
		}
	}
	for (size_t i = 0; i < STACKS; i++)
		check(seen[i], "instead of %.100s there is %.100s in %s",
		      differing(truths->stacks[i], nearest[i]), differing(nearest[i], truths->stacks[i]),
		      truths->stacks[i]);
}

EACH_OF(supported_pythons, lines, of_dump)
{
	struct target *target;
	struct truths truths;
	struct run *run;
	char pid[16];

	if (by_readv())
		return; /* it has no engine */
	target = start(python, "shapes.py", .args = {"still"});
	read_truths(&truths, target);
	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = profiler_run("dump", "-p", pid, "--json");
	check(run->code == 0, "exit code %d", run->code);
	check_dump(&truths, run->out);
	free(truths.text);
}
