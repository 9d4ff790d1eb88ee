/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a profile says: shares, lines, names, callers, on programs whose right profile is known.
 */
#include "harness.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static bool is_near(double a, double b, double points)
{
	return fabs(a - b) <= points;
}

EACH_OF(supported_pythons, profile, shares)
{
	struct target *target = start(python, "shares.py");
	struct run *run = profile(target, .seconds = 2, .rate = "1999", .min_samples = 2500);
	const char *line;
	double shares[3];

	kill(target->pid, SIGTERM);
	line = child__wait_line(target->child, "shares ", 20);
	check(line && sscanf(line, "%lf %lf %lf", &shares[0], &shares[1], &shares[2]) == 3, "no shares");
	for (int i = 0; i < 3; i++) {
		char names[] = "<module>;run;a";
		double share;

		names[strlen(names) - 1] = 'a' + i;
		share = percent(run, stacks__exactly(&run->stacks, names));
		check(is_near(share, shares[i], 3), "%s has %.2f %%, should have %.2f", names, share,
		      shares[i]);
	}
}

EACH_PYTHON(profile, executing_line)
{
	struct target *target = start(python, "lines.py");
	struct run *run = profile(target);
	unsigned int hot;
	uint64_t weight = 0;

	marked_lines("lines.py", "HOT", &hot, 1);
	for (size_t i = 0; i < run->stacks.len; i++)
		if (stack__is(&run->stacks.items[i], "<module>;h") &&
		    stack__leaf(&run->stacks.items[i])->line == hot)
			weight += run->stacks.items[i].weight;
	check(percent(run, weight) >= 99, "line %u has %.2f %%", hot, percent(run, weight));
}
