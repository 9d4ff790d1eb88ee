/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Without the rights that it takes: exit code 4, and what would permit it is named. And with all rights: the
 * target is only read.
 */
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NOT_PERMITTED = 4 };

/* Runs as another user from its start, so that reading it takes CAP_SYS_PTRACE. */
static const char of_another_user[] = "import os\n"
				      "os.setgid(65534)\n"
				      "os.setuid(65534)\n"
				      "print('ready', flush=True)\n"
				      "def spin():\n"
				      "    while True: sum(range(200))\n"
				      "spin()\n";

/* `wrapper` ends by running its arguments; {program} -p PID -d 0.3 -q is added. */
static struct run *run_wrapped(const char *const *wrapper, const char *program, pid_t pid)
{
	const char *argv[32];
	char text[16];
	size_t count = 0;
	const char *const rest[] = {program, "-p", text, "-d", "0.3", "-q", NULL};

	snprintf(text, sizeof(text), "%d", pid);
	for (; wrapper[count]; count++)
		argv[count] = wrapper[count];
	for (size_t i = 0; i < 7; i++)
		argv[count + i] = rest[i];
	return profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
}

#define wrapped(program, pid, ...) run_wrapped((const char *const[]){__VA_ARGS__, NULL}, program, pid)

static void check_not_permitted(const struct run *run, const char *what)
{
	check(run->code == NOT_PERMITTED, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, what), "\"%s\" is not in: %s", what, run->err);
	check(!run->out[0], "stdout has: %s", run->out);
}

/* capsh runs a shell, which runs the words behind its -c. */
#define without_capabilities(names, program, pid)                                                            \
	wrapped(program, pid, "capsh", "--drop=" names, "--", "-c", "exec \"$0\" \"$@\"")

LIVE_TEST(permissions, nobody)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	const char *program = public_profiler();

	struct run *run =
		wrapped(program, target->pid, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups");

	check_not_permitted(run, "CAP_BPF");
	check(strstr(run->err, "SYS_PTRACE"), "SYS_PTRACE is not in: %s", run->err);
}

/* It can read the target, which is its own, but not load a program: so it does without. */
LIVE_TEST(permissions, no_bpf)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	struct run *run =
		without_capabilities("cap_bpf,cap_perfmon,cap_sys_admin", profiler_path(), target->pid);

	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "using the readv engine") && strstr(run->err, "CAP_BPF") &&
		      strstr(run->err, "CAP_PERFMON"),
	      "it does not say which engine it uses and why: %s", run->err);
	check(!strstr(run->err, "CAP_SYS_PTRACE is missing"), "reading is not the problem: %s", run->err);
}

LIVE_TEST(permissions, no_ptrace)
{
	struct target *target = start(pick("3.14", "debian"), "other.py", .text = of_another_user);
	struct run *run = without_capabilities("cap_sys_ptrace", profiler_path(), target->pid);

	check_not_permitted(run, "CAP_SYS_PTRACE");
	check(strstr(run->err, "permission denied"), "it does not say so: %s", run->err);
	check(!strstr(run->err, "not a Python"), "it takes it for something else: %s", run->err);
}

/* Uid 0, but only in a user namespace of its own. */
LIVE_TEST(permissions, root_in_name_only)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	struct run *run = wrapped(profiler_path(), target->pid, "unshare", "-Ur");

	check(run->code == NOT_PERMITTED, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "CAP_"), "no capability is named: %s", run->err);
}

/* The doctor says the same, with the same exit code. */
LIVE_TEST(permissions, doctor)
{
	const char *const argv[] = {"capsh",
				    "--drop=cap_bpf,cap_perfmon,cap_sys_admin",
				    "--",
				    "-c",
				    "\"$0\" doctor",
				    profiler_path(),
				    NULL};
	struct run *run = profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);

	check(run->code == NOT_PERMITTED, "exit code %d: %s", run->code, run->out);
	check(strstr(run->out, "CAP_BPF") && !strstr(run->out, "profiling works"), "it says: %s", run->out);
}

/* The three capabilities are enough. */
LIVE_TEST(permissions, three_capabilities)
{
	struct target *target = start(pick("3.14", "debian"), "other.py", .text = of_another_user);
	struct run *run = wrapped(public_profiler(), target->pid, "setpriv", "--reuid=65534", "--regid=65534",
				  "--clear-groups", "--inh-caps=-all,+bpf,+perfmon,+sys_ptrace",
				  "--ambient-caps=-all,+bpf,+perfmon,+sys_ptrace");

	check(run->code == 0, "exit code %d: %s", run->code, run->err);
}

/* No ptrace, no write, no signal to the target, as strace sees it; and its maps are read a few times only. */
EACH_PYTHON(permissions, target_is_only_read)
{
	static const char *const forbidden[] = {
		"ptrace(", "process_vm_writev(", "kill(", "pidfd_send_signal(", "setns(", "O_RDWR"};
	struct target *target = start(python, "other.py", .text = of_another_user);
	char folder[CHILD_PATH], trace[CHILD_PATH + 16], maps[64], *text, *rest, *line;
	const char *calls = "--trace=ptrace,process_vm_writev,kill,tgkill,tkill,pidfd_send_signal,setns,"
			    "open,openat,process_vm_readv";
	struct run *run;
	int maps_read = 0, reads = 0;

	snprintf(folder, sizeof(folder), "%s", scratch_folder(""));
	snprintf(trace, sizeof(trace), "%s/trace", folder);
	run = wrapped(profiler_path(), target->pid, "strace", "-f", "-s", "200", "-o", trace, calls);
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	snprintf(maps, sizeof(maps), "/proc/%d/maps\"", target->pid);
	rest = text = read_text(trace);
	while ((line = strsep(&rest, "\n"))) {
		char own[32];

		snprintf(own, sizeof(own), "\"/proc/%d/", target->pid);
		maps_read += strstr(line, maps) != NULL;
		reads += strstr(line, "process_vm_readv(") != NULL;
		for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
			check(!strstr(line, forbidden[i]) || (forbidden[i][0] == 'O' && !strstr(line, own)),
			      "a call that is none of its business: %s", line);
		check(!strstr(line, own) || !strstr(line, "/mem\""), "the target's memory file: %s", line);
	}
	check(maps_read >= 1 && maps_read <= 4, "maps are read %d times", maps_read);
	check(reads >= 1, "strace saw no read of the target");
	check(!strchr("Tt", process_state(target->pid)), "the target is stopped");
}
