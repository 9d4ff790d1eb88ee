/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * More than one process whose number is known: commands that are started, what processes start, everything. Which
 * processes are in the profile, from when on, and what becomes of those that end soon.
 */
#include "harness.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_PYTHON = 3, NOT_RUN = 126, NOT_FOUND = 127 };

#define WORDS 48

/* A Python program that is started by the profiler: its words, and the file of its profile. */
struct service {
	const char *argv[WORDS];
	size_t count;
	const char *folder; /* of the program, from here */
	char program[CHILD_PATH], file[CHILD_PATH];
	char words[512];
};

static void add(struct service *service, const char *word)
{
	check(service->count + 1 < WORDS, "too many words");
	service->argv[service->count++] = word;
}

static void add_all(struct service *service, const char *const *words)
{
	while (*words)
		add(service, *words++);
}

static void add_python(struct service *service, const struct python *python)
{
	char *rest = service->words;

	snprintf(service->words, sizeof(service->words), "%s", python->command);
	for (char *word; (word = strsep(&rest, " "));)
		add(service, word);
}

/* pybpfprof -r 999 -o FILE [--engine] OPTIONS... */
static struct service *profiled(const char *const *options)
{
	struct service *service = calloc(1, sizeof(*service));

	snprintf(service->file, sizeof(service->file), "%s/x.collapsed", scratch_folder(""));
	add_all(service, (const char *const[]){profiler_path(), "-r", "999", "-o", service->file, NULL});
	if (by_readv())
		add(service, "--engine=readv");
	add_all(service, options);
	return service;
}

/* ... -- PYTHON PROGRAM; further words may follow. */
static struct service *of_python(const struct python *python, const char *const *options, const char *text)
{
	struct service *service = profiled(options);
	char path[CHILD_PATH + 16];

	service->folder = scratch_folder(python->root);
	snprintf(path, sizeof(path), "%s/service.py", service->folder);
	if (strchr(text, '\n'))
		write_file(path, text);
	else
		copy_file(text, path);
	snprintf(service->program, sizeof(service->program), "%s", path + strlen(python->root));
	add(service, "--");
	return service;
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct service *command(const struct python *python, const char *const *options, const char *text)
{
	struct service *service = of_python(python, options, text);

	add_python(service, python);
	add(service, service->program);
	return service;
}

/* sh -c SCRIPT PYTHON PROGRAM: "$0" "$@" is the program. */
static struct service *script(const struct python *python, const char *const *options, const char *sh,
			      const char *text)
{
	struct service *service = of_python(python, options, text);

	add_all(service, (const char *const[]){"sh", "-c", sh, NULL});
	add_python(service, python);
	add(service, service->program);
	return service;
}

static struct child *begin(struct service *service)
{
	return child__start(&(struct child_config){.argv = service->argv, .env = {"PBP_LIMIT=100"}});
}

/* As profiler__finish(), but any exit code may be the command's. */
static struct run *finish(struct child *child, const struct service *service)
{
	struct run *run = calloc(1, sizeof(*run));
	const char *fault;

	check(child__wait(child, 100), "it does not end: %s", child__err(child));
	run->child = child;
	run->code = child__code(child);
	run->out = child__out(child);
	run->err = child__err(child);
	run->report.samples = number_before(run->err, " taken");
	run->report.wall_s = number_before(run->err, " s by the ");
	run->report.resident_mb = number_before(run->err, " MB resident");
	if (access(service->file, F_OK))
		return run;
	fault = stacks__parse(&run->stacks, service->file);
	check(!fault, "%s %s", service->file, fault);
	return run;
}

static struct run *run_service(struct service *service)
{
	return finish(begin(service), service);
}

/* Of a run with an exit code that is the command's own. */
static void check_profile(const struct run *run, int code)
{
	check(run->code == code, "exit code %d, not %d: %s", run->code, code, run->err);
	check(run->stacks.total, "there is no profile: %s", run->err);
	check(run->stacks.total == run->report.samples, "the file has %llu samples, the report %.0f",
	      (unsigned long long)run->stacks.total, run->report.samples);
}

/* Weight of the stacks that contain both: a frame "process N", and one of that name. */
static uint64_t of_process(const struct run *run, pid_t pid, const char *name)
{
	uint64_t weight = 0;
	char root[32];

	snprintf(root, sizeof(root), "process %d", pid);
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		if (!strcmp(stack->frames[0].name, root) && (!name || stack__count(stack, name)))
			weight += stack->weight;
	}
	return weight;
}

