/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Targets and the profiler itself in namespaces of all kinds: numbers are the profiler's own ones, with the
 * inner one beside it; the processes meant are the ones that are profiled; files are those that the target
 * has. What cannot be is refused, with its reason. Mounts are made in mount namespaces that go with their
 * processes.
 */
#include "service.h"

#include "base/util.h"
#include "os/pidns.h"
#include "os/tree.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 1, NOT_PERMITTED = 4 };

/* --- who is meant --- */

#define IN_PIDNS "unshare", "-pf", "--kill-child", "--mount-proc"

/* The only child of a process, as numbered here; of that one the child, and so on. */
static pid_t descendant(pid_t pid, int depth)
{
	struct tree tree = {0};
	size_t first;

	for (int tries = 0; depth && tries < 5000; tries++) {
		if (!tree__read(&tree) && tree__children(&tree, pid, &first) == 1) {
			pid = tree.edges.items[first].pid;
			depth--;
		} else {
			pause_for(0.002);
		}
		tree__free(&tree);
	}
	check(!depth, "process %d has no child", pid);
	return pid;
}

/* nsenter -t PID NAMESPACES... ARGS... Namespaces are the letters that nsenter has for them. */
static struct child *start_in(pid_t pid, const char *namespaces, const char *const *args)
{
	const char *argv[40] = {"nsenter", "-t"};
	char text[16], letters[8][3];
	size_t count = 3;

	snprintf(text, sizeof(text), "%d", pid);
	argv[2] = text;
	for (size_t i = 0; namespaces[i]; i++) {
		snprintf(letters[i], sizeof(letters[i]), "-%c", namespaces[i]);
		argv[count++] = letters[i];
	}
	while (*args && count < 39)
		argv[count++] = *args++;
	return child__start(&(struct child_config){.argv = argv, .group = true, .env = {"PBP_LIMIT=100"}});
}

static struct run *service_in(pid_t pid, const char *namespaces, struct service *service)
{
	return service__finish(start_in(pid, namespaces, service->argv), service);
}

static bool has_root(const struct run *run, const char *name)
{
	for (size_t i = 0; i < run->stacks.len; i++)
		if (!strcmp(run->stacks.items[i].frames[0].name, name))
			return true;
	return false;
}

/* Weight of the stacks below such a root, with `name` in them. */
static uint64_t of_root(const struct run *run, const char *root, const char *name)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < run->stacks.len; i++)
		if (!strcmp(run->stacks.items[i].frames[0].name, root) &&
		    stack__count(&run->stacks.items[i], name))
			weight += run->stacks.items[i].weight;
	return weight;
}

/* Both are process 1 to themselves, and all that they are told by is which 1 is meant. */
LIVE_TEST(namespaces, siblings)
{
	struct target *spin = start(pick("3.14", "debian"), "spin.py", .wrapper = {IN_PIDNS});
	struct target *fib = start(pick("3.13", "debian"), "fib.py", .wrapper = {IN_PIDNS});
	struct target of_spin = *spin;
	pid_t spins = descendant(spin->pid, 1), fibs = descendant(fib->pid, 1);
	char number[64], root[64];
	struct run *run;

	of_spin.pid = spins;
	run = profile(&of_spin, .args = {"-t"});
	check(percent(run, stacks__with(&run->stacks, "spin")) > 95 && !stacks__with(&run->stacks, "fib"),
	      "from outside, spin has %.1f %%", percent(run, stacks__with(&run->stacks, "spin")));
	snprintf(number, sizeof(number), "of process %d [1 inside] (", spins);
	check(strstr(run->err, number), "\"%s\" is not told", number);
	snprintf(root, sizeof(root), "thread %d [1 inside]", spins);
	check(has_root(run, root), "no stack begins with \"%s\"", root);
	run = service_in(fibs, "pm", service__profiled(OPTIONS("-q", "-p", "1", "-d", "0.7", "-t")));
	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "fib")) > 95 && !stacks__with(&run->stacks, "spin"),
	      "from inside, fib has %.1f %%", percent(run, stacks__with(&run->stacks, "fib")));
	check(has_root(run, "thread 1") && strstr(run->err, "of process 1 ("), "it says: %s", run->err);
}

