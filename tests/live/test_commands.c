/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands that the profiler starts: from when on they are profiled, how they end, and that they are left
 * alone.
 */
#include "service.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_PYTHON = 3, NOT_RUN = 126, NOT_FOUND = 127 };

EACH_PYTHON(commands, from_the_first_frame)
{
	struct service *service = service__command(python, OPTIONS("-q"), BURN "import slow\nburn(0.3)\n");
	char path[CHILD_PATH];
	struct run *run;

	snprintf(path, sizeof(path), "%s/slow.py", service->folder);
	write_file(path, BURN "def early(): burn(0.3)\nearly()\n");
	run = service__run(service);
	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "early")) > 30, "early has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "early")));
	check(stacks__with(&run->stacks, "_find_and_load") >= stacks__with(&run->stacks, "early"),
	      "early was not imported");
	/* What imports before the program begins: site and what it needs. */
	check(of_file(run, "site") || by_readv(), "nothing of the interpreter's own start");
	check(strstr(run->err, "the command has ended"), "the report does not say so: %s", run->err);
	check(!tells_apart(run), "there is one process only");
}

LIVE_TEST(commands, exit_codes)
{
	static const struct {
		const char *text;
		int code;
	} ends[] = {{BURN "burn(0.2)\n", 0},
		    {BURN "burn(0.2)\nimport sys\nsys.exit(3)\n", 3},
		    {BURN "burn(0.2)\nimport os\nos.kill(os.getpid(), 9)\n", 128 + 9},
		    {BURN "burn(0.2)\nimport os\nos.abort()\n", 128 + 6}};

	for (size_t i = 0; i < 4; i++) {
		struct run *run =
			service__run(service__command(pick("3.14", "debian"), OPTIONS("-q"), ends[i].text));

		check_profile(run, ends[i].code);
		check(stacks__with(&run->stacks, "burn") > 50, "burn has %llu samples",
		      (unsigned long long)stacks__with(&run->stacks, "burn"));
	}
}

LIVE_TEST(commands, not_to_be_run)
{
	static const struct {
		const char *command, *words;
		int code;
	} commands[] = {{"no-such-command", "cannot run no-such-command: No such file", NOT_FOUND},
			{"/", "cannot run /: ", NOT_RUN}};

	for (size_t i = 0; i < 2; i++) {
		struct service *service = service__profiled(OPTIONS("--", commands[i].command));
		struct run *run = service__run(service);

		check(run->code == commands[i].code, "exit code %d: %s", run->code, run->err);
		check(strstr(run->err, commands[i].words), "it says: %s", run->err);
		check(access(service->file, F_OK), "there is a profile");
		check(!run->out[0], "stdout has %s", run->out);
	}
}

LIVE_TEST(commands, not_python)
{
	struct run *run = service__run(service__profiled(OPTIONS("--", "sh", "-c", "echo done; exit 5")));

	check(run->code == NOT_PYTHON, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "no Python that can be profiled was found") &&
		      strstr(run->err, "ended with exit code 5"),
	      "it says: %s", run->err);
	check(!strcmp(run->out, "done\n"), "stdout has %s", run->out);
	run = service__run(service__profiled(OPTIONS("-d", "0.1", "--", "sh", "-c", "sleep 0.4; exit 5")));
	check(run->code == NOT_PYTHON && strstr(run->err, "the command goes on and is waited for"),
	      "exit code %d: %s", run->code, run->err);
}

/* Python by its name, and over before anything else can be said: always the same code, or its own. */
LIVE_TEST(commands, too_short)
{
	static const char *const scripts[] = {":", "exit 7"};
	static const int codes[] = {1, 7};
	char path[CHILD_PATH];

	snprintf(path, sizeof(path), "%s/python3.x", scratch_folder(""));
	copy_file("/bin/sh", path);
	for (int i = 0; i < 4; i++) {
		struct run *run = service__run(service__profiled(OPTIONS("--", path, "-c", scripts[i % 2])));

		check(run->code == codes[i % 2], "exit code %d: %s", run->code, run->err);
		check(strstr(run->err, "ended before an interpreter could be found in it") &&
			      !strstr(run->err, "--subprocesses"),
		      "it says: %s", run->err);
	}
}

