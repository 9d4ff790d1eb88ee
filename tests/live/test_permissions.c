/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Without the rights that it takes: exit code 4, and what would permit it is named. And with all rights: the
 * target is only read.
 */
#include "service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_PERMITTED = 4, PARTIAL = 5 };

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

/* --- filters of system calls --- */

/* The profiler where these system calls are refused; what it says names the filter. */
static struct run *filtered(const char *rules, pid_t pid, const char *engine)
{
	const struct python *python = pick("3.11", "host");
	char text[16];
	const char *argv[] = {python->command,
			      "tests/targets/filtered.py",
			      rules,
			      profiler_path(),
			      "-q",
			      "-d",
			      "0.5",
			      "-p",
			      text,
			      engine,
			      NULL};
	struct run *run;

	snprintf(text, sizeof(text), "%d", pid);
	run = profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
	check(strstr(run->err, "seccomp filter"), "no filter is named: %s", run->err);
	return run;
}

static const char *rule(long number, int error)
{
	static char text[32];

	snprintf(text, sizeof(text), "%ld:%d", number, error);
	return text;
}

LIVE_TEST(permissions, filtered_bpf)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	static const long calls[] = {SYS_bpf, SYS_perf_event_open};
	static const int errors[] = {EPERM, ENOSYS};

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < 2; j++) {
			struct run *run = filtered(rule(calls[i], errors[j]), target->pid, "--engine=auto");

			check(run->code == 0, "exit code %d: %s", run->code, run->err);
			check(strstr(run->err, "using the readv engine: cannot "), "it says: %s", run->err);
			run = filtered(rule(calls[i], errors[j]), target->pid, "--engine=bpf");
			check_not_permitted(run, "cannot ");
		}
}

LIVE_TEST(permissions, filtered_reads)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");

	check_not_permitted(filtered(rule(SYS_process_vm_readv, EPERM), target->pid, "--engine=auto"),
			    "permission denied");
	check_not_permitted(filtered(rule(SYS_process_vm_readv, ENOSYS), target->pid, "--engine=readv"),
			    "no process_vm_readv here");
	check_not_permitted(filtered(rule(SYS_pidfd_open, EPERM), target->pid, "--engine=auto"),
			    "pidfd_open");
	check_not_permitted(filtered(rule(SYS_pidfd_open, ENOSYS), target->pid, "--engine=readv"),
			    "pidfd_open");
}

/* It lives, but no file says so. */
LIVE_TEST(permissions, hidden)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	static const char hide[] =
		"mount -t proc -o hidepid=2 proc /proc; exec setpriv --reuid=65534 --regid=65534 "
		"--clear-groups \"$0\" \"$@\"";

	check_not_permitted(wrapped(public_profiler(), target->pid, "unshare", "-m", "sh", "-ec", hide),
			    "hidepid");
}

/* --- some of what is found --- */

/* A user whose processes are none but those of these tests. */
#define STRANGER      64321
#define STRANGER_TEXT "64321"
#define AS_STRANGER   "setpriv", "--reuid=" STRANGER_TEXT, "--regid=" STRANGER_TEXT, "--clear-groups"
/* For what is run as "chroot ROOT ...". */
#define CHROOT_AS_STRANGER "exec chroot --userspec=" STRANGER_TEXT ":" STRANGER_TEXT " \"$@\""

/* As that user: options, and where the profile goes. */
static struct run *run_as_stranger(const char *const *options, char *file, size_t file_size)
{
	const char *argv[32] = {AS_STRANGER, public_profiler(), "-q", "-r", "999", "-o", file};
	const char *folder = scratch_folder("");
	size_t count = 10;

	check(!chown(folder, STRANGER, STRANGER), "chown");
	snprintf(file, file_size, "%s/x.collapsed", folder);
	while (*options)
		argv[count++] = *options++;
	return profiler__finish(child__start(&(struct child_config){.argv = argv}), file);
}

