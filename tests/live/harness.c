/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See harness.h.
 */
#include "harness.h"

#include "base/util.h"

#include <criterion/hooks.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_S	    60 /* a debug build on a busy machine */
#define FINISH_S    60 /* over the duration */
#define TRIES	    4
#define TARGET_ENV  "PBP_LIMIT=100" /* the target ends itself after that */

static const struct target *last_target;
static const struct run *last_run;

/* --- the matrix --- */

/* In suites where they are like the others (Makefile), these would only take time. */
static bool is_left_out(const struct python *python)
{
	const char *wanted = getenv("PYBPFPROF_FREE_THREADED");

	return python->free_threaded && wanted && !strcmp(wanted, "0");
}

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	const struct python *pythons;
	size_t count = pythons__all(&pythons);

	printf("matrix:");
	for (size_t i = 0; i < count; i++)
		if (python__is_supported(&pythons[i]))
			printf(" %s (%s%s)", pythons[i].version, pythons[i].kind,
			       is_left_out(&pythons[i]) ? ", left out" : "");
	printf("; refused:");
	for (size_t i = 0; i < count; i++)
		if (!python__is_supported(&pythons[i]))
			printf(" %s (%s)", pythons[i].version, pythons[i].kind);
	printf("; NOT HERE, SO NOT TESTED:");
	for (size_t i = 0; PYTHONS_FREE_THREADED[i]; i++)
		if (!pythons__find(PYTHONS_FREE_THREADED[i], NULL))
			printf(" %s", PYTHONS_FREE_THREADED[i]);
	printf("\n");
	fflush(stdout);
}

Test(matrix, is_complete)
{
	cr_assert_str_empty(pythons__missing(), "these Pythons should be there (scripts/test-pythons):%s",
			    pythons__missing());
}

static struct criterion_test_params copy_of(const struct python **chosen, size_t count)
{
	struct python *copy = cr_malloc((count ?: 1) * sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		copy[i] = *chosen[i];
	return cr_make_param_array(struct python, copy, count);
}

/* The first of each version; of the kind that has most of them, if it is there. */
static size_t choose(const struct python **chosen, const char *const *versions, const char *kind)
{
	size_t count = 0;

	for (size_t i = 0; versions[i]; i++) {
		const struct python *python =
			pythons__find(versions[i], kind) ?: pythons__find(versions[i], NULL);

		if (python && !is_left_out(python))
			chosen[count++] = python;
	}
	return count;
}

/* Those of 3.13 and later, after the old ones. */
static struct criterion_test_params with_newer(const char *const *old)
{
	const struct python *chosen[32];
	size_t count = choose(chosen, old, "pyenv");

	count += choose(chosen + count, PYTHONS_REQUIRED, "debian");
	return copy_of(chosen, count + choose(chosen + count, PYTHONS_FREE_THREADED, "built"));
}

struct criterion_test_params table_pythons(void)
{
	static const char *const none[] = {NULL};

	return with_newer(none);
}

/* One of each way that frames are kept, for a second run over the same tests. */
static struct criterion_test_params few_pythons(void)
{
	static const char *const old[] = {"3.9", "3.11", NULL}, *const new[] = {"3.13", "3.13t", "3.15", NULL};
	const struct python *chosen[32];
	size_t count = choose(chosen, old, "pyenv");

	return copy_of(chosen, count + choose(chosen + count, new, "debian"));
}

static bool wants_few(void)
{
	const char *few = getenv("PYBPFPROF_FEW");

	return few && *few;
}

struct criterion_test_params kinds_of_python(void)
{
	static const char *const old[] = {"3.9", "3.11", NULL};

	return wants_few() ? few_pythons() : with_newer(old);
}

struct criterion_test_params live_pythons(void)
{
	return wants_few() ? few_pythons() : with_newer(PYTHONS_OLD);
}

static struct criterion_test_params filtered(bool (*takes)(const struct python *python))
{
	const struct python *pythons, *chosen[64];
	size_t all = pythons__all(&pythons), count = 0;

