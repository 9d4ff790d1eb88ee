/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is refused: wrong options, processes that are no Python or of a version that is not known, and memory
 * that contradicts itself. Each with its exit code and one line that says what and why.
 */
#include "harness.h"

#include "py/runtime.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2, NOT_PYTHON = 3 };

/* One line on stderr, nothing on stdout. */
static void check_refused_shortly(const struct run *run, int code, const char *reason)
{
	check_refused(run, code, reason);
	check(strchr(run->err, '\n') == strrchr(run->err, '\n') && strchr(run->err, '\n'), "not one line: %s",
	      run->err);
}

static struct run *profile_pid(pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return profiler_run("-p", text, "-d", "0.3", "-q");
}

static struct child *start_command(const char *const *argv)
{
	return child__start(&(struct child_config){.argv = argv, .group = true});
}

LIVE_TEST(input, options)
{
	static const char *const bad_pids[] = {"0", "-1", "abc", "12x", "99999999999", "99999999999999999999",
					       "",  "1,", ",1",	 " 1",	"0x10",	       "1.5"};
	static const char *const bad_durations[] = {"0", "-1", "x", "nan", "inf", "5y", "", "1e30"};
	static const char *const bad_rates[] = {"0", "-5", "30000", "nan", "1q", "", "0.5"};

	for (size_t i = 0; i < sizeof(bad_pids) / sizeof(*bad_pids); i++)
		check_refused_shortly(profiler_run("-p", bad_pids[i], "-d", "1"), USAGE, "process id");
	for (size_t i = 0; i < sizeof(bad_durations) / sizeof(*bad_durations); i++)
		check_refused_shortly(profiler_run("-p", "1", "-d", bad_durations[i]), USAGE, "a time");
	for (size_t i = 0; i < sizeof(bad_rates) / sizeof(*bad_rates); i++)
		check_refused_shortly(profiler_run("-p", "1", "-r", bad_rates[i]), USAGE, "a rate");
	check_refused_shortly(profiler_run("-d", "1"), USAGE, "which process");
	check_refused_shortly(profiler_run("-p", "1", "stray"), USAGE, "stray");
	check_refused_shortly(profiler_run("-p", "1", "--no-such-option"), USAGE, "no-such-option");
	check_refused_shortly(profiler_run("-p", "1", "-o", "x.unknown"), USAGE, "format");
	check_refused_shortly(profiler_run("-p", "1", "--format", "unknown"), USAGE, "unknown");
}

LIVE_TEST(input, help_version_doctor)
{
	struct run *run = profiler_run("--help");

	check(!run->code && strstr(run->out, "Usage") && !run->err[0], "--help: %d, %s", run->code, run->err);
	run = profiler_run("--version");
	check(!run->code && !strncmp(run->out, "pybpfprof ", 10), "--version: %d, %s", run->code, run->out);
	run = profiler_run("doctor");
	check(!run->code && strstr(run->out, "profiling works here"), "doctor: %d, %s", run->code, run->out);
}

LIVE_TEST(input, no_process)
{
	check_refused_shortly(profiler_run("-p", "2147483646"), FAILED, "no such process");
}

LIVE_TEST(input, zombie)
{
	struct child *child = start_command((const char *const[]){"true", NULL});

	for (int i = 0; i < 1000 && process_state(child->pid) != 'Z'; i++)
		pause_for(0.01);
	check_refused_shortly(profile_pid(child->pid), FAILED, "zombie");
}

/* "python3 app.py & pybpfprof -p $!": it may be the shell's fork still, or have no libpython yet. */
LIVE_TEST(input, python_that_has_just_been_started)
{
	static const char script[] = "{ sleep 0.05; exec \"$1\" -c 'while True: sum(range(200))'; } &"
				     " exec \"$0\" --engine=readv -q -d 0.2 -p $!";
	const char *argv[] = {"sh", "-c", script, profiler_path(), pick("3.12", "pyenv")->command, NULL};
	struct child *child = child__start(&(struct child_config){.argv = argv, .group = true});

	check(child__wait(child, 60) && !child__code(child), "it fails: %s", child__err(child));
}

LIVE_TEST(input, kernel_thread)
{
	check_refused_shortly(profile_pid(2), NOT_PYTHON, "not a Python process");
}

LIVE_TEST(input, not_python)
{
	struct child *child = start_command((const char *const[]){"sleep", "60", NULL});
	struct run *run;

	pause_for(0.1);
	run = profile_pid(child->pid);
	check_refused_shortly(run, NOT_PYTHON, "sleep is not a Python process");
	check(!strstr(run->err, "child"), "sleep has no children: %s", run->err);
}

