/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of functions and files that are hard to print, and the names of code that is made and freed while the
 * program runs. Names of other alphabets: test_matrix.c. That every profile is valid, printable UTF-8 is checked wherever one is read.
 */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing that a terminal or a reader of the file would take for its own. */
EACH_PYTHON(names, hostile)
{
	struct run *run = profile(start(python, "names.py"), .rate = "1999",
				  .seconds = 1, .min_samples = 700);
	const char *seen[16];
	double shares[16] = {0};
	size_t functions = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		size_t at = 0;

		if (stack->len != 2)
			continue;
		while (at < functions && strcmp(seen[at], stack__leaf(stack)->name))
			at++;
		check(at < 16, "more functions than there are");
		if (at == functions)
			seen[functions++] = stack__leaf(stack)->name;
		shares[at] += percent(run, stack->weight);
	}
	check(functions == 7, "%zu functions", functions);
	for (size_t i = 0; i < functions; i++)
		check(fabs(shares[i] - 100.0 / 7) < 4, "%.60s has %.2f %%", seen[i], shares[i]);
	for (const unsigned char *c = (const unsigned char *)run->out; *c; c++)
		check((*c >= 0x20 && *c != 0x7f) || *c == '\n', "the table has the character 0x%02x", *c);
}

/* A byte that is no UTF-8 in the file's name, and a profiler in the C locale. */
EACH_PYTHON(names, file_that_is_no_utf8)
{
	struct target *target = start(python, "spin.py", .rename = "b\377d.py");
	struct run *run = profile(target, .seconds = 0.5, .min_samples = 50, .env = {"LC_ALL=C"});
	const char *file;

	check_share(run, "<module>;outer;middle;spin", 100, 1);
	file = strrchr(run->stacks.items[0].frames[0].file, '/');
	check(file && !strcmp(file, "/b\\xffd.py"), "the file is called %s", file);
}

/* The same byte in the command line, which stands above stacks; of a recording, too. */
LIVE_TEST(names, command_that_is_no_utf8)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py", .rename = "b\377d.py");
	const char *folder = scratch_folder("");
	char pid[16], path[CHILD_PATH], recording[CHILD_PATH];
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(path, sizeof(path), "%s/x.collapsed", folder);
	snprintf(recording, sizeof(recording), "%s/x.pbp", folder);
	run = profiler_run("-p", pid, "-d", "0.3", "-r", "499", "-q", "--by", "process", "-o", path, "-o", recording);
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	for (int i = 0; i < 2; i++) {
		const char *text = read_text(path);

		check(!strncmp(text, "process ", 8) && strstr(text, "/b\\xffd.py);<module>"), "%d: %.200s", i, text);
		run = profiler_run("report", recording, "-p", pid, "-q", "-o", path);
		check(run->code == 0 && strstr(run->err, "/b\\xffd.py in "), "exit code %d: %s", run->code, run->err);
	}
}

/* Before 3.10 a table says where other lines begin, and without one all is on the first. */
EACH_PYTHON(names, without_a_line_table)
{
	struct run *run = profile(start(python, "nolines.py"), .seconds = 0.5, .min_samples = 50);
	const struct stack_frame *leaf;
	unsigned int first;

	marked_lines("nolines.py", "FIRST", &first, 1);
	check_share(run, "<module>;f", 100, 1);
	leaf = stack__leaf(&run->stacks.items[0]);
	check(leaf->line == (python->minor < 10 ? first : 0) && strstr(leaf->file, "nolines.py"),
	      "f is in %s, line %u", leaf->file, leaf->line);
}

/* --- code that comes and goes --- */

EACH_PYTHON(names, of_evaluated_code)
{
	struct run *run = profile(start(python, "execd.py"));
	uint64_t right = 0, freed = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		if (stack__is(stack, "<module>;[code freed before it was read];hot"))
			freed += stack->weight;
		/* A caller's line is left out where it was not seen at the same instant as the callee. */
		if (stack__is(stack, "<module>;<module>;hot") && !strcmp(stack->frames[1].file, "<string>") &&
		    (stack->frames[1].line == 1 || (by_readv() && !stack->frames[1].line)))
			right += stack->weight;
	}
	/*
	 * Code that lives some 100 us: read from outside, some of it is gone before its name has been read, and that
	 * is said.
	 */
	check(percent(run, right) > (by_readv() ? 60 : 80), "<module>;<string>:<module>;hot has %.2f %%",
	      percent(run, right));
	check(percent(run, freed) < (by_readv() ? 20 : 0.5), "hot is called by code that was freed in %.2f %%",
	      percent(run, freed));
	check(percent(run, stacks__ending_in(&run->stacks, "hot") - right - freed) < 0.5,
	      "hot is called from elsewhere in %.2f %%",
	      percent(run, stacks__ending_in(&run->stacks, "hot") - right - freed));
}

/* One function gets a hundred names in turn, each with a new code object; addresses repeat. */
EACH_PYTHON(names, of_replaced_code)
{
	struct run *run = profile(start(python, "execd.py", .args = {"replace"}), .rate = "1999",
				  .seconds = 2, .min_samples = 2500);
	double shares[100] = {0}, other = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		const char *name = stack__leaf(stack)->name;
		unsigned int number;

		if (sscanf(name, "gen_%u", &number) == 1 && number < 100)
			shares[number] += percent(run, stack->weight);
		else
			other += percent(run, stack->weight);
	}
	check(other < 3, "%.2f %% are in no gen_N", other);
	for (int i = 0; i < 100; i++)
		check(shares[i] > 0.1 && shares[i] < 5, "gen_%d has %.2f %%", i, shares[i]);
}

/* Address, file and first line agree, yet it is another function. */
EACH_PYTHON(names, of_code_at_a_used_address)
{
	struct run *run = profile(start(python, "execd.py", .args = {"same"}), .rate = "4999", .seconds = 2,
				  .min_samples = 4000);
	uint64_t alpha = stacks__ending_in(&run->stacks, "alpha");
	uint64_t both = alpha + stacks__ending_in(&run->stacks, "omega");
	double share = both ? 100.0 * alpha / both : 0;

	check(fabs(share - 50) < 3, "alpha has %.2f %% of the two", share);
}

/*
 * Ever new functions in ever new files, each freed after one call: most are named, and memory stays bounded.
 */
EACH_PYTHON(names, ever_new)
{
	struct run *run = profile(start(python, "execd.py", .args = {"fresh"}), .rate = "4999", .seconds = 2,
				  .min_samples = 1000);
	uint64_t named = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack_frame *leaf = stack__leaf(&run->stacks.items[i]);
		unsigned int name, file;

		if (sscanf(leaf->name, "u%u", &name) != 1 || !leaf->file[0])
			continue;
		check(sscanf(leaf->file, "gen%u.py", &file) == 1 && name == file, "%s is in %s", leaf->name,
		      leaf->file);
		named += run->stacks.items[i].weight;
	}
	check(percent(run, named) > 20, "%.2f %% are named", percent(run, named));
	check(run->report.resident_mb > 0 && run->report.resident_mb < 64, "%.1f MB resident",
	      run->report.resident_mb);
}