/* Three numbers: here, in between, inside. */
LIVE_TEST(namespaces, two_deep)
{
	static const char again[] = "unshare -pf --kill-child --mount-proc \"$0\" \"$@\"; exit";
	struct target *target =
		start(pick("3.15", "debian"), "spin.py", .wrapper = {IN_PIDNS, "sh", "-c", again});
	pid_t between = descendant(target->pid, 1), inside = descendant(between, 2);
	struct target innermost = *target;
	char number[64];
	struct run *run;

	innermost.pid = inside;
	run = profile(&innermost, .seconds = 0.7);
	snprintf(number, sizeof(number), "of process %d [1 inside] (", inside);
	check(strstr(run->err, number), "\"%s\" is not told", number);
	run = service_in(between, "pm",
			 service__profiled(OPTIONS("-q", "-p", "3", "-d", "0.7", "--by", "process")));
	check_profile(run, 0);
	check(has_root(run, "process 3 [1 inside]") && strstr(run->err, "of process 3 [1 inside] ("),
	      "it says: %s", run->err);
	check(percent(run, stacks__with(&run->stacks, "spin")) > 95, "spin has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "spin")));
	run = service_in(inside, "pm", service__profiled(OPTIONS("-q", "-p", "1", "-d", "0.7")));
	check_profile(run, 0);
	check(strstr(run->err, "of process 1 ("), "it says: %s", run->err);
}

/*
 * Everything, from out here and from inside of one: there it is what is in it, and what comes into it, whose
 * parent has no number there.
 */
LIVE_TEST(namespaces, all)
{
	struct target *spin = start(pick("3.14", "debian"), "spin.py", .wrapper = {IN_PIDNS});
	struct target *fib = start(pick("3.13", "debian"), "fib.py", .wrapper = {IN_PIDNS});
	pid_t spins = descendant(spin->pid, 1), fibs = descendant(fib->pid, 1);
	struct service *service = service__profiled(OPTIONS("-q", "-v", "-a"));
	const char *words[8], *root = spin->python->root, *file = spin->file;
	char spin_root[64], fib_root[64];
	struct child *child;
	struct run *run;

	run = service__run(service__profiled(OPTIONS("-q", "-a", "-d", "2")));
	check_profile_of_all(run);
	snprintf(spin_root, sizeof(spin_root), "process %d [1 inside]", spins);
	snprintf(fib_root, sizeof(fib_root), "process %d [1 inside]", fibs);
	check(of_root(run, spin_root, "spin") && of_root(run, fib_root, "fib"),
	      "spin has %llu samples, fib %llu: %s", (unsigned long long)of_root(run, spin_root, "spin"),
	      (unsigned long long)of_root(run, fib_root, "fib"), run->err);

	child = start_in(spins, "pm", service->argv);
	check(child__wait_message(child, "first sample", 60), "no first sample: %s", child__err(child));
	memcpy(words, (const char *[]){"chroot", root, "python3.15", file, NULL}, 5 * sizeof(*words));
	check(child__wait_line(start_in(spins, "pm", words), "ready", 60), "the second one is not ready");
	pause_for(2);
	kill(descendant(child->pid, 1), SIGINT);
	run = service__finish(child, service);
	check_profile(run, 0);
	check(of_root(run, "process 1", "spin"), "it has %llu samples: %s",
	      (unsigned long long)of_root(run, "process 1", "spin"), run->err);
	check(!stacks__with(&run->stacks, "fib"), "what is outside is in the profile");
	check(processes_with(run, "spin") == 2, "%zu processes are in the profile: %s",
	      processes_with(run, "spin"), run->err);
}

/* The number from inside, which out here is nobody's: whose it is is told. */
LIVE_TEST(namespaces, inner_number)
{
	static const char script[] =
		"echo $(($(cat /proc/sys/kernel/pid_max) - 100)) >/proc/sys/kernel/ns_last_pid;"
		"\"$0\" \"$@\" & wait";
	struct target *target =
		start(pick("3.14", "debian"), "spin.py", .wrapper = {IN_PIDNS, "sh", "-c", script});
	pid_t outer = descendant(target->pid, 2), inner = pidns__inner_pid(outer);
	char expected[64], number[16];

	if (!kill(inner, 0))
		cr_skip_test("somebody has that number");
	snprintf(number, sizeof(number), "%d", inner);
	snprintf(expected, sizeof(expected), "inside of a container it is the number of process %d (", outer);
	check_refused(profiler_run("-p", number, "-d", "0.3"), FAILED, expected);
	check_refused(profiler_run("dump", "-p", number), FAILED, expected);
}

/* --- whose numbers /proc has --- */

static void check_other_proc(struct child *child, const char *what)
{
	struct run *run = profiler__finish(child, NULL);

	check(run->code == FAILED && strstr(run->err, what), "exit code %d: %s", run->code, run->err);
	check(!run->out[0], "stdout has: %s", run->out);
}

/* Process 1 is another one to system calls than to /proc. */
LIVE_TEST(namespaces, proc_of_another)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py", .wrapper = {IN_PIDNS});
	pid_t inside = descendant(target->pid, 1);
	static const char other[] = "another pid namespace";
	const char *program = profiler_path();
	struct run *run;

	check_other_proc(start_in(inside, "p", OPTIONS(program, "-p", "1", "-d", "0.3")), other);
	check_other_proc(start_in(inside, "p", OPTIONS(program, "dump", "-p", "1")), other);
	check_other_proc(start_in(inside, "p", OPTIONS(program, "doctor", "-p", "1")), other);
	check_other_proc(start_in(inside, "p", OPTIONS(program, "--", "echo", "it runs")), other);
	/* ... and the other way round. */
	check_other_proc(start_in(inside, "m", OPTIONS(program, "-a", "-d", "0.3")), other);
	run = profiler__finish(start_in(inside, "p", OPTIONS(program, "doctor")), NULL);
	check(run->code == FAILED && strstr(run->out, other) && !strstr(run->out, "profiling works"),
	      "exit code %d: %s", run->code, run->out);
}