/* How many processes have stacks with that name. */
static size_t processes_with(const struct run *run, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const char *root = run->stacks.items[i].frames[0].name;
		bool seen = !stack__count(&run->stacks.items[i], name);

		for (size_t j = 0; j < i && !seen; j++)
			seen = !strcmp(run->stacks.items[j].frames[0].name, root) &&
			       stack__count(&run->stacks.items[j], name);
		count += !seen;
	}
	return count;
}

/* --- commands --- */

#define BURN "import time\n"                                                                                    \
	     "def burn(seconds):\n"                                                                             \
	     "    end = time.process_time() + seconds\n"                                                        \
	     "    while time.process_time() < end: sum(range(200))\n"

EACH_PYTHON(services, command_from_its_first_frame)
{
	struct service *service = command(python, OPTIONS("-q"), BURN "import slow\nburn(0.3)\n");
	char path[CHILD_PATH];
	struct run *run;

	snprintf(path, sizeof(path), "%s/slow.py", service->folder);
	write_file(path, BURN "def early(): burn(0.3)\nearly()\n");
	run = run_service(service);
	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "early")) > 30, "early has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "early")));
	check(stacks__with(&run->stacks, "_find_and_load") >= stacks__with(&run->stacks, "early"),
	      "early was not imported");
	/* What imports before the program begins: site and what it needs. */
	check(strstr(run->stacks.text, "site") || by_readv(), "nothing of the interpreter's own start");
	check(strstr(run->err, "the command has ended"), "the report does not say so: %s", run->err);
	check(!strstr(run->stacks.text, "process "), "there is one process only");
}

LIVE_TEST(services, exit_codes)
{
	static const struct {
		const char *text;
		int code;
	} ends[] = {{BURN "burn(0.2)\n", 0},
		    {BURN "burn(0.2)\nimport sys\nsys.exit(3)\n", 3},
		    {BURN "burn(0.2)\nimport os\nos.kill(os.getpid(), 9)\n", 128 + 9},
		    {BURN "burn(0.2)\nimport os\nos.abort()\n", 128 + 6}};

	for (size_t i = 0; i < 4; i++) {
		struct run *run = run_service(command(pick("3.14", "debian"), OPTIONS("-q"), ends[i].text));

		check_profile(run, ends[i].code);
		check(stacks__with(&run->stacks, "burn") > 50, "burn has %llu samples",
		      (unsigned long long)stacks__with(&run->stacks, "burn"));
	}
}

LIVE_TEST(services, not_to_be_run)
{
	static const struct {
		const char *command, *words;
		int code;
	} commands[] = {{"no-such-command", "cannot run no-such-command: No such file", NOT_FOUND},
			{"/", "cannot run /: ", NOT_RUN}};

	for (size_t i = 0; i < 2; i++) {
		struct service *service = profiled(OPTIONS("--", commands[i].command));
		struct run *run = run_service(service);

		check(run->code == commands[i].code, "exit code %d: %s", run->code, run->err);
		check(strstr(run->err, commands[i].words), "it says: %s", run->err);
		check(access(service->file, F_OK), "there is a profile");
		check(!run->out[0], "stdout has %s", run->out);
	}
}

LIVE_TEST(services, not_python)
{
	struct run *run = run_service(profiled(OPTIONS("--", "sh", "-c", "echo done; exit 5")));

	check(run->code == NOT_PYTHON, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "no Python that can be profiled was found") && strstr(run->err, "ended with exit code 5"),
	      "it says: %s", run->err);
	check(!strcmp(run->out, "done\n"), "stdout has %s", run->out);
}