/* One that it may read, one that it may not, and whatever else is on the machine: that is not all. */
LIVE_TEST(permissions, some_of_all)
{
	struct target *own =
		start(pick("3.14", "debian"), "spin.py", .wrapper = {"sh", "-c", CHROOT_AS_STRANGER});
	struct target *roots = start(pick("3.13", "debian"), "spin.py");
	char file[CHILD_PATH];
	struct run *run = run_as_stranger(OPTIONS("-a", "-d", "1.5"), file, sizeof(file));

	check(run->code == PARTIAL, "exit code %d: %s", run->code, run->err);
	check(of_process(run, own->pid, "spin") && !of_process(run, roots->pid, NULL), "it says: %s",
	      run->err);
	check(number_before(run->err, " not permitted to read") >= 1 &&
		      strstr(run->err, "Python by the name"),
	      "it does not say how many were not, and of which it matters: %s", run->err);
	run = run_as_stranger(OPTIONS("-a", "-d", "1", "--user", STRANGER_TEXT), file, sizeof(file));
	check(run->code == 0 && !strstr(run->err, "not permitted to read"),
	      "of its own ones it is, exit code %d: %s", run->code, run->err);
}

LIVE_TEST(permissions, none_of_all)
{
	struct target *roots = start(pick("3.13", "debian"), "spin.py");
	char file[CHILD_PATH];
	struct run *run =
		run_as_stranger(OPTIONS("-a", "-d", "0.5", "--comm", "python3.13"), file, sizeof(file));

	check_not_permitted(run, "could not be looked at: not permitted to read");
	check(access(file, F_OK) && roots->pid, "there is a profile");
}

/* What it starts runs as root, by the file's set-user-id bit. */
LIVE_TEST(permissions, some_of_what_is_started)
{
	static const char wait[] =
		"until [ -u \"$1${3%/*}/sleep\" ]; do sleep 0.05; done;" CHROOT_AS_STRANGER;
	static const char text[] =
		"import os, subprocess\n"
		"def spin():\n"
		"    while True: sum(range(200))\n"
		"subprocess.Popen([os.path.dirname(os.path.abspath(__file__)) + '/sleep', '100'])\n"
		"print('ready', flush=True)\n"
		"spin()\n";
	struct target *target = start(pick("3.14", "debian"), "starts.py", .text = text, .not_ready = true,
				      .wrapper = {"sh", "-c", wait});
	char copy[CHILD_PATH + 16], pid[16], file[CHILD_PATH];
	struct run *run;

	snprintf(copy, sizeof(copy), "%s/sleep", target->folder);
	copy_file("/bin/sleep", copy);
	check(!chmod(copy, 04755), "chmod");
	check(child__wait_line(target->child, "ready", 60), "not ready: %s", child__err(target->child));
	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = run_as_stranger(OPTIONS("-p", pid, "-s", "-d", "1"), file, sizeof(file));
	check(run->code == PARTIAL, "exit code %d: %s", run->code, run->err);
	check(strstr(run->err, "sleep 100) is not profiled: permission denied") &&
		      strstr(run->err, "(1 not permitted to read"),
	      "it says: %s", run->err);
	check(stacks__with(&run->stacks, "spin") > 5, "spin has %llu samples",
	      (unsigned long long)stacks__with(&run->stacks, "spin"));
}

/* --- commands --- */

/* Loading BPF is one thing, reading another: a command of one's own may be read. */
LIVE_TEST(permissions, command_of_an_ordinary_user)
{
	static const char text[] = BURN "print('it runs', flush=True)\nburn(0.3)\n";
	const struct python *python = pick("3.11", "host");
	char program[CHILD_PATH + 16], file[CHILD_PATH];
	struct run *run;

	snprintf(program, sizeof(program), "%s/own.py", scratch_folder(""));
	write_file(program, text);
	run = run_as_stranger(OPTIONS("--", python->command, program), file, sizeof(file));
	check(run->code == 0 && strstr(run->err, "using the readv engine: not permitted to load BPF"),
	      "exit code %d: %s", run->code, run->err);
	check(percent(run, stacks__with(&run->stacks, "burn")) > 50, "burn has %.1f %%",
	      percent(run, stacks__with(&run->stacks, "burn")));
	run = run_as_stranger(OPTIONS("--engine=bpf", "--", python->command, program), file, sizeof(file));
	check_not_permitted(run, "not permitted to load BPF");
}