/* Its streams are its own: what the profiler says goes to stderr. And it inherits nothing of the profiler's.
 */
LIVE_TEST(commands, streams_and_descriptors)
{
	static const char text[] = BURN "import os, signal, sys\n"
					"burn(0.2)\n"
					"print(sys.stdin.read(), sorted(os.listdir('/proc/self/fd')))\n"
					"print(signal.getsignal(signal.SIGINT), os.nice(0))\n";
	const struct python *python = pick("3.11", "host");
	struct service *service = service__command(python, OPTIONS("-q"), text);
	struct child *plain, *child;
	const char *argv[SERVICE_WORDS] = {"sh", "-c", "echo in | \"$@\"", "sh"};

	service->argv[service->count] = NULL;
	memcpy(argv + 4, service->argv, service->count * sizeof(*argv));
	child = child__start(&(struct child_config){.argv = argv});
	check(child__wait(child, 60) && !child__code(child), "it fails: %s", child__err(child));
	memset(argv + 4, 0, sizeof(argv) - 4 * sizeof(*argv));
	argv[4] = python->command;
	argv[5] = service->program;
	plain = child__start(&(struct child_config){.argv = argv});
	check(child__wait(plain, 60) && !child__code(plain), "without the profiler: %s", child__err(plain));
	check(!strncmp(child__out(plain), "in\n", 3), "without the profiler: %s", child__out(plain));
	check(!strcmp(child__out(child), child__out(plain)), "with the profiler: %s, without: %s",
	      child__out(child), child__out(plain));
}

#define CATCHES                                                                                              \
	BURN "import os, signal, sys\n"                                                                      \
	     "got = []\n"                                                                                    \
	     "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"                               \
	     "    signal.signal(number, lambda number, frame: got.append(int(number)))\n"                    \
	     "print('ready', flush=True)\n"                                                                  \
	     "while not got: burn(0.05)\n"                                                                   \
	     "burn(0.2)\n"                                                                                   \
	     "print('got', got, flush=True)\n"                                                               \
	     "sys.exit(7)\n"

LIVE_TEST(commands, signals_are_passed_on)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t i = 0; i < 3; i++) {
		struct child *child =
			service__begin(service__command(pick("3.14", "debian"), OPTIONS("-q"), CATCHES));
		char got[32];

		check(child__wait_line(child, "ready", 30), "not ready: %s", child__err(child));
		kill(child->pid, signals[i]);
		check(child__wait(child, 60), "it does not end");
		check(child__code(child) == 7, "exit code %d: %s", child__code(child), child__err(child));
		snprintf(got, sizeof(got), "got [%d]", signals[i]);
		check(strstr(child__out(child), got), "not \"%s\": %s", got, child__out(child));
		check(strstr(child__err(child), "wrote "), "no profile: %s", child__err(child));
	}
}

/* Who signals the whole group, as a CI runner does, signals the program, too, which gets it once. */
LIVE_TEST(commands, signals_of_the_group)
{
	struct service *service = service__command(pick("3.14", "debian"), OPTIONS("-q"), CATCHES);
	struct child *child = child__start(&(struct child_config){.argv = service->argv, .group = true});

	check(child__wait_line(child, "ready", 30), "not ready: %s", child__err(child));
	kill(-child->pid, SIGTERM);
	check(child__wait(child, 60), "it does not end");
	check(child__code(child) == 7, "exit code %d: %s", child__code(child), child__err(child));
	check(strstr(child__out(child), "got [15]"), "not once: %s", child__out(child));
	check(strstr(child__err(child), "wrote "), "no profile: %s", child__err(child));
}

