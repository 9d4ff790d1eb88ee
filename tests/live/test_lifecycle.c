/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that become Python late, become another one, come and go by the hundred, or have a pid that another one had.
 */
#include "builds.h"
#include "service.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1 };

/* --- libpython is loaded late --- */

static void check_spin(const struct run *run, pid_t pid)
{
	uint64_t spin = pid ? of_process(run, pid, "spin") : stacks__with(&run->stacks, "spin");

	check(spin > 50, "spin has %llu samples: %s", (unsigned long long)spin, run->err);
}

/* Where the profiler looked at everything when it started, and found it to be no Python. */
LIVE_TEST(lifecycle, late_library_somewhere)
{
	struct target *target = start_embed(pick("3.12", "pyenv"), false, "late", OPTIONS("3"));
	struct run *run = service__run(service__profiled(OPTIONS("-q", "-a", "-d", "5")));

	check_profile_of_all(run);
	check_spin(run, target->pid);
}

LIVE_TEST(lifecycle, late_library_of_a_process)
{
	struct target *target = start_embed(pick("3.12", "pyenv"), false, "late", OPTIONS("2"));
	char pid[16];
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = service__run(service__profiled(OPTIONS("-q", "-s", "-d", "4", "-p", pid)));
	check_profile(run, 0);
	check_spin(run, 0);
}

LIVE_TEST(lifecycle, late_library_of_a_command)
{
	const struct python *python = pick("3.12", "pyenv");
	const char *program = compile_embed(python);
	char library[CHILD_PATH], prefix[256] = "/usr", home[300];
	struct service *service;
	struct child *child;
	struct run *run;

	library_of(python, library, sizeof(library));
	prefix_of(python, prefix, sizeof(prefix));
	snprintf(home, sizeof(home), "PYTHONHOME=%s", prefix);
	service = service__profiled(
		OPTIONS("-q", "-d", "4", "--", "env", home, program, library, "late", "2"));
	child = service__begin(service);
	check(child__wait_message(child, "goes on", 60), "no profile: %s", child__err(child));
	kill(child->pid, SIGTERM);
	run = service__finish(child, service);
	check_profile(run, 128 + SIGTERM);
	check_spin(run, 0);
}

/* --- other programs under one pid --- */

#define LINK                                                                                                 \
	BURN "import os, sys\n"                                                                              \
	     "name = 'in_%d_%d' % sys.version_info[:2]\n"                                                    \
	     "exec('def %s(): burn(0.4)' % name)\n"                                                          \
	     "globals()[name]()\n"                                                                           \
	     "if sys.argv[1:]: os.execv(sys.argv[1], sys.argv[1:2] + [__file__] * (sys.argv[1] != '/bin/sh') +"  \
	     " [__file__ if word == '@' else word for word in sys.argv[2:]])\n"

LIVE_TEST(lifecycle, exec_chain)
{
	static const char *const names[] = {"in_3_13", "in_3_14", "in_3_15"};
	static const char *const words[] = {
		"/usr/bin/python3.14", "/bin/sh", "-c",
		"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec /usr/bin/python3.15 \"$0\"", "@", NULL};
	struct service *service = service__command(pick("3.13", "debian"), OPTIONS("-q"), LINK);
	struct run *run;

	for (size_t i = 0; words[i]; i++)
		service__add(service, words[i]);
	run = service__run(service);
	check_profile(run, 0);
	for (size_t i = 0; i < 3; i++)
		check(stacks__with(&run->stacks, names[i]) > 100, "%s has %llu samples: %s", names[i],
		      (unsigned long long)stacks__with(&run->stacks, names[i]), run->err);
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		check(stack__count(stack, names[0]) + stack__count(stack, names[1]) +
				      stack__count(stack, names[2]) <=
			      1,
		      "frames of two programs: %s", stack__text(stack));
	}
}

/* Where addresses are not random, the next program is where the one before was, to the last byte. */
#define AGAIN                                                                                                \
	BURN "import os, sys\n"                                                                              \
	     "with open(__file__ + '.runs', 'a+') as file:\n"                                                \
	     "    file.write('x')\n"                                                                         \
	     "    file.seek(0)\n"                                                                            \
	     "    run = len(file.read())\n"                                                                  \
	     "exec('def run%d(): burn(0.3)\\nrun%d()' % (run, run))\n"                                       \
	     "if run < 3: os.execv(sys.executable, [sys.executable, __file__])\n"