/* The profiler is outside. The namespace ends with the command, and waits for all that is in it. */
LIVE_TEST(namespaces, of_what_is_started_only)
{
	struct service *service =
		service__command(pick("3.14", "debian"), OPTIONS("-q", "-s"), BURN "burn(0.3)\nraise SystemExit(6)\n");
	const char *argv[SERVICE_WORDS + 2] = {"unshare", "-p"};
	struct child *child;
	struct run *run;

	memcpy(argv + 2, service->argv, service->count * sizeof(*argv));
	child = child__start(&(struct child_config){.argv = argv});
	check(child__wait(child, 60), "it does not end: %s", child__err(child));
	run = service__finish(child, service);
	check_profile(run, 6);
	check(strstr(run->err, "[1 inside]"), "it says: %s", run->err);
}

LIVE_TEST(namespaces, no_proc)
{
	const char *argv[] = {"unshare",       "-m", "sh", "-c", "umount -l /proc && exec \"$0\" -p 1 -d 0.3",
			      profiler_path(), NULL};

	check_other_proc(child__start(&(struct child_config){.argv = argv}), "/proc is not mounted");
}

/* --- user namespaces --- */

LIVE_TEST(namespaces, user)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py",
				      .wrapper = {"unshare", "-Urpf", "--kill-child", "--mount-proc"});
	struct target inside = *target;
	struct service *service;
	struct run *run;

	inside.pid = descendant(target->pid, 1);
	run = profile(&inside, .seconds = 0.7);
	check(percent(run, stacks__with(&run->stacks, "spin")) > 95, "spin has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "spin")));
	/* Root of it may read what is in it, but load nothing into the kernel. */
	service = service__profiled(OPTIONS("-q", "-p", "1", "-d", "0.7"));
	run = service_in(inside.pid, "Upm", service);
	check_profile(run, 0);
	check(by_readv() ||
		      (strstr(run->err, "using the readv engine") && strstr(run->err, "user namespace")),
	      "it does not say which engine it uses and why: %s", run->err);
	service = service__profiled(OPTIONS("-q", "-p", "1", "-d", "0.7", "--engine=bpf"));
	run = service_in(inside.pid, "Upm", service);
	check(run->code == NOT_PERMITTED && strstr(run->err, "user namespace"), "exit code %d: %s", run->code,
	      run->err);
}

/* --- time namespaces --- */

/*
 * The kernel side's clock is another one then. The first sample is of a moment since the start; and that
 * nothing is taken for an exec shows in the profile of a command, whose samples begin before it is attached
 * to.
 */
LIVE_TEST(namespaces, time)
{
	static const char *const offsets[] = {"-30", "100000"};

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		struct service *service = service__command(pick("3.14", "debian"), OPTIONS("-q", "-v"),
							   BURN "def busy(): burn(0.7)\nbusy()\n");
		const char *argv[SERVICE_WORDS + 8] = {"unshare", "-Tf", "--kill-child", "--monotonic",
						       offsets[i]};
		time_t before = time(NULL);
		const char *said;
		struct run *run;
		double first;

		memcpy(argv + 5, service->argv, service->count * sizeof(*argv));
		run = service__finish(child__start(&(struct child_config){.argv = argv}), service);
		check_profile(run, 0);
		check(percent(run, stacks__with(&run->stacks, "busy")) > 70, "busy has %.1f %%",
		      percent(run, stacks__with(&run->stacks, "busy")));
		said = strstr(run->err, "first sample at ");
		first = said ? strtod(said + strlen("first sample at "), NULL) : 0;
		check(first >= before && first <= time(NULL) + 1,
		      "the first sample is %.3f s after the start", first - before);
		check(by_readv() || !strstr(run->err, "became another program"), "it says: %s", run->err);
	}
}

