/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that are found: what others start, everything. Which are in the profile, from when on, and what
 * becomes of those that end soon.
 */
#include "service.h"

#include <stdio.h>
#include <string.h>

enum { NOT_PYTHON = 3 };

EACH_PYTHON(services, forked_workers)
{
	struct target *target = start(python, "forks.py", .args = {"2", "0.5"});
	struct run *run = profile(target, .seconds = 2, .args = {"--subprocesses"}, .min_samples = 600);

	check(processes_with(run, "child") == 4, "%zu workers are in the profile",
	      processes_with(run, "child"));
	check(percent(run, stacks__with(&run->stacks, "child")) > 90, "child has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "child")));
	run = profile(target, .args = {"--subprocesses", "--by", "merged"});
	check(!tells_apart(run), "processes are told apart");
	check(percent(run, stacks__exactly(&run->stacks, "<module>;fork_one;child")) > 90,
	      "child has %.1f %%", percent(run, stacks__exactly(&run->stacks, "<module>;fork_one;child")));
}

#define POOL                                                                                                 \
	BURN "import multiprocessing, sys\n"                                                                 \
	     "def work(seconds):\n"                                                                          \
	     "    burn(seconds)\n"                                                                           \
	     "if __name__ == '__main__':\n"                                                                  \
	     "    how = multiprocessing.get_context(sys.argv[1])\n"                                          \
	     "    workers = [how.Process(target=work, args=(0.6,)) for _ in range(3)]\n"                     \
	     "    for worker in workers: worker.start()\n"                                                   \
	     "    for worker in workers: worker.join()\n"

EACH_KIND(services, multiprocessing)
{
	static const char *const ways[] = {"fork", "spawn"};

	for (size_t i = 0; i < 2; i++) {
		struct service *service = service__command(python, OPTIONS("-q", "-s"), POOL);
		struct run *run;

		service__add(service, ways[i]);
		run = service__run(service);
		check_profile(run, 0);
		check(processes_with(run, "work") == 3, "%s: %zu workers: %s", ways[i],
		      processes_with(run, "work"), run->err);
		check(percent(run, stacks__with(&run->stacks, "burn")) > 60, "%s: burn has %.1f %%", ways[i],
		      percent(run, stacks__with(&run->stacks, "burn")));
	}
}

LIVE_TEST(services, wrapper_that_waits)
{
	struct run *run = service__run(service__script(pick("3.14", "debian"), OPTIONS("-q", "-s"),
						       "\"$0\" \"$@\"; exit 4", BURN "burn(0.3)\n"));

	check_profile(run, 4);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 70, "burn has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "burn")));
	run = service__run(service__script(pick("3.14", "debian"), OPTIONS("-q"), "\"$0\" \"$@\"; exit 4",
					   BURN "burn(0.3)\n"));
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
	check(strstr(run->err, "not Python"), "it says: %s", run->err);
	/* The readv engine reads no samples of them. */
	check(!strstr(run->err, "of them left out") == by_readv(), "it says: %s", run->err);
}

/* Each lives for 0.2 s, most of which is to be seen. */
LIVE_TEST(services, brief_children)
{
	static const char text[] = BURN "def brief(): burn(0.15)\nbrief()\n";
	struct run *run =
		service__run(service__script(pick("3.14", "debian"), OPTIONS("-q", "-s"),
					     "for i in 1 2 3 4 5 6 7 8 9 10; do \"$0\" \"$@\"; done", text));
	double named = percent(run, stacks__with(&run->stacks, "brief"));

	check_profile(run, 0);
	check(processes_with(run, "brief") >= 9, "%zu of 10 are in the profile: %s",
	      processes_with(run, "brief"), run->err);
	check(named > 60, "brief has %.1f %%: %s", named, run->err);
}

/* As servers' workers do, by writing over the words that they were started with. */
#define TITLE                                                                                                \
	"import ctypes\n"                                                                                    \
	"def title(text):\n"                                                                                 \
	"    with open('/proc/self/stat') as file: words = file.read().rsplit(')', 1)[1].split()\n"          \
	"    start, end = int(words[45]), int(words[46])\n"                                                  \
	"    ctypes.memmove(start, text.ljust(end - start, b'\\0'), end - start)\n"

LIVE_TEST(services, workers_with_names_of_their_own)
{
	static const char text[] = BURN TITLE "import os\n"
					      "title(b'master')\n"
					      "for i in range(2):\n"
					      "    if not os.fork():\n"
					      "        title(b'worker-%d' % i)\n"
					      "        burn(0.4)\n"
					      "        os._exit(0)\n"
					      "os.wait(), os.wait()\n";
	struct service *service = service__command(pick("3.11", "host"), OPTIONS("-q", "-s"), text);
	struct run *run = service__run(service);
	const char *file = read_text(service->file);

	check_profile(run, 0);
	check(strstr(run->err, " (worker-0): ") && strstr(run->err, " (worker-1): "), "it says: %s", run->err);
	check(strstr(file, " (worker-0);") && strstr(file, " (worker-1);"), "the profile has: %.2000s", file);
}

/* The end of the command is the end of the run, whatever it leaves behind, and that is told. */
LIVE_TEST(services, daemon)
{
	static const char text[] = BURN "import os, sys\n"
					"if not os.fork():\n"
					"    os.setsid()\n"
					"    while os.path.exists(__file__): burn(0.01); time.sleep(0.05)\n"
					"    os._exit(0)\n"
					"burn(0.3)\n"
					"sys.exit(6)\n";
	struct run *run = service__run(service__command(pick("3.14", "debian"), OPTIONS("-q", "-s"), text));

	check_profile(run, 6);
	check(strstr(run->err, "going on   1 Python process that the command started"), "it says: %s",
	      run->err);
}

/* None of those that there are is wanted. */
LIVE_TEST(services, filtered_out)
{
	struct run *run = service__run(service__script(
		pick("3.14", "debian"), OPTIONS("-q", "-s", "--comm", "no-such", "--comm", "nor-such"),
		"\"$0\" \"$@\"; :", BURN "burn(0.5)\n"));

	check(run->code == NOT_PYTHON, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "there is a Python process, which was not asked for"), "it says: %s",
	      run->err);
}