	for (size_t i = 0; i < all; i++)
		if (takes(&pythons[i]) && !is_left_out(&pythons[i]))
			chosen[count++] = &pythons[i];
	return copy_of(chosen, count);
}

/* Debian has no libpython of its debug build, nor the host of what is its own. */
static bool is_embeddable(const struct python *python)
{
	return python__is_supported(python) && !python->debug && strcmp(python->kind, "host") != 0;
}

struct criterion_test_params supported_pythons(void)
{
	return filtered(python__is_supported);
}

struct criterion_test_params embeddable_pythons(void)
{
	return filtered(is_embeddable);
}

static bool is_free_threaded(const struct python *python)
{
	return python__is_supported(python) && python->free_threaded;
}

struct criterion_test_params free_threaded_pythons(void)
{
	return filtered(is_free_threaded);
}

struct criterion_test_params old_pythons(void)
{
	return filtered(python__is_old);
}

const struct python *pick(const char *version, const char *kind)
{
	const struct python *python = pythons__find(version, kind);

	cr_assert(python, "there is no Python %s here", version);
	return python;
}

/* --- messages --- */

const char *explain(const char *condition, const char *format, ...)
{
	char *text = NULL, *message;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = "";
	va_end(args);
	if (asprintf(&message, "Python %s, %s: %s\n  not so: %s\n%s%s",
		     last_target ? last_target->python->version : "of no target",
		     last_target ? last_target->name : "", text, condition,
		     last_run ? "  the profiler said:\n" : "", last_run ? last_run->err : "") < 0)
		return condition;
	return message;
}

const char *shown(const char *names)
{
	static char texts[8][128];
	static unsigned int next;
	char *text = texts[next++ % ARRAY_SIZE(texts)], *start = text;

	cr_assert_lt(strlen(names), sizeof(texts[0]));
	if (!last_target || last_target->python->minor >= 11)
		return names;
	for (const char *c = names; *c; c++) {
		if (*c == '.')
			text = start; /* what stands before it is the qualification */
		else
			*text++ = *c;
		if (*c == ';')
			start = text;
	}
	*text = '\0';
	return texts[(next - 1) % ARRAY_SIZE(texts)];
}

double percent(const struct run *run, uint64_t weight)
{
	return stacks__percent(&run->stacks, weight);
}

void check_refused(const struct run *run, int code, const char *reason)
{
	check(run->code == code, "exit code %d instead of %d: %s", run->code, code, run->err);
	check(strstr(run->err, reason), "\"%s\" is not in: %s", reason, run->err);
	check(!run->out[0], "stdout has: %s", run->out);
}

void check_share(const struct run *run, const char *names, double expected, double points)
{
	double share = percent(run, stacks__exactly(&run->stacks, names));

	check(share >= expected - points && share <= expected + points, "%s has %.2f %%, should have %.2f",
	      names, share, expected);
}

void check_each_stack(const struct run *run, bool (*is_right)(const struct stack *stack), const char *what)
{
	uint64_t wrong = 0;
	const struct stack *example = NULL;

	for (size_t i = 0; i < run->stacks.len; i++) {
		if (is_right(&run->stacks.items[i]))
			continue;
		example = example ?: &run->stacks.items[i];
		wrong += run->stacks.items[i].weight;
	}
	check(!wrong, "%s: %llu of %llu samples are not, such as %s (%zu frames)", what,
	      (unsigned long long)wrong, (unsigned long long)run->stacks.total, stack__text(example),
	      example->len);
}

/* --- targets --- */

static void add_words(const char **argv, size_t *count, const char *const *words, size_t max)
{
	for (size_t i = 0; i < max && words[i]; i++)
		argv[(*count)++] = words[i];
}

/* wrapper..., chroot ROOT PYTHON (or what stands in its place), program, args... */
static void add_command(const char **argv, size_t *count, const struct start *how, char *file)
{
	char *words = strdup(how->python->command), *word;

	add_words(argv, count, how->wrapper, ARRAY_SIZE(how->wrapper));
	while ((word = strsep(&words, " ")))
		argv[(*count)++] = word;
	if (how->interpreter)
		argv[*count - 1] = how->interpreter;
	argv[(*count)++] = file;
	add_words(argv, count, how->args, ARRAY_SIZE(how->args));
	argv[*count] = NULL;
}

struct target *target__start(const struct start *how)
{
	struct target *target = calloc(1, sizeof(*target));
	const char *argv[32], *name = how->rename ?: how->program;
	struct child_config config = {.argv = argv, .group = true};
	char from[CHILD_PATH], to[CHILD_PATH + 256];
	size_t count = 0;