/* Its streams are its own: what the profiler says goes to stderr. And it inherits nothing of the profiler's. */
LIVE_TEST(services, streams_and_descriptors)
{
	static const char text[] = BURN "import os, signal, sys\n"
					"burn(0.2)\n"
					"print(sys.stdin.read(), sorted(os.listdir('/proc/self/fd')))\n"
					"print(signal.getsignal(signal.SIGINT), os.nice(0))\n";
	const struct python *python = pick("3.11", "host");
	struct service *service = command(python, OPTIONS("-q"), text);
	struct child *plain, *child;
	const char *argv[WORDS] = {"sh", "-c", "echo in | \"$@\"", "sh"};

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

#define CATCHES                                                                                                 \
	BURN "import os, signal, sys\n"                                                                         \
	     "got = []\n"                                                                                       \
	     "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"                                  \
	     "    signal.signal(number, lambda number, frame: got.append(int(number)))\n"                       \
	     "print('ready', flush=True)\n"                                                                     \
	     "while not got: burn(0.05)\n"                                                                      \
	     "burn(0.2)\n"                                                                                      \
	     "print('got', got, flush=True)\n"                                                                  \
	     "sys.exit(7)\n"

LIVE_TEST(services, signals_are_passed_on)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t i = 0; i < 3; i++) {
		struct child *child = begin(command(pick("3.14", "debian"), OPTIONS("-q"), CATCHES));
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

/* Ctrl-C at a terminal comes to both: the program gets it once, and the profile is written. */
LIVE_TEST(services, interrupt_at_a_terminal)
{
	static const char keys[] = "(until grep -q ready \"$0\"; do sleep 0.05; done; printf '\\003'; sleep 3) |"
				   " script -qefc \"$1\" /dev/null >\"$0\"";
	struct service *service = command(pick("3.14", "debian"), OPTIONS("-q"), CATCHES);
	char line[2048] = "", out[CHILD_PATH];
	const char *argv[] = {"sh", "-c", keys, out, line, NULL};
	struct stacks stacks;
	struct child *child;
	char *text;

	for (size_t i = 0, len = 0; i < service->count; i++)
		len += snprintf(line + len, sizeof(line) - len, "%s ", service->argv[i]);
	snprintf(out, sizeof(out), "%s/out", scratch_folder(""));
	write_file(out, "");
	child = child__start(&(struct child_config){.argv = argv, .group = true});
	check(child__wait(child, 60), "it does not end");
	text = read_text(out);
	check(child__code(child) == 7, "exit code %d: %s", child__code(child), text);
	check(strstr(text, "got [2]"), "not one SIGINT: %s", text);
	check(!stacks__parse(&stacks, service->file), "no profile: %s", text);
}

/* A profile of that long; the command goes on to its end. */
LIVE_TEST(services, duration)
{
	static const char text[] = BURN "import sys\nburn(1.5)\nsys.exit(4)\n";
	struct run *run = run_service(command(pick("3.14", "debian"), OPTIONS("-q", "-d", "0.5"), text));

	check_profile(run, 4);
	check(strstr(run->err, "duration over") && strstr(run->err, "goes on"), "it says: %s", run->err);
	check(run->report.wall_s < 1.2, "%.1f s", run->report.wall_s);
}

LIVE_TEST(services, under_sudo)
{
	static const char text[] = BURN "import os\nburn(0.2)\n"
					"print(os.getuid(), os.getgid(), os.getgroups(), os.environ['USER'])\n";
	const char *const env[] = {"SUDO_UID=65534", "SUDO_GID=65534", "SUDO_USER=nobody", "USER=root"};

	for (int as_root = 0; as_root < 2; as_root++) {
		struct service *service = command(pick("3.11", "host"),
						  as_root ? OPTIONS("-q", "--as-root") : OPTIONS("-q"), text);
		struct child_config config = {.argv = service->argv};
		struct child *child;

		memcpy(config.env, env, sizeof(env));
		child = child__start(&config);
		check(child__wait(child, 60) && !child__code(child), "it fails: %s", child__err(child));
		check(!strncmp(child__out(child), as_root ? "0 0 " : "65534 65534 [65534] nobody", as_root ? 4 : 26),
		      "it is run as %s", child__out(child));
	}
}

/* --- what changes under one pid --- */

LIVE_TEST(services, wrapper_that_execs)
{
	struct run *run = run_service(script(pick("3.14", "debian"), OPTIONS("-q"), "sleep 0.2; exec \"$0\" \"$@\"",
					     BURN "burn(0.3)\n"));

	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 70, "burn has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "burn")));
}

LIVE_TEST(services, exec_of_another_version)
{
	struct service *service = command(pick("3.13", "debian"), OPTIONS("-q", "-d", "3"), "tests/targets/execs.py");
	struct child *child;
	struct run *run;

	add_all(service, (const char *const[]){"0.7", "/usr/bin/python3.14", NULL});
	child = begin(service);
	check(child__wait_message(child, "goes on", 60), "no profile: %s", child__err(child));
	kill(child->pid, SIGTERM);
	run = finish(child, service);
	check_profile(run, 128 + SIGTERM);
	check(percent(run, stacks__exactly(&run->stacks, "<module>;before")) > 10, "before has %.1f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>;before")));
	check(percent(run, stacks__exactly(&run->stacks, "<module>;after")) > 40, "after has %.1f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>;after")));
}