LIVE_TEST(namespaces, time_of_the_target)
{
	struct target *target = start(pick("3.13", "debian"), "spin.py",
				      .wrapper = {"unshare", "-Tf", "--kill-child", "--boottime", "100000"});
	struct target inside = *target;

	inside.pid = descendant(target->pid, 1);
	profile(&inside, .seconds = 0.5);
}

/* --- files --- */

/* A shell in a mount namespace of its own; "$0" "$@" is the command in its chroot: chroot ROOT PYTHON
 * PROGRAM. */
#define WITH_MOUNTS(script)                                                                                  \
	{                                                                                                    \
		"unshare", "-m", "sh", "-ec", script                                                         \
	}

static void check_spin(struct target *target)
{
	struct run *run = profile(target, .seconds = 0.7);

	check(percent(run, stacks__ending_in(&run->stacks, "outer;middle;spin")) > 95, "spin has %.1f %%",
	      percent(run, stacks__ending_in(&run->stacks, "outer;middle;spin")));
}

/* The root is a mount that is nowhere any more, as after a container runtime's pivot_root. */
LIVE_TEST(namespaces, pivoted_root)
{
	static const char script[] =
		"mount --bind $1 $1; cd $1; shift; pivot_root . mnt; cd /; mount -t proc proc /proc;"
		"umount -l /mnt /proc; exec \"$@\"";

	check_spin(start(pick("3.14", "debian"), "spin.py", .wrapper = WITH_MOUNTS(script)));
}

/*
 * The root is an overlay in the target's mount namespace only, of which nothing is left: neither the
 * program's file nor the mount.
 */
LIVE_TEST(namespaces, overlay_that_is_gone)
{
	static const char script[] =
		"mount -t tmpfs tmpfs /mnt; mkdir /mnt/upper /mnt/work /mnt/tree;"
		"mount -t overlay overlay -o lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work /mnt/tree;"
		"cp $1$2 /mnt/tree/usr/bin/server; shift 2; chroot /mnt/tree /usr/bin/server \"$@\" &"
		"until [ \"$(readlink /proc/$!/exe)\" = /mnt/tree/usr/bin/server ]; do sleep 0.02; done;"
		"rm /mnt/tree/usr/bin/server; umount -l /mnt/tree; umount -l /mnt; wait";
	struct target *target = start(pick("3.14", "debian"), "spin.py", .wrapper = WITH_MOUNTS(script));
	struct target inside = *target;

	inside.pid = descendant(target->pid, 1);
	check_spin(&inside);
}

/* The same of a libpython whose runtime is found by its file only, for one who may not open such files. */
LIVE_TEST(namespaces, library_that_cannot_be_opened)
{
	static const char script[] =
		"mount -t tmpfs tmpfs /mnt; mkdir /mnt/upper /mnt/work /mnt/tree;"
		"mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/tree;"
		"chroot /mnt/tree \"$0\" \"$@\" & until grep -q libpython /proc/$!/maps; do sleep 0.02; done;"
		"umount -l /mnt/tree; umount -l /mnt; wait";
	const struct python *python = pythons__find("3.12", "pyenv");
	struct target *target;
	char pid[16];
	const char *argv[] = {"setpriv",
			      "--reuid=65534",
			      "--regid=65534",
			      "--clear-groups",
			      "--inh-caps=-all,+sys_ptrace",
			      "--ambient-caps=-all,+sys_ptrace",
			      NULL,
			      "-p",
			      pid,
			      "-d",
			      "0.3",
			      "--engine=readv",
			      NULL};

	if (!python)
		cr_skip_test("no Python 3.12 with a libpython");
	target = start(python, "spin.py", .wrapper = WITH_MOUNTS(script));
	snprintf(pid, sizeof(pid), "%d", descendant(target->pid, 1));
	argv[6] = public_profiler();
	check_refused(profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL),
		      NOT_PERMITTED, "without which its Python is not found");
}

/* The profiler sees none of the target's files: it is in a mount namespace without them. */
LIVE_TEST(namespaces, without_the_files)
{
	static const char hide[] = "mount -t tmpfs tmpfs \"$0\"; exec \"$@\"";
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	struct service *service = service__profiled(OPTIONS("-q", "-d", "0.7", "-p"));
	const char *argv[SERVICE_WORDS + 8] = {"unshare", "-m", "sh", "-ec", hide, target->python->root};
	char text[16];
	struct run *run;

	snprintf(text, sizeof(text), "%d", target->pid);
	service__add(service, text);
	memcpy(argv + 6, service->argv, service->count * sizeof(*argv));
	run = service__finish(child__start(&(struct child_config){.argv = argv}), service);
	check_profile(run, 0);
	check(percent(run, stacks__ending_in(&run->stacks, "outer;middle;spin")) > 95, "spin has %.1f %%",
	      percent(run, stacks__ending_in(&run->stacks, "outer;middle;spin")));
}