/* The pid of a wrapper: the Python below it is named. */
EACH_PYTHON(input, shell_around_python)
{
	struct target *target =
		start(python, "spin.py", .wrapper = {"sh", "-c", "echo child $$; \"$0\" \"$@\"; :"});
	struct run *run = profile_pid(target->pid);
	char hint[64];
	int child;

	check_refused_shortly(run, NOT_PYTHON, "sh is not a Python process");
	check(sscanf(strstr(run->err, "-p ") ?: "", "-p %d", &child) == 1, "no child is named: %s", run->err);
	snprintf(hint, sizeof(hint), "its child %d (python", child);
	check(strstr(run->err, hint), "\"%s\" is not in: %s", hint, run->err);
	run = profile_pid(child);
	check(run->code == 0, "the child that is named gives exit code %d", run->code);
}

/* --- versions --- */

/* Beside the Pythons of pyenv, where it has them. */
LIVE_TEST(input, ancient_versions)
{
	static const char *const versions[] = {"2.7.18", "3.6.15", "3.7.16"};
	const struct python *pyenv = pythons__find("3.13", "pyenv");

	for (size_t i = 0; pyenv && i < sizeof(versions) / sizeof(*versions); i++) {
		struct python old = *pyenv;
		char name[32];
		struct target *target;

		snprintf(old.version, sizeof(old.version), "%s", versions[i]);
		snprintf(old.command, sizeof(old.command), "%.*s/%s/bin/python",
			 (int)(strstr(pyenv->command, "/3.13") - pyenv->command), pyenv->command,
			 versions[i]);
		if (access(old.command, X_OK))
			continue;
		target = start(&old, "old.py",
			       .text = "import sys\nprint('ready')\nsys.stdout.flush()\nwhile True: pass\n");
		snprintf(name, sizeof(name), "Python %.3s", versions[i]);
		check_refused_shortly(profile_pid(target->pid), NOT_PYTHON, name);
	}
}

/* --- memory that contradicts itself --- */

static py_addr find_runtime(const struct target *target)
{
	struct py_runtime runtime;
	struct remote remote;
	char reason[512] = "";

	remote__init(&remote, target->pid);
	check(py_runtime__find(&runtime, &remote, reason, sizeof(reason)) == PY_ATTACH_OK, "no runtime: %s",
	      reason);
	py_runtime__close(&runtime);
	return runtime.addr;
}

static void poke(const struct target *target, py_addr addr, uint64_t value)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", target->pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	check(fd >= 0 && pwrite(fd, &value, 8, addr) == 8, "cannot write the target's memory");
	close(fd);
}

EACH_WITH_TABLE(input, version_to_come)
{
	struct target *target = start(python, "spin.py");
	py_addr runtime = find_runtime(target);

	poke(target, runtime + 8, 0x031000f0);
	check_refused_shortly(profile_pid(target->pid), NOT_PYTHON, "Python 3.16");
	poke(target, runtime + 8, 0x040000f0);
	check_refused_shortly(profile_pid(target->pid), NOT_PYTHON, "Python 4.0");
	poke(target, runtime + 8, 0);
	check_refused_shortly(profile_pid(target->pid), FAILED, "");
}

/* The table says that the build is what it is not. */
EACH_WITH_TABLE(input, free_threaded)
{
	struct target *target = start(python, "spin.py");

	poke(target, find_runtime(target) + 16, !python->free_threaded);
	check_refused_shortly(profile_pid(target->pid), FAILED,
		      python->free_threaded ? "not that of a GIL build" : "not that of a free-threaded build");
}

EACH_WITH_TABLE(input, corrupt_table)
{
	static const int offsets[] = {120, 136, 168, 184, 192};
	struct target *target = start(python, "spin.py");
	py_addr runtime = find_runtime(target);

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		poke(target, runtime + offsets[i], 0x8000);
	check_refused_shortly(profile_pid(target->pid), FAILED, "_Py_DebugOffsets");
}

/*
 * Any field with any value: refused, or it did not matter. The profiler never dies and never tells nonsense.
 */
EACH_WITH_TABLE(input, table_of_random_values)
{
	static const uint64_t values[] = {0, 1, 7, 0x28, 0x1000, 0x7fffffff, UINT64_MAX, 0x7fff00000000};
	struct target *target = start(python, "spin.py");
	py_addr runtime = find_runtime(target);
	struct remote remote;

	remote__init(&remote, target->pid);
	for (unsigned int i = 0; i < 40; i++) {
		py_addr field = runtime + 24 + 8 * (i * 2 + python->minor % 2);
		uint64_t old;
		struct run *run;

		check(!remote__read(&remote, field, &old, 8), "the table cannot be read");
		poke(target, field, values[(i * 5 + python->minor) % 8]);
		run = profile_pid(target->pid);
		check(run->code == 0 || run->code == FAILED || run->code == NOT_PYTHON, "exit code %d: %s",
		      run->code, run->err);
		check(run->code != 0 || run->report.samples > 0, "no samples, but a profile: %s", run->err);
		poke(target, field, old);
	}
}