/* --- subprocesses --- */

EACH_PYTHON(services, forked_workers)
{
	struct target *target = start(python, "forks.py", .args = {"2", "0.5"});
	struct run *run = profile(target, .seconds = 2, .args = {"--subprocesses"}, .min_samples = 600);

	check(processes_with(run, "child") == 4, "%zu workers are in the profile", processes_with(run, "child"));
	check(percent(run, stacks__with(&run->stacks, "child")) > 90, "child has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "child")));
	run = profile(target, .args = {"--subprocesses", "--by", "merged"});
	check(!strstr(run->stacks.text, "process "), "processes are told apart");
	check(percent(run, stacks__exactly(&run->stacks, "<module>;fork_one;child")) > 90, "child has %.1f %%",
	      percent(run, stacks__exactly(&run->stacks, "<module>;fork_one;child")));
}

#define POOL                                                                                                    \
	BURN "import multiprocessing, sys\n"                                                                    \
	     "def work(seconds):\n"                                                                             \
	     "    burn(seconds)\n"                                                                              \
	     "if __name__ == '__main__':\n"                                                                     \
	     "    how = multiprocessing.get_context(sys.argv[1])\n"                                             \
	     "    workers = [how.Process(target=work, args=(0.6,)) for _ in range(3)]\n"                        \
	     "    for worker in workers: worker.start()\n"                                                      \
	     "    for worker in workers: worker.join()\n"

EACH_KIND(services, multiprocessing)
{
	static const char *const ways[] = {"fork", "spawn"};

	for (size_t i = 0; i < 2; i++) {
		struct service *service = command(python, OPTIONS("-q", "-s"), POOL);
		struct run *run;

		add(service, ways[i]);
		run = run_service(service);
		check_profile(run, 0);
		check(processes_with(run, "work") == 3, "%s: %zu workers: %s", ways[i],
		      processes_with(run, "work"), run->err);
		check(percent(run, stacks__with(&run->stacks, "burn")) > 60, "%s: burn has %.1f %%", ways[i],
		      percent(run, stacks__with(&run->stacks, "burn")));
	}
}

LIVE_TEST(services, wrapper_that_waits)
{
	struct run *run = run_service(script(pick("3.14", "debian"), OPTIONS("-q", "-s"), "\"$0\" \"$@\"; exit 4",
					     BURN "burn(0.3)\n"));

	check_profile(run, 4);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 70, "burn has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "burn")));
	run = run_service(script(pick("3.14", "debian"), OPTIONS("-q"), "\"$0\" \"$@\"; exit 4", BURN "burn(0.3)\n"));
	check(run->code == NOT_PYTHON, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "--subprocesses"), "it does not say what would help: %s", run->err);
}