LIVE_TEST(lifecycle, exec_of_the_same_at_the_same_addresses)
{
	struct service *service = service__command(pick("3.15", "debian"), OPTIONS("-q"), AGAIN);
	const char *argv[SERVICE_WORDS + 2] = {"setarch", "-R"};
	struct run *run;

	memcpy(argv + 2, service->argv, service->count * sizeof(*argv));
	run = service__finish(child__start(&(struct child_config){.argv = argv, .env = {"PBP_LIMIT=100"}}), service);
	check_profile(run, 0);
	for (int i = 1; i <= 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "run%d", i);
		check(stacks__with(&run->stacks, name) > (by_readv() ? 30 : 250), "%s has %llu samples: %s", name,
		      (unsigned long long)stacks__with(&run->stacks, name), run->err);
	}
}

/* In a pid namespace of its own, where it can be said which number is next. Each worker has the same memory, but for its
 * function, which lies where the one before had its own. */
#define SAME_PID                                                                                             \
	BURN "import os, time\n"                                                                             \
	     "burn(0.1)\n"                                                                                   \
	     "for i in range(6):\n"                                                                          \
	     "    with open('/proc/sys/kernel/ns_last_pid', 'w') as file: file.write('999')\n"               \
	     "    pid = os.fork()\n"                                                                         \
	     "    if not pid:\n"                                                                             \
	     "        exec('def worker%d(): burn(0.15)\\nworker%d()' % (i, i))\n"                            \
	     "        os._exit(0)\n"                                                                         \
	     "    print(pid, flush=True)\n"                                                                  \
	     "    os.waitpid(pid, 0)\n"                                                                      \
	     "    pid = os.fork()\n"                                                                         \
	     "    if not pid:\n"                                                                             \
	     "        time.sleep(0.1)\n"                                                                     \
	     "        os._exit(0)\n"                                                                         \
	     "    os.waitpid(pid, 0)\n"

LIVE_TEST(lifecycle, a_pid_again)
{
	struct service *service = service__command(pick("3.11", "host"), OPTIONS("-q", "-s"), SAME_PID);
	const char *argv[SERVICE_WORDS + 4] = {"unshare", "--pid", "--fork", "--mount-proc"};
	struct child *child;
	struct run *run;

	memcpy(argv + 4, service->argv, service->count * sizeof(*argv));
	child = child__start(&(struct child_config){.argv = argv, .group = true});
	run = service__finish(child, service);
	check_profile(run, 0);
	check(!strcmp(run->out, "1000\n1000\n1000\n1000\n1000\n1000\n"), "pids: %s", run->out);
	for (int i = 0; i < 6; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker%d", i);
		check(stacks__with(&run->stacks, name) > (by_readv() ? 0 : 30), "%s has %llu samples: %s", name,
		      (unsigned long long)stacks__with(&run->stacks, name), run->err);
	}
}

/* --- servers --- */

/* Workers end after some requests, and others take their place. */
LIVE_TEST(lifecycle, prefork_server)
{
	static const char text[] = BURN "import os\n"
					"def serve():\n"
					"    burn(0.15)\n"
					"    os._exit(0)\n"
					"def start():\n"
					"    if not os.fork(): serve()\n"
					"for _ in range(3): start()\n"
					"for _ in range(9):\n"
					"    os.wait()\n"
					"    start()\n"
					"for _ in range(3): os.wait()\n";
	struct run *run = service__run(service__command(pick("3.14", "debian"), OPTIONS("-q", "-s"), text));

	check_profile(run, 0);
	check(processes_with(run, "serve") == 12, "%zu workers: %s", processes_with(run, "serve"), run->err);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 70, "burn has %.1f %%: %s",
	      percent(run, stacks__with(&run->stacks, "burn")), run->err);
	/* The kernel side knows what each used to the last. */
	if (!by_readv()) {
		check(!strstr(run->err, "not known how much"), "it says: %s", run->err);
		check(number_before(run->err, " given") > 930 && number_before(run->err, " given") < 1050,
		      "%.1f Hz given: %s", number_before(run->err, " given"), run->err);
	}
}

