/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Forked children: by a fork that CPython is not told of, as uWSGI makes it; many that live briefly; and how a process
 * ends.
 */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The child is what the parent was, but for its numbers. `threads`: the parent has others, which the child has not, and
 * the child starts one. `namespace`: the child's numbers begin anew, and the other thread gets the one that the parent
 * has: 2.
 */
#define RAW_FORK                                                                                              \
	BURN "import ctypes, os, sys, threading\n"                                                            \
	     "libc = ctypes.PyDLL(None)\n"                                                                    \
	     "mode, seconds = sys.argv[1], float(sys.argv[2])\n"                                              \
	     "def wait(): time.sleep(1000)\n"                                                                 \
	     "def raw_child(): burn(seconds)\n"                                                               \
	     "def begin(): threading.Thread(target=wait, daemon=True).start()\n"                              \
	     "print('ready', flush=True)\n"                                                                   \
	     "if mode == 'threads': begin(); time.sleep(0.1)\n"                                               \
	     "if mode == 'namespace': assert os.getpid() == 2 and not libc.unshare(0x20000000)\n"             \
	     "child = libc.fork()\n"                                                                          \
	     "if not child:\n"                                                                                \
	     "    if mode != 'plain': begin()\n"                                                              \
	     "    raw_child()\n"                                                                              \
	     "    os._exit(0)\n"                                                                              \
	     "print('child', child, flush=True)\n"                                                            \
	     "os.waitpid(child, 0)\n"

static void check_raw_child(const struct run *run)
{
	uint64_t raw = stacks__with(&run->stacks, "raw_child");
	uint64_t none = stacks__exactly(&run->stacks, "[no Python frames]");

	check_profile(run, 0);
	check(raw > 50, "raw_child has %llu samples: %s", (unsigned long long)raw, run->err);
	check(none < raw / 2, "%llu have no Python frames, raw_child has %llu", (unsigned long long)none,
	      (unsigned long long)raw);
}

static struct service *raw_fork(const struct python *python, const char *mode)
{
	struct service *service = service__command(python, OPTIONS("-q", "-s", "--by", "merged"), RAW_FORK);

	service__add(service, mode);
	service__add(service, "0.5");
	return service;
}

EACH_PYTHON(forks, that_python_is_not_told_of)
{
	check_raw_child(service__run(raw_fork(python, "plain")));
}

EACH_KIND(forks, that_python_is_not_told_of_with_threads)
{
	check_raw_child(service__run(raw_fork(python, "threads")));
}

/* The profiler looks at it from outside of all namespaces. */
LIVE_TEST(forks, that_python_is_not_told_of_into_a_namespace)
{
	const struct python *python = pick("3.12", "pyenv");
	struct service *service = service__profiled(OPTIONS("-q", "-s", "--by", "merged"));
	const char *words[] = {"--", "unshare", "-pf", "--kill-child", "--mount-proc", "sh", "-c", "\"$0\" \"$@\"; exit",
			       python->command, "-c", RAW_FORK, "namespace", "0.5", NULL};

	for (size_t i = 0; words[i]; i++)
		service__add(service, words[i]);
	check_raw_child(service__run(service));
}

EACH_KIND(forks, dump_of_one_that_python_is_not_told_of)
{
	struct target *target = start(python, "raw.py", .text = RAW_FORK, .args = {"plain", "1000"});
	const char *child = child__wait_line(target->child, "child ", 20);
	char expected[64];
	struct run *run;

	check(child, "no child: %s", child__err(target->child));
	run = profiler_run("dump", "-p", child);
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	snprintf(expected, sizeof(expected), "\nThread %d (", atoi(child));
	check(strstr(run->out, expected), "no \"%s\" in: %s", expected, run->out);
	check(strstr(run->out, " on CPU\n"), "it is not running: %s", run->out);
	check(!strstr(run->out, "runs no Python code"), "there is one thread: %s", run->out);
}

/* --- brief ones --- */

/* Children that live for a period each, beside others that run on their CPU, get what their CPU time is worth. */
LIVE_TEST(forks, brief_ones_that_wait_for_a_cpu)
{
	static const char text[] =
		BURN "import os, subprocess\n"
		     "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
		     "loop = ['timeout', '60', 'sh', '-c', 'while :; do :; done']\n"
		     "others = [subprocess.Popen(loop) for i in range(3)]\n"
		     "def child(): burn(0.01)\n"
		     "def parent(): burn(0.6)\n"
		     "for i in range(60):\n"
		     "    if not os.fork():\n"
		     "        child()\n"
		     "        os._exit(0)\n"
		     "    os.wait()\n"
		     "parent()\n"
		     "for other in others: other.terminate()\n";
	/* The last -r counts: the rate that such processes are short for. */
	struct run *run = service__run(service__command(
		pick("3.12", "pyenv"), OPTIONS("-q", "-s", "--by", "merged", "-r", "99"), text));
	uint64_t child = stacks__with(&run->stacks, "child"), parent = stacks__with(&run->stacks, "parent");

	check_profile(run, 0);
	check(parent > 30, "parent has %llu samples: %s", (unsigned long long)parent, run->err);
	check(child < parent * 1.6 && child > parent * 0.2, "child has %llu samples, parent %llu: %s",
	      (unsigned long long)child, (unsigned long long)parent, run->err);
}