	last_target = target;
	last_run = NULL;
	target->python = how->python;
	snprintf(target->name, sizeof(target->name), "%s %s", name, how->args[0] ?: "");
	target->folder = scratch_folder(how->python->root);
	snprintf(to, sizeof(to), "%s/%s", target->folder, name);
	snprintf(from, sizeof(from), "tests/targets/%s", how->program ?: "");
	if (how->text)
		write_file(to, how->text);
	else
		copy_file(from, to);
	snprintf(target->file, sizeof(target->file), "%s", to + strlen(how->python->root));
	add_command(argv, &count, how, target->file);
	config.env[0] = TARGET_ENV;
	for (size_t i = 0; i + 1 < ARRAY_SIZE(config.env) && how->env[i]; i++)
		config.env[i + 1] = how->env[i];
	target->child = child__start(&config);
	target->pid = target->child->pid;
	if (!how->not_ready)
		check(child__wait_line(target->child, "ready", READY_S), "the target did not get ready: %s",
		      child__err(target->child));
	return target;
}

void target__end(struct target *target)
{
	kill(target->pid, SIGKILL);
	check(child__wait(target->child, 10), "it does not end");
}

pid_t start_stopped(const struct python *python, const char *code)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/usr/bin/python3.%d", python->minor);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(python->root) || chdir("/") || ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(126);
		execl(path, path, "-c", code, NULL);
		_exit(127);
	}
	check(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "it does not stop at its exec");
	check(!ptrace(PTRACE_DETACH, pid, 0, SIGSTOP), "it cannot be let go");
	return pid;
}

size_t marked_lines(const char *program, const char *mark, unsigned int *out, size_t max)
{
	char path[CHILD_PATH], comment[64], *text, *rest;
	size_t count = 0;

	snprintf(path, sizeof(path), "tests/targets/%s", program);
	snprintf(comment, sizeof(comment), "# %s", mark);
	rest = text = read_text(path);
	for (unsigned int number = 1; rest && count < max; number++)
		if (strstr(strsep(&rest, "\n"), comment))
			out[count++] = number;
	free(text);
	check(count, "%s has no line marked %s", program, mark);
	return count;
}

/* --- the profiler --- */

const char *profiler_path(void)
{
	static char path[PATH_MAX];
	const char *other = getenv("PYBPFPROF");
	ssize_t len;

	if (other && *other)
		return other;
	len = path[0] ? 0 : readlink("/proc/self/exe", path, sizeof(path) - 32);
	if (len > 0) {
		path[len] = '\0';
		/* build/live/test_x and build/pybpfprof */
		for (int i = 0; i < 2; i++)
			*strrchr(path, '/') = '\0';
		strcat(path, "/pybpfprof");
	}
	return path;
}

const char *public_profiler(void)
{
	static char path[CHILD_PATH];

	snprintf(path, sizeof(path), "%s/pybpfprof", scratch_folder(""));
	copy_file(profiler_path(), path);
	chmod(path, 0755);
	return path;
}

static struct child *start_profiler(const char *const *args, const char *const *env)
{
	const char *argv[32] = {profiler_path()};
	struct child_config config = {.argv = argv};
	size_t count = 1;

	add_words(argv, &count, args, ARRAY_SIZE(argv) - 2);
	for (size_t i = 0; env && i < ARRAY_SIZE(config.env) && env[i]; i++)
		config.env[i] = env[i];
	return child__start(&config);
}

struct child *profiler__start(const char *const *args)
{
	return start_profiler(args, NULL);
}

double number_before(const char *text, const char *word)
{
	const char *found = strstr(text, word), *number = found;

	if (!found)
		return -1;
	while (number > text && (isdigit((unsigned char)number[-1]) || number[-1] == '.'))
		number--;
	return number == found ? -1 : strtod(number, NULL);
}

static void read_report(struct report *report, const char *text)
{
	*report = (struct report){
		.samples = number_before(text, " taken"),
		.lost = number_before(text, " lost"),
		.truncated = number_before(text, " truncated"),
		.unverified = number_before(text, " unverified"),
		.without_python = number_before(text, " without Python frames"),
		.given = number_before(text, " given"),
		.cpu_s = number_before(text, " s of CPU in "),
		.wall_s = number_before(text, " s by the "),
		.resident_mb = number_before(text, " MB resident"),
		.wakeups = strstr(text, "by the readv engine") ? 0 : number_before(text, " wake-up"),
	};
}