LIVE_TEST(lifecycle, forkserver)
{
	static const char text[] =
		BURN "import multiprocessing\n"
		     "def work(seconds): burn(seconds)\n"
		     "if __name__ == '__main__':\n"
		     "    how = multiprocessing.get_context('forkserver')\n"
		     "    workers = [how.Process(target=work, args=(0.5,)) for _ in range(3)]\n"
		     "    for worker in workers: worker.start()\n"
		     "    for worker in workers: worker.join()\n";
	struct run *run = service__run(service__command(pick("3.14", "debian"), OPTIONS("-q", "-s"), text));

	check_profile(run, 0);
	check(processes_with(run, "work") == 3, "%zu workers: %s", processes_with(run, "work"), run->err);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 60, "burn has %.1f %%: %s",
	      percent(run, stacks__with(&run->stacks, "burn")), run->err);
}

/* --- many --- */

/* A fleet, from the time when all of it has been found; `words`: before those of the profiler. */
static struct run *profile_fleet(const struct target *target, int signal_of_fleet, const char *const *words)
{
	const char *argv[SERVICE_WORDS + 4] = {NULL};
	struct service *service;
	struct child *child;
	size_t count = 0;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", target->pid);
	service = service__profiled(OPTIONS("-q", "-v", "-s", "-p", pid));
	while (*words)
		argv[count++] = *words++;
	memcpy(argv + count, service->argv, service->count * sizeof(*argv));
	child = child__start(&(struct child_config){.argv = argv});
	check(child__wait_message(child, "processes were looked at", 100), "it does not find them: %s",
	      child__err(child));
	pause_for(4);
	kill(signal_of_fleet ? target->pid : child->pid, signal_of_fleet ?: SIGINT);
	return service__finish(child, service);
}

static void check_fleet(const struct run *run)
{
	check_profile(run, 0);
	check(strstr(run->err, "of 201 Python processes"), "it says: %s", run->err);
	/* Each runs for a millisecond now and then, which the readv engine is not always in time for. */
	check(by_readv() || processes_with(run, "work") >= 190, "%zu are in the profile: %s", processes_with(run, "work"),
	      run->err);
}

LIVE_TEST(lifecycle, two_hundred)
{
	struct target *target = start(pick("3.14", "debian"), "fleet.py", .args = {"200", "fork", "1"});
	struct run *run = profile_fleet(target, 0, OPTIONS(NULL));

	check_fleet(run);
	check(run->report.resident_mb < 64, "%.1f MB", run->report.resident_mb);
	check(by_readv() || strstr(run->err, " taken, 0 lost"), "it says: %s", run->err);
}

/* Not enough for one each: they are followed all the same, and what ends is noticed. */
LIVE_TEST(lifecycle, few_file_descriptors)
{
	struct target *target = start(pick("3.14", "debian"), "fleet.py", .args = {"200", "fork", "1"});
	struct run *run;

	if (by_readv())
		return; /* it needs one for each thread */
	run = profile_fleet(target, SIGKILL, OPTIONS("prlimit", "--nofile=160:160"));
	check_fleet(run);
	check(strstr(run->err, "RLIMIT_NOFILE") && strstr(run->err, "all processes have ended"), "it says: %s",
	      run->err);
}

LIVE_TEST(lifecycle, too_few_file_descriptors)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	const char *argv[SERVICE_WORDS + 2] = {"prlimit", "--nofile=8:8"};
	struct service *service;
	struct run *run;
	char pid[16];

	if (by_readv())
		return;
	snprintf(pid, sizeof(pid), "%d", target->pid);
	service = service__profiled(OPTIONS("-d", "0.3", "--engine=bpf", "-p", pid));
	memcpy(argv + 2, service->argv, service->count * sizeof(*argv));
	run = service__finish(child__start(&(struct child_config){.argv = argv}), service);
	check(run->code == FAILED && strstr(run->err, "RLIMIT_NOFILE (ulimit -n) is too low"), "exit code %d: %s",
	      run->code, run->err);
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