/* They are Pythons all: one that is gone before it could be looked at is not said to be none. */
LIVE_TEST(forks, brief_ones_are_not_taken_for_others)
{
	static const char text[] = BURN "import os\n"
					"burn(0.3)\n"
					"for i in range(100):\n"
					"    if not os.fork():\n"
					"        burn(0.002)\n"
					"        os._exit(0)\n"
					"    os.wait()\n";
	struct run *run = service__run(service__command(pick("3.12", "pyenv"), OPTIONS("-q", "-s"), text));

	check_profile(run, 0);
	check(!strstr(run->err, "not Python"), "it says: %s", run->err);
}

/* --- ends --- */

/* A process that has ended, but for giving back its memory, is no program that was started. */
LIVE_TEST(forks, that_end_slowly)
{
	static const char text[] =
		BURN "import os, threading\n"
		     "for i in range(8): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
		     "memory = bytearray(b'x') * (100 << 20)\n"
		     "burn(0.02)\n"
		     "os._exit(2)\n";

	for (int i = 0; i < 8; i++) {
		struct service *service = service__command(pick("3.12", "pyenv"), OPTIONS("-q"), text);
		struct run *run = service__run(service);

		check_profile(run, 2);
		check(!strstr(run->err, "another program"), "it says: %s", run->err);
		check(strstr(run->err, service->program), "its command is not told: %s", run->err);
	}
}

#define NOT_WAITED_FOR                                \
	BURN "import os\n"                            \
	     "for i in range(3):\n"                   \
	     "    if not os.fork():\n"                \
	     "        burn(0.1)\n"                    \
	     "        os._exit(0)\n"                  \
	     "burn(0.2)\n"                            \
	     "time.sleep(0.5)\n"

/* They keep their numbers, which are nobody else's: each is there once. */
LIVE_TEST(forks, that_nobody_waits_for)
{
	struct run *run = service__run(
		service__command(pick("3.14", "debian"), OPTIONS("-q", "-s"), NOT_WAITED_FOR));

	check_profile(run, 0);
	check(strstr(run->err, "of 4 Python processes"), "it says: %s", run->err);
	check(!strstr(run->err, "others"), "there are others: %s", run->err);
}

/* --- another program --- */

#define BECOMES_WANTED                                                                                        \
	BURN "import os, sys\n"                                                                               \
	     "def wanted(): burn(1000)\n"                                                                      \
	     "if sys.argv[1:] == ['before']:\n"                                                               \
	     "    print('ready', flush=True)\n"                                                               \
	     "    time.sleep(2)\n"                                                                            \
	     "    os.execv(sys.executable, [sys.executable, sys.argv[0]])\n"                                  \
	     "wanted()\n"

/* Beside the Pythons of pyenv, where it has one that is not supported: one process is counted once, whatever it becomes. */
LIVE_TEST(forks, execs_of_an_unsupported_one)
{
	const struct python *pyenv = pick("3.12", "pyenv");
	static const char text[] = "import os, subprocess, sys, time\n"
				   "if len(sys.argv) == 2: subprocess.call([sys.argv[1], __file__, 'a', 'b'])\n"
				   "time.sleep(0.4)\n"
				   "if len(sys.argv) == 3 or len(sys.argv) == 4:\n"
				   "    os.execv(sys.executable, [sys.executable] + sys.argv + ['c'])\n";
	struct service *service = service__command(pyenv, OPTIONS("-q", "-s"), text);
	char old[CHILD_PATH];
	struct run *run;

	snprintf(old, sizeof(old), "%.*s/3.7.16/bin/python", (int)(strstr(pyenv->command, "/3.12") - pyenv->command),
		 pyenv->command);
	if (access(old, X_OK))
		cr_skip("no Python 3.7");
	service__add(service, old);
	run = service__run(service);
	check_profile_of_all(run);
	check(strstr(run->err, "1 process found that was not profiled (1 of a version or build that is not supported)"),
	      "it says: %s", run->err);
}

/* Over all there is: what was there at the start, and was none of ours, calls exec. One has the same code as before. */
LIVE_TEST(forks, execs_of_what_was_not_followed)
{
	struct target *same = start(pick("3.12", "pyenv"), "becomes.py", .text = BECOMES_WANTED, .args = {"before"});
	struct target *other = start(pick("3.15", "debian"), "spin.py",
				     .wrapper = {"sh", "-c", "echo ready; sleep 2; exec \"$0\" \"$@\""});
	struct run *run = service__run(service__profiled(OPTIONS("-q", "-a", "-d", "5", "--exclude", "py before")));

	check_profile_of_all(run);
	check(of_process(run, same->pid, "wanted") > 20, "wanted has %llu samples: %s",
	      (unsigned long long)of_process(run, same->pid, "wanted"), run->err);
	check(of_process(run, other->pid, "spin") > 20, "spin has %llu samples: %s",
	      (unsigned long long)of_process(run, other->pid, "spin"), run->err);
}
