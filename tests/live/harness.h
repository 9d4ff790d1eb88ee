/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Live tests: a real Python runs a program of tests/targets, the real profiler samples it with real BPF, and
 * what it wrote is read back. As root, from the top of the source tree (make test-live).
 *
 *	EACH_PYTHON(profile, recursion)
 *	{
 *		struct target *target = start(python, "fib.py");
 *		struct run *run = profile(target);
 *
 *		check(percent(run, stacks__with(&run->stacks, "fib")) > 95, "fib is in %.1f %%", ...);
 *	}
 *
 * Nothing is judged by time: targets are sampled by the CPU time that they get, so a run that brought too few
 * samples on a busy machine is made again, longer.
 */
#pragma once

#include "child.h"
#include "pythons.h"
#include "stacks.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdint.h>

/* A test that is run once for each Python of the matrix. */
#define EACH_PYTHON(suite, name) EACH_OF(live_pythons, suite, name)
/* The same, for each of the list that `parameters` makes. */
#define EACH_OF(parameters, suite, name)                                                                     \
	ParameterizedTestParameters(suite, name)                                                             \
	{                                                                                                    \
		return parameters();                                                                         \
	}                                                                                                    \
	ParameterizedTest(const struct python *python, suite, name, .fini = clean_up, .timeout = 240)

/* ... for each way of laying out frames, where one version more would only take time */
#define EACH_KIND(suite, name) EACH_OF(kinds_of_python, suite, name)
/* ... for each that has a table of its own offsets (3.13 and later). */
#define EACH_WITH_TABLE(suite, name) EACH_OF(table_pythons, suite, name)

/* A test on one Python only, pick(). */
#define LIVE_TEST(suite, name) Test(suite, name, .fini = clean_up, .timeout = 240)

/* With PYBPFPROF_FEW these two are four only, one for each way that frames are kept. */
struct criterion_test_params live_pythons(void); /* the first of each version that is supported */
struct criterion_test_params
kinds_of_python(void); /* one with frame objects, one with cframes, 3.13 and later */
struct criterion_test_params table_pythons(void); /* of those, 3.13 and later, all of which are required */
struct criterion_test_params supported_pythons(void);  /* every one that the program supports */
struct criterion_test_params embeddable_pythons(void); /* of those, the ones that come with a libpython */
struct criterion_test_params free_threaded_pythons(void); /* every one that is */
struct criterion_test_params old_pythons(void);	       /* every one of 3.8 to 3.12 */
const struct python *pick(const char *version, const char *kind); /* fails the test if it is not there */

#define check(condition, ...)                                                                                \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			cr_assert_fail("%s", explain(#condition, __VA_ARGS__));                              \
	} while (0)
/* The message of a failure: which Python and program, what was wrong, what the profiler said. */
const char *explain(const char *condition, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- targets --- */

struct start {
	const struct python *python;
	const char *program;	 /* a file of tests/targets */
	const char *args[8];	 /* of the program */
	const char *env[4];	 /* "NAME=value" */
	const char *wrapper[8];	 /* a command that ends by running the rest of its arguments with exec */
	const char *interpreter; /* instead of the Python's own, as seen by the target */
	const char *rename;	 /* the program's file name, if it is another there */
	const char *text;	 /* the program itself, if it is not a file of tests/targets */
	bool not_ready;		 /* does not print "ready" */
};

struct target {
	const struct python *python;
	struct child *child;
	pid_t pid;
	char name[64];	       /* for messages */
	char file[CHILD_PATH]; /* the program, as the target names it */
	const char *folder;    /* of the program, from here */
};

/* Starts a program and waits until it is ready. */
#define start(python_, program_, ...)                                                                        \
	target__start(&(struct start){.python = (python_), .program = (program_), __VA_ARGS__})
struct target *target__start(const struct start *how);
/* For a test that starts one after the other: what still ran would take the next one's CPU time. */
void target__end(struct target *target);
/* A Python of a root, stopped before it has run one instruction: SIGCONT lets it go. The caller ends it. */
pid_t start_stopped(const struct python *python, const char *code);

/* The numbers of the program's lines that are marked with a comment: "HOT". */
size_t marked_lines(const char *program, const char *mark, unsigned int *out, size_t max);

/* --- the profiler --- */

struct report {
	double samples, lost, truncated, unverified, without_python;
	double given;	      /* Hz of CPU time; 0 = not said */
	double cpu_s, wall_s; /* of the target; of the run */
	double resident_mb, wakeups;
};

struct run {
	struct child *child;
	int code;
	const char *out, *err; /* what it printed */
	char file[CHILD_PATH]; /* the profile */
	struct report report;
	struct stacks stacks; /* empty if there is no file */
	/*
	 * Of profile(): percent of the target's CPU time that a hypervisor took from the machine's CPUs meanwhile. Timers
	 * go on then and CPU time does not: so much more is met, of what was to run next.
	 */
	double stolen;
};

/* The program under test: as built beside the tests, or what PYBPFPROF names, such as the one of ASAN=1. */
const char *profiler_path(void);

/* A copy of it where anybody may run it. */
const char *public_profiler(void);

/* Starts `pybpfprof ARGS...`; the words end with NULL. */
#define profiler(...) profiler__start((const char *const[]){__VA_ARGS__, NULL})
struct child *profiler__start(const char *const *args);

/* Waits for it and reads the report and, if `file` is not NULL, the profile. Fails if it takes too long. */
struct run *profiler__finish(struct child *profiler, const char *file);

/* Starts, waits, reads; no profile. For what is refused. */
#define profiler_run(...) profiler__finish(profiler(__VA_ARGS__), NULL)

struct request {
	struct target *target;
	double seconds;	      /* default 1 */
	const char *rate;     /* default 999 */
	uint64_t min_samples; /* default 200 */
	int signal;	      /* that the target gets before each try; 0: none */
	bool collections;     /* of garbage are shown: any allocation may begin one */
	const char *args[8];  /* more of them */
	const char *env[4];
};

/* A run that has to succeed: a whole profile whose sum is what the report says, the target as it was. */
#define profile(target_, ...) profile__run(&(struct request){.target = (target_), __VA_ARGS__})
struct run *profile__run(const struct request *request);

/* What holds for every run that wrote a profile; part of profile(). */
void check_written(const struct run *run);

/* Are the tests being run on the readv engine (PYBPFPROF_ENGINE)? It sees less of what lasts microseconds. */
bool by_readv(void);
/*
 * Names as the Python of the last target has them: before 3.11 code knows no qualified ones, and
 * "Thread.run;a.b" is "run;b". Valid for some calls more.
 */
const char *shown(const char *names);

double percent(const struct run *run, uint64_t weight);
/* Fails unless it ended with this code, says this on stderr, and nothing on stdout. */
void check_refused(const struct run *run, int code, const char *reason);
/* Fails unless the stacks that are exactly so ("<module>;run;a") have `expected` percent, within `points`. */
void check_share(const struct run *run, const char *names, double expected, double points);
/* The number that stands before a word of the report; -1 if it is not there. */
double number_before(const char *text, const char *word);
/* Fails with a look at the stack for any stack that `is_right` denies. */
void check_each_stack(const struct run *run, bool (*is_right)(const struct stack *stack), const char *what);