/* The shell of script(1) must not be among those that get it: dash dies of the signal itself. */
static void check_interrupt(const char *text)
{
	static const char keys[] =
		"(until grep -q ready \"$0\"; do sleep 0.05; done; printf '\\003'; sleep 3) |"
		" script -qefc \"exec $1\" /dev/null >\"$0\"";
	struct service *service = service__command(pick("3.14", "debian"), OPTIONS("-q"), text);
	char line[2048] = "", out[CHILD_PATH];
	const char *argv[] = {"sh", "-c", keys, out, line, NULL};
	struct stacks stacks;
	struct child *child;
	char *shown;

	for (size_t i = 0, len = 0; i < service->count; i++)
		len += snprintf(line + len, sizeof(line) - len, "%s ", service->argv[i]);
	snprintf(out, sizeof(out), "%s/out", scratch_folder(""));
	write_file(out, "");
	child = child__start(&(struct child_config){.argv = argv, .group = true});
	check(child__wait(child, 60), "it does not end");
	shown = read_text(out);
	check(child__code(child) == 7, "exit code %d: %s", child__code(child), shown);
	check(strstr(shown, "got [2]"), "not one SIGINT: %s", shown);
	check(!stacks__parse(&stacks, service->file), "no profile: %s", shown);
}

/* Ctrl-C at a terminal comes to both: the program gets it once, and the profile is written. */
LIVE_TEST(commands, interrupt_at_a_terminal)
{
	check_interrupt(CATCHES);
}

/* As the leader of the shell's job it could not have left the group that the terminal signals. */
LIVE_TEST(commands, interrupt_of_one_that_has_left_the_group)
{
	check_interrupt("import os\nos.setpgid(0, 0)\n" CATCHES);
}

/* A profile of that long; the command goes on to its end. */
LIVE_TEST(commands, duration)
{
	static const char text[] = BURN "import sys\nburn(1.5)\nsys.exit(4)\n";
	struct run *run =
		service__run(service__command(pick("3.14", "debian"), OPTIONS("-q", "-d", "0.5"), text));

	check_profile(run, 4);
	check(strstr(run->err, "duration over") && strstr(run->err, "goes on"), "it says: %s", run->err);
	check(run->report.wall_s < 1.2, "%.1f s", run->report.wall_s);
}

LIVE_TEST(commands, under_sudo)
{
	static const char text[] =
		BURN "import os\nburn(0.2)\n"
		     "print(os.getuid(), os.getgid(), os.getgroups(), os.environ['USER'])\n";
	const char *const env[] = {"SUDO_UID=65534", "SUDO_GID=65534", "SUDO_USER=nobody", "USER=root"};

	for (int as_root = 0; as_root < 2; as_root++) {
		struct service *service = service__command(
			pick("3.11", "host"), as_root ? OPTIONS("-q", "--as-root") : OPTIONS("-q"), text);
		struct child_config config = {.argv = service->argv};
		struct child *child;

		memcpy(config.env, env, sizeof(env));
		child = child__start(&config);
		check(child__wait(child, 60) && !child__code(child), "it fails: %s", child__err(child));
		check(!strncmp(child__out(child), as_root ? "0 0 " : "65534 65534 [65534] nobody",
			       as_root ? 4 : 26),
		      "it is run as %s", child__out(child));
	}
}

/* --- what changes under its pid --- */

LIVE_TEST(commands, wrapper_that_execs)
{
	struct run *run = service__run(service__script(pick("3.14", "debian"), OPTIONS("-q"),
						       "sleep 0.2; exec \"$0\" \"$@\"", BURN "burn(0.3)\n"));

	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 70, "burn has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "burn")));
}

LIVE_TEST(commands, exec_of_another_version)
{
	struct service *service =
		service__command(pick("3.13", "debian"), OPTIONS("-q", "-d", "3"), "tests/targets/execs.py");
	struct child *child;
	struct run *run;

	service__add(service, "0.7");
	service__add(service, "/usr/bin/python3.14");
	child = service__begin(service);
	check(child__wait_message(child, "goes on", 60), "no profile: %s", child__err(child));
	kill(child->pid, SIGTERM);
	run = service__finish(child, service);
	check_profile(run, 128 + SIGTERM);
	check(percent(run, stacks__exactly(&run->stacks, "<module>;before")) > 10, "before has %.1f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>;before")));
	check(percent(run, stacks__exactly(&run->stacks, "<module>;after")) > 40, "after has %.1f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>;after")));
}