/* The map of that name that a process has open; -1: none. */
static int open_map(pid_t pid, const char *name)
{
	char folder[64], path[128], *text;
	int found = -1;
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fdinfo", pid);
	dir = opendir(folder);
	while (dir && found < 0 && (entry = readdir(dir))) {
		struct bpf_map_info info = {0};
		__u32 size = sizeof(info);
		const char *id;

		snprintf(path, sizeof(path), "%s/%.20s", folder, entry->d_name);
		text = read_text(path);
		id = strstr(text, "map_id:");
		found = id ? bpf_map_get_fd_by_id(atoi(id + strlen("map_id:"))) : -1;
		free(text);
		if (found >= 0 && (bpf_obj_get_info_by_fd(found, &info, &size) || strcmp(info.name, name))) {
			close(found);
			found = -1;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Processes that are sampled by the BPF engine. */
static size_t count_targets(pid_t pid)
{
	int map = open_map(pid, "targets");
	__u32 key, next;
	size_t count = 0;

	check(map >= 0, "there is no map of targets");
	for (bool more = !bpf_map_get_next_key(map, NULL, &next); more && count < 100000;
	     more = !bpf_map_get_next_key(map, &key, &next)) {
		key = next;
		count++;
	}
	close(map);
	return count;
}

static double resident_mb(pid_t pid)
{
	char path[64], *text;
	const char *field;
	double kb;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = read_text(path);
	field = strstr(text, "VmRSS:");
	kb = field ? atof(field + strlen("VmRSS:")) : 0;
	free(text);
	return kb / 1024;
}

/* Forks, execs and ends by the hundred: nothing is left of them, and who goes on has its share. */
LIVE_TEST(lifecycle, storm)
{
	static const char text[] = BURN "import os, subprocess, time\n"
					"def steady(): burn(2.5)\n"
					"worker = os.fork()\n"
					"if not worker:\n"
					"    steady()\n"
					"    print('used', time.process_time(), flush=True)\n"
					"    os._exit(0)\n"
					"print('begin', flush=True)\n"
					"time.sleep(1)\n"
					"for i in range(400):\n"
					"    pid = os.fork()\n"
					"    if not pid: os._exit(0)\n"
					"    os.waitpid(pid, 0)\n"
					"    if i % 4 == 0: subprocess.call(['/bin/true'])\n"
					"print('end', flush=True)\n"
					"time.sleep(2.5)\n"
					"os.waitpid(worker, 0)\n";
	struct service *service =
		service__command(pick("3.14", "debian"), OPTIONS("-q", "-s", "--stats"), text);
	struct child *child = service__begin(service);
	size_t fds_before, fds_after, targets_before = 0, targets_after = 0;
	double mb_before, mb_after, share;
	const char *used;
	struct run *run;

	check(child__wait_line(child, "begin", 60), "it does not begin: %s", child__err(child));
	pause_for(0.8);
	fds_before = count_fds(child->pid);
	mb_before = resident_mb(child->pid);
	targets_before = by_readv() ? 0 : count_targets(child->pid);
	check(child__wait_line(child, "end", 100), "it does not end: %s", child__err(child));
	pause_for(1.5);
	fds_after = count_fds(child->pid);
	mb_after = resident_mb(child->pid);
	targets_after = by_readv() ? 0 : count_targets(child->pid);
	run = service__finish(child, service);
	check_profile(run, 0);
	check(fds_before && fds_after <= fds_before + 2, "%zu file descriptors before, %zu after", fds_before,
	      fds_after);
	check(targets_after <= targets_before, "%zu targets before, %zu after", targets_before, targets_after);
	check(mb_after < mb_before + 8, "%.1f MB before, %.1f after", mb_before, mb_after);
	used = strstr(run->out, "used ");
	share = used ? stacks__with(&run->stacks, "steady") / (999 * atof(used + 5)) : 0;
	check(share > (by_readv() ? 0.5 : 0.95) && share < 1.05, "steady has %.3f of its share: %s", share, run->err);
}

/* Processes that end while they are looked at are no reason to say anything. */
LIVE_TEST(lifecycle, ends_in_silence)
{
	static const char script[] = "while kill -0 $PPID; do /usr/bin/python3.11 \"$0\"; /bin/true; done";
	char path[CHILD_PATH + 16];
	const char *argv[] = {"sh", "-c", script, path, NULL};
	struct run *run;

	pick("3.11", "host");
	snprintf(path, sizeof(path), "%s/brief.py", scratch_folder(""));
	write_file(path, "def brief(): sum(range(10**6))\nbrief()\n");
	child__start(&(struct child_config){.argv = argv, .group = true});
	run = service__run(service__profiled(OPTIONS("-q", "-a", "-d", "3")));
	check_profile_of_all(run);
	check(!strstr(run->err, "warning") && !strstr(run->err, "error"), "it says: %s", run->err);
	check(processes_with(run, "brief") > 3 || by_readv(), "%zu are in the profile: %s",
	      processes_with(run, "brief"), run->err);
}