/* Children that are no Python are followed, counted, and not in the profile. */
LIVE_TEST(services, others_are_left_out)
{
	struct target *target = start(pick("3.14", "debian"), "children.py");
	struct run *run = profile(target, .args = {"-s"});

	check(percent(run, stacks__with(&run->stacks, "busy")) > 95, "busy has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "busy")));
	check(strstr(run->err, "not Python") && strstr(run->err, "of them left out"), "it says: %s", run->err);
}

/* Each lives for 0.2 s, most of which is to be seen. */
LIVE_TEST(services, brief_children)
{
	static const char text[] = BURN "def brief(): burn(0.15)\nbrief()\n";
	struct run *run = run_service(script(pick("3.14", "debian"), OPTIONS("-q", "-s"),
					     "for i in 1 2 3 4 5 6 7 8 9 10; do \"$0\" \"$@\"; done", text));
	double named = percent(run, stacks__with(&run->stacks, "brief"));

	check_profile(run, 0);
	check(processes_with(run, "brief") >= 9, "%zu of 10 are in the profile: %s", processes_with(run, "brief"),
	      run->err);
	check(named > 60, "brief has %.1f %%: %s", named, run->err);
}

static size_t count_fds(pid_t pid)
{
	char path[64];
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* Forks, execs and ends by the hundred: nothing is left of them. */
LIVE_TEST(services, storm)
{
	static const char text[] = BURN
		"import os, subprocess\n"
		"burn(0.3)\n"
		"print('begin', flush=True)\n"
		"burn(0.5)\n"
		"for i in range(600):\n"
		"    pid = os.fork()\n"
		"    if not pid: os._exit(0)\n"
		"    os.waitpid(pid, 0)\n"
		"    if i % 4 == 0: subprocess.call(['/bin/true'])\n"
		"print('end', flush=True)\n"
		"burn(2)\n";
	struct service *service = command(pick("3.14", "debian"), OPTIONS("-q", "-s", "--stats"), text);
	struct child *child = begin(service);
	size_t before, after;
	struct run *run;

	check(child__wait_line(child, "begin", 60), "it does not begin: %s", child__err(child));
	pause_for(0.2);
	before = count_fds(child->pid);
	check(child__wait_line(child, "end", 100), "it does not end: %s", child__err(child));
	pause_for(1.2);
	after = count_fds(child->pid);
	run = finish(child, service);
	check_profile(run, 0);
	check(before && after <= before + 4, "%zu file descriptors before, %zu after", before, after);
	check(run->report.resident_mb < 100, "%.1f MB", run->report.resident_mb);
}

/* A supervisor that is no Python, by its number. */
LIVE_TEST(services, supervisor)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py",
				      .wrapper = {"sh", "-c", "\"$0\" \"$@\" & wait"});
	struct run *run = profile(target, .args = {"-s"});

	check(percent(run, stacks__with(&run->stacks, "spin")) > 95, "spin has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "spin")));
}

/* --- everything --- */

LIVE_TEST(services, all)
{
	struct target *first = start(pick("3.13", "debian"), "spin.py"), *second;
	struct target *third = start(pick("3.15", "debian"), "fib.py");
	struct service *service = profiled(OPTIONS("-q", "-v", "-a", "-d", "4"));
	struct child *child = begin(service);
	struct run *run;

	check(child__wait_message(child, "first sample", 60), "no first sample: %s", child__err(child));
	second = start(pick("3.14", "debian"), "spin.py");
	run = finish(child, service);
	check_profile(run, 0);
	check(of_process(run, first->pid, "spin") > 50 && of_process(run, second->pid, "spin") > 50 &&
		      of_process(run, third->pid, "fib") > 50,
	      "spin has %llu and %llu samples, fib %llu: %s",
	      (unsigned long long)of_process(run, first->pid, "spin"),
	      (unsigned long long)of_process(run, second->pid, "spin"),
	      (unsigned long long)of_process(run, third->pid, "fib"), run->err);
}

/* Of what is found, only what is wanted. */
LIVE_TEST(services, filters)
{
	struct target *spin = start(pick("3.13", "debian"), "spin.py");
	struct target *fib = start(pick("3.15", "debian"), "fib.py");
	struct run *run = run_service(profiled(OPTIONS("-q", "-a", "-d", "2", "--exclude", "spin.py")));

	check_profile(run, 0);
	check(of_process(run, fib->pid, "fib") > 50 && !of_process(run, spin->pid, NULL), "--exclude: %s", run->err);
	check(strstr(run->err, "but not asked for"), "it says: %s", run->err);
	run = run_service(profiled(OPTIONS("-q", "-a", "-d", "2", "--comm", "python3.13", "--user", "root")));
	check_profile(run, 0);
	check(of_process(run, spin->pid, "spin") > 50 && !of_process(run, fib->pid, NULL), "--comm: %s", run->err);
}