/* A supervisor that is no Python, by its number. */
LIVE_TEST(services, supervisor)
{
	struct target *target =
		start(pick("3.14", "debian"), "spin.py", .wrapper = {"sh", "-c", "\"$0\" \"$@\" & wait"});
	struct run *run = profile(target, .args = {"-s"});

	check(percent(run, stacks__with(&run->stacks, "spin")) > 95, "spin has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "spin")));
}

/* --- everything --- */

LIVE_TEST(services, all)
{
	struct target *first = start(pick("3.13", "debian"), "spin.py"), *second;
	struct target *third = start(pick("3.15", "debian"), "fib.py");
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-a", "-d", "4"));
	struct child *child = service__begin(service);
	struct run *run;

	check(child__wait_message(child, "first sample", 60), "no first sample: %s", child__err(child));
	second = start(pick("3.14", "debian"), "spin.py");
	run = service__finish(child, service);
	check_profile_of_all(run);
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
	struct run *run =
		service__run(service__profiled(OPTIONS("-q", "-a", "-d", "2", "--exclude", "spin.py")));

	check_profile_of_all(run);
	check(of_process(run, fib->pid, "fib") > 50 && !of_process(run, spin->pid, NULL), "--exclude: %s",
	      run->err);
	check(strstr(run->err, "but not asked for"), "it says: %s", run->err);
	run = service__run(
		service__profiled(OPTIONS("-q", "-a", "-d", "2", "--comm", "python3.13", "--user", "root")));
	check_profile(run, 0);
	check(of_process(run, spin->pid, "spin") > 50 && !of_process(run, fib->pid, NULL), "--comm: %s",
	      run->err);
}