/* One of those that are profiled keeps others from reading it, as an exec of a set-user-id program does. */
LIVE_TEST(permissions, one_that_may_not_be_read_any_more)
{
	static const char text[] = BURN "import ctypes, os\n"
					"def closed():\n"
					"    burn(0.2)\n"
					"    ctypes.CDLL(None).prctl(4, 0)\n"
					"    burn(0.2)\n"
					"def open_to_all(): burn(0.5)\n"
					"if not os.fork():\n"
					"    closed()\n"
					"    os._exit(0)\n"
					"os.wait()\n"
					"open_to_all()\n";
	const struct python *python = pick("3.11", "host");
	char program[CHILD_PATH + 16], file[CHILD_PATH];
	struct run *run;

	snprintf(program, sizeof(program), "%s/own.py", scratch_folder(""));
	write_file(program, text);
	run = run_as_stranger(OPTIONS("-r", "499", "-s", "--", python->command, program), file, sizeof(file));
	check(run->code == PARTIAL && strstr(run->err, "is not profiled: permission denied"), "exit code %d: %s",
	      run->code, run->err);
	check(!strstr(run->err, "another program"), "it says: %s", run->err);
	check(stacks__with(&run->stacks, "closed") && stacks__with(&run->stacks, "open_to_all"),
	      "closed has %llu samples, open_to_all %llu: %s",
	      (unsigned long long)stacks__with(&run->stacks, "closed"),
	      (unsigned long long)stacks__with(&run->stacks, "open_to_all"), run->err);
}

/* Nobody may read the program's file, so nobody may read the process, though it is the user's own. */
LIVE_TEST(permissions, command_that_is_protected)
{
	const struct python *python = pick("3.11", "host");
	char program[CHILD_PATH + 16], file[CHILD_PATH];
	struct run *run;

	snprintf(program, sizeof(program), "%s/python", scratch_folder(""));
	copy_file(python->command, program);
	check(!chmod(program, 0711), "chmod");
	run = run_as_stranger(OPTIONS("--", program, "-c", "import time; time.sleep(0.5)"), file,
			      sizeof(file));
	check_not_permitted(run, "permission denied: reading its memory");
	check(strstr(run->err, "protected even from its own user"), "it says: %s", run->err);
}

/* sudo would be no help. */
LIVE_TEST(permissions, no_new_privileges)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");
	struct run *run = wrapped(public_profiler(), target->pid, AS_STRANGER, "--no-new-privs");

	check_not_permitted(run, "no_new_privs");
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

/* Of everything, the only one that is wanted is another user's. */
LIVE_TEST(permissions, of_all_none_may_be_read)
{
	static const char text[] = "open('/proc/self/comm', 'w').write('not-for-nobody')\n"
				   "print('ready', flush=True)\n"
				   "while True: sum(range(200))\n";
	const char *argv[] = {"setpriv",
			      "--reuid=65534",
			      "--regid=65534",
			      "--clear-groups",
			      public_profiler(),
			      "-a",
			      "--comm",
			      "not-for-nobody*",
			      "-d",
			      "0.5",
			      "-q",
			      NULL};
	struct run *run;

	start(pick("3.11", "host"), "denied.py", .text = text);
	run = profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
	check_not_permitted(run, "1 of those found could not be looked at: not permitted to read");
	check(strstr(run->err, "denied.py"), "it is not named: %s", run->err);
}