struct run *profiler__finish(struct child *profiler, const char *file)
{
	struct run *run = calloc(1, sizeof(*run));
	const char *fault;

	run->child = profiler;
	if (!child__wait(profiler, FINISH_S)) {
		kill(profiler->pid, SIGKILL);
		check(false, "the profiler does not end; it said: %s", child__err(profiler));
	}
	run->code = child__code(profiler);
	run->out = child__out(profiler);
	run->err = child__err(profiler);
	last_run = run;
	read_report(&run->report, run->err);
	check(run->code < 128, "the profiler died of signal %d", run->code - 128);
	if (file && !access(file, F_OK)) {
		snprintf(run->file, sizeof(run->file), "%s", file);
		fault = stacks__parse(&run->stacks, file);
		check(!fault, "%s %s", file, fault);
	}
	return run;
}

void check_written(const struct run *run)
{
	const struct report *report = &run->report;

	check(run->code == 0, "exit code %d", run->code);
	check(run->file[0], "there is no profile");
	check(report->samples >= 1, "the report says no number of samples");
	check(run->stacks.total == report->samples, "the file has %llu samples, the report %.0f",
	      (unsigned long long)run->stacks.total, report->samples);
	check(report->wakeups >= 0 && report->wakeups <= 100 * report->wall_s + 10, "%.0f wake-ups in %.2f s",
	      report->wakeups, report->wall_s);
}

/* Nothing else in the folder: no temporary file is left. */
static void check_alone(const char *folder, const char *name)
{
	DIR *dir = opendir(folder);

	check(dir, "%s is gone", folder);
	for (struct dirent *entry; (entry = readdir(dir));)
		check(entry->d_name[0] != '.' || !strstr(entry->d_name, ".pybpfprof-"),
		      "%s is left beside %s", entry->d_name, name);
	closedir(dir);
}

static void check_target(const struct target *target)
{
	char state = process_state(target->pid), path[64];
	struct stat tasks;

	/* A zombie with threads: only its main thread has exited. A folder has two links more than it has folders. */
	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	if (state == 'Z' && !stat(path, &tasks) && tasks.st_nlink > 3)
		return;
	check(state && !strchr("TtZX", state), "after the run the target is in state %c", state ?: '-');
}

bool by_readv(void)
{
	const char *engine = getenv("PYBPFPROF_ENGINE");

	return engine && !strcmp(engine, "readv");
}

/* What a hypervisor has taken from the CPUs of this machine, of all of them together. */
static double stolen_seconds(void)
{
	char *text = read_text("/proc/stat");
	double ticks = 0;

	sscanf(text, "cpu %*f %*f %*f %*f %*f %*f %*f %lf", &ticks);
	free(text);
	return ticks / sysconf(_SC_CLK_TCK);
}

struct run *profile__run(const struct request *request)
{
	const char *folder = scratch_folder("");
	uint64_t min_samples = request->min_samples ?: 200;
	double seconds = request->seconds ?: 1;
	const char *engine = getenv("PYBPFPROF_ENGINE");
	char engine_arg[32];
	struct run *run;

	for (int i = 0; i < TRIES; i++, seconds *= 2) {
		double stolen = stolen_seconds();
		char pid[16], duration[32], file[CHILD_PATH];
		const char *args[24] = {"-p", pid, "-d", duration, "-r", request->rate ?: "999", "-o", file};
		size_t count = 8;

		snprintf(pid, sizeof(pid), "%d", request->target->pid);
		snprintf(duration, sizeof(duration), "%.3f", seconds);
		snprintf(file, sizeof(file), "%s/%d.collapsed", folder, i);
		if (!request->collections)
			args[count++] = "--no-gc";
		add_words(args, &count, request->args, ARRAY_SIZE(request->args));
		if (engine && *engine) {
			snprintf(engine_arg, sizeof(engine_arg), "--engine=%s", engine);
			args[count++] = engine_arg;
		}
		if (request->signal)
			kill(request->target->pid, request->signal);
		run = profiler__finish(start_profiler(args, request->env), file);
		check_written(run);
		check_target(request->target);
		check_alone(folder, file);
		if (run->report.cpu_s > 0)
			run->stolen = 100 * (stolen_seconds() - stolen) / run->report.cpu_s;
		if (run->stacks.total >= min_samples)
			return run;
	}
	check(false, "only %.0f samples in %.1f s", run->report.samples, run->report.wall_s);
	return run;
}
