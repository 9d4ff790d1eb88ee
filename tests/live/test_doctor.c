/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doctor -p: each line that can be known otherwise, against what the target's own Python, its file, the
 * kernel and a dump say; programs without a name, a symbol table or a file; and what is refused.
 */
#include "harness.h"

#include "base/utf8.h"
#include "base/util.h"
#include "os/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2, NOT_PYTHON = 3, NOT_PERMITTED = 4 };

#define COLUMNS	    80
#define FACT_COLUMN 20

/* Says what it knows of itself, then stands still with four threads. */
static const char known[] =
	"import sys, threading, time\n"
	"jit = getattr(sys, '_jit', None)\n"
	"gil = getattr(sys, '_is_gil_enabled', lambda: True)\n"
	"for i in range(3):\n"
	"    threading.Thread(target=time.sleep, args=(1e6,), daemon=True, name='t%d' % i).start()\n"
	"print('version %d.%d.%d' % sys.version_info[:3])\n"
	"print('debug', int(hasattr(sys, 'gettotalrefcount')))\n"
	"print('jit', int(bool(jit) and jit.is_available()))\n"
	"print('gil', int(gil()))\n"
	"print('ready', flush=True)\n"
	"time.sleep(1e6)\n";

static void check_has(const struct run *run, const char *text)
{
	check(strstr(run->out, text), "\"%s\" is not in:\n%s", text, run->out);
}

static void check_lacks(const struct run *run, const char *text)
{
	check(!strstr(run->out, text), "\"%s\" is in:\n%s", text, run->out);
}

/* No longer than a line, unless there is nothing to break it at. */
static void check_columns(const struct run *run)
{
	char *text = strdup(run->out), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		const char *words = line + strspn(line, " ");
		bool is_fact = words == line + 2;

		check(utf8_width(line, strlen(line)) <= COLUMNS || !strncmp(line, "Process ", 8) ||
			      !strchr(is_fact ? line + FACT_COLUMN : words, ' '),
		      "a line of %zu columns: %s", utf8_width(line, strlen(line)), line);
	}
	free(text);
}

/* It has to succeed. */
static struct run *doctor(pid_t pid)
{
	char text[16];
	struct run *run;

	snprintf(text, sizeof(text), "%d", pid);
	run = profiler_run("doctor", "-p", text);
	check(run->code == 0, "exit code %d", run->code);
	check(!run->err[0], "stderr has: %s", run->err);
	check_columns(run);
	check_lacks(run, "\x1b");
	return run;
}

/* What stands behind a name, of all lines that belong to it. Valid for the next calls, too. */
static const char *fact(const struct run *run, const char *name)
{
	static char texts[16][4096];
	static unsigned int next;
	char *out = texts[next++ % ARRAY_SIZE(texts)], start[64];
	const char *line;

	snprintf(start, sizeof(start), "\n  %-*s", FACT_COLUMN - 2, name);
	line = strstr(run->out, start);
	check(line, "there is no line %s:\n%s", name, run->out);
	line += strlen(start);
	*out = '\0';
	do {
		line += *out ? FACT_COLUMN + 1 : 0;
		snprintf(out + strlen(out), sizeof(texts[0]) - strlen(out), "%s%.*s", *out ? " " : "",
			 (int)strcspn(line, "\n"), line);
		line += strcspn(line, "\n");
	} while (*line && strspn(line + 1, " ") == FACT_COLUMN);
	return out;
}

static bool is_given(const struct run *run, const char *name)
{
	const char *text = fact(run, name);

	check(!strncmp(text, "yes", 3) || !strncmp(text, "NO ", 3), "%s: %s", name, text);
	return text[0] == 'y';
}

static const char *told(const struct target *target, const char *name)
{
	const char *text = child__wait_line(target->child, name, 1);

	check(text, "the target does not say %s", name);
	return text;
}

/* --- where _PyRuntime is --- */

/* By nm; 0: the file has no such symbol. */
static unsigned long symbol_of(const char *path)
{
	char command[CHILD_PATH + 64], line[512];
	unsigned long value = 0, found = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm -D --defined-only '%s' 2>/dev/null", path);
	nm = popen(command, "r");
	while (nm && fgets(line, sizeof(line), nm))
		if (strstr(line, " _PyRuntime\n") && sscanf(line, "%lx", &value) == 1)
			found = value;
	if (nm)
		pclose(nm);
	return found;
}

static bool is_at_fixed_address(const char *path)
{
	uint16_t type = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	check(pread(fd, &type, sizeof(type), 16) == sizeof(type), "%s is not readable", path);
	close(fd);
	return type == 2; /* ET_EXEC */
}

/* The program, or the first file named like a Python's that has the symbol; by the lines of maps. */
static unsigned long runtime_of(pid_t pid, char *file)
{
	char path[64], *text, *rest, *line;
	unsigned long found = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	rest = text = read_text(path);
	while (!found && (line = strsep(&rest, "\n"))) {
		unsigned long start, offset;
		int at = 0;

		if (sscanf(line, "%lx-%*x %*s %lx %*s %*s %n", &start, &offset, &at) < 2 || !at || offset ||
		    !strstr(line + at, "python"))
			continue;
		found = symbol_of(line + at);
		if (found && !is_at_fixed_address(line + at))
			found += start;
		snprintf(file, CHILD_PATH, "%s", line + at);
	}
	free(text);
	return found;
}

static void check_runtime(const struct run *run, pid_t pid)
{
	char file[CHILD_PATH] = "", expected[CHILD_PATH + 64], address[32];
	unsigned long runtime = runtime_of(pid, file);
	const char *text = fact(run, "_PyRuntime");

	check(runtime, "nm finds no _PyRuntime in the target's files");
	snprintf(address, sizeof(address), "0x%lx, ", runtime);
	snprintf(expected, sizeof(expected), " in %s", file);
	check(!strncmp(text, address, strlen(address)), "%s is not at %s", text, address);
	check(strstr(text, expected) && !strcmp(strstr(text, expected), expected), "%s: not%s", text,
	      expected);
	check(strstr(text, "section .PyRuntime") || strstr(text, "symbol _PyRuntime"), "%s", text);
}

/* --- every Python --- */

static void check_build(const struct run *run, const struct target *target)
{
	const struct python *python = target->python;
	const char *text = fact(run, "Python"), *version = told(target, "version ");
	char minor[16];

	/* Up to 3.10 the file tells no more. */
	snprintf(minor, sizeof(minor), "3.%d", python->minor);
	version = python->minor <= 10 ? minor : version;
	check(!strncmp(text, version, strlen(version)) && strchr(",t", text[strlen(version)]), "%s: not %s",
	      text, version);
	check(python->free_threaded == (strstr(text, "free-threaded") != NULL), "%s", text);
	check(strstr(text, atoi(told(target, "debug ")) ? "debug build" : "release build"), "%s", text);
	check(strstr(text, atoi(told(target, "jit ")) ? "JIT built in" : "no JIT"), "%s", text);
	check(strstr(text, atoi(told(target, "gil ")) ? "GIL on" : "GIL off"), "%s", text);
}

static void check_executable(const struct run *run, pid_t pid)
{
	char link[64], path[CHILD_PATH];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, path, sizeof(path) - 1);
	check(len > 0, "no %s", link);
	path[len] = '\0';
	check(!strcmp(fact(run, "executable"), path), "%s: not %s", fact(run, "executable"), path);
}

EACH_OF(supported_pythons, doctor, facts)
{
	struct target *target = start(python, "known.py", .text = known);
	struct run *run;
	char command[CHILD_PATH + 32];

	pause_for(0.2); /* from "ready" to where it stands */
	run = doctor(target->pid);
	snprintf(command, sizeof(command), "Process %d: ", target->pid);
	check(!strncmp(run->out, command, strlen(command)) && strstr(run->out, "known.py\n"), "%s", run->out);
	check_build(run, target);
	check_executable(run, target->pid);
	check_runtime(run, target->pid);
	check(strstr(fact(run, "offsets"), python->minor >= 13 ? "_Py_DebugOffsets" : "table of its version"),
	      "%s", fact(run, "offsets"));
	check(strstr(fact(run, "thread state by"),
		     python->minor >= 15 ? "thread-local variable" : "pthread key") &&
		      strstr(fact(run, "thread state by"), "(right for 4 threads)"),
	      "%s", fact(run, "thread state by"));
	check(!strcmp(fact(run, "interpreters"), "0 (main)"), "%s", fact(run, "interpreters"));
	check(!strcmp(fact(run, "threads"), "4 with a thread state, 0 native without one"), "%s",
	      fact(run, "threads"));
	check(!strcmp(fact(run, "stacks"), "of 4 of 4 thread states read, twice the same"), "%s",
	      fact(run, "stacks"));
	check(is_given(run, "bpf engine") && is_given(run, "readv engine"), "%s", run->out);
	check_has(run, "=> profiling works: pybpfprof -p ");
	check(!strchr("TtZX", process_state(target->pid)), "the target is in state %c",
	      process_state(target->pid));
}

/* What is said to be told is told. */
EACH_PYTHON(doctor, features)
{
	struct target *target = start(python, "known.py", .text = known);
	struct target *spin = start(python, "spin.py");
	struct run *run, *dump;
	char text[16];

	pause_for(0.2);
	run = doctor(target->pid);
	snprintf(text, sizeof(text), "%d", target->pid);
	dump = profiler_run("dump", "-p", text, "--json", "--locals");
	check(is_given(run, "variables") == (strstr(dump->out, "\"locals\": [") != NULL), "%s%s", run->out,
	      dump->out);
	check(is_given(run, "thread names") ==
		      (strstr(dump->out, "\"name\": \"t0\", \"name_source\": \"python\"") != NULL),
	      "%s%s", run->out, dump->out);
	run = doctor(spin->pid);
	snprintf(text, sizeof(text), "%d", spin->pid);
	dump = profiler_run("dump", "-p", text, "--json");
	check(is_given(run, "GIL holder") == (strstr(dump->out, "\"gil\": \"holds\"") != NULL), "%s%s",
	      run->out, dump->out);
	run = profiler_run("-p", text, "-d", "0.2", "-q", "--engine=readv", "--frame-marker");
	check(run->code == 0, "exit code %d", run->code);
	check(is_given(doctor(spin->pid), "frame marker") == !strstr(run->err, "has none"), "%s", run->err);
}

/* Where the GIL may be switched on, it is told. */
EACH_OF(free_threaded_pythons, doctor, gil_of_free_threaded)
{
	struct target *target = start(python, "known.py", .text = known, .env = {"PYTHON_GIL=1"});

	check_build(doctor(target->pid), target);
	check(strstr(fact(doctor(target->pid), "Python"), "GIL on"), "%s",
	      fact(doctor(target->pid), "Python"));
}

EACH_PYTHON(doctor, interpreters)
{
	static const char two[] =
		"import sys, time\n"
		"try:\n"
		"    import _interpreters\n"
		"    own, shared = _interpreters.create('isolated'), _interpreters.create('legacy')\n"
		"except ImportError:\n"
		"    import _xxsubinterpreters as _interpreters\n"
		"    own, shared = [_interpreters.create(isolated=i) for i in (True, False)]\n"
		"print('ready', flush=True)\n"
		"time.sleep(1e6)\n";
	struct target *target;
	const char *text;

	/* The module of 3.8 knows no isolation. */
	if (python->minor < 9)
		return;
	target = start(python, "two.py", .text = two);
	pause_for(0.2);
	text = fact(doctor(target->pid), "interpreters");
	check(!strcmp(text, python->minor >= 12 ? "0 (main), 1 (own GIL), 2 (the main one's GIL)"
						: "0 (main), 1, 2; one GIL for all"),
	      "%s", text);
}

/* A thread that CPython knows nothing of. */
EACH_WITH_TABLE(doctor, native_thread)
{
	struct target *target = start(python, "quiet.py", .args = {"native"});
	const char *text;

	pause_for(0.2);
	text = fact(doctor(target->pid), "threads");
	check(strstr(text, "1 with a thread state, 1 native without one: ") && strstr(text, " (python3"),
	      "%s", text);
}

/* --- odd files --- */

/* A copy of the interpreter, as the target names it; with what it has in front of the name. */
static const char *copied_interpreter(const struct python *python, const char *name, char *here)
{
	static char path[CHILD_PATH];
	char from[CHILD_PATH + 256];
	const char *folder = scratch_folder(python->root), *own = strrchr(python->command, ' ');

	snprintf(from, sizeof(from), "%s%s", python->root, own ? own + 1 : python->command);
	snprintf(here, CHILD_PATH, "%s/%s", folder, name);
	copy_file(from, here);
	chmod(here, 0755);
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s", here + strlen(python->root));
	return path;
}

/* Neither the name nor the symbols are needed, nor a file. */
EACH_WITH_TABLE(doctor, renamed_stripped_deleted)
{
	char here[CHILD_PATH], command[CHILD_PATH + 32], runtime[32];
	const char *path = copied_interpreter(python, "server", here);
	struct target *target;
	struct run *run;

	snprintf(command, sizeof(command), "strip '%s'", here);
	check(!system(command), "strip fails");
	target = start(python, "idle.py", .interpreter = path);
	run = doctor(target->pid);
	check_executable(run, target->pid);
	snprintf(runtime, sizeof(runtime), "%.*s", (int)strcspn(fact(run, "_PyRuntime"), ","),
		 fact(run, "_PyRuntime"));
	unlink(here);
	run = doctor(target->pid);
	check_executable(run, target->pid);
	check(strstr(fact(run, "executable"), " (deleted)"), "%s", fact(run, "executable"));
	check(!strncmp(fact(run, "_PyRuntime"), runtime, strlen(runtime)), "%s: not %s",
	      fact(run, "_PyRuntime"), runtime);
}

LIVE_TEST(doctor, hostile_names)
{
	static const char renames[] = "import ctypes, time\n"
				      "ctypes.CDLL(None).prctl(15, b'\\x1b[31m\\nX')\n"
				      "print('ready', flush=True)\n"
				      "time.sleep(1e6)\n";
	const struct python *python = pick("3.15", "debian");
	char here[CHILD_PATH];
	const char *path = copied_interpreter(python, "py\x1b[31m\npython3.15", here);
	struct target *target = start(python, "names\x1b]0;x\a.py", .interpreter = path, .text = renames);
	struct run *run = doctor(target->pid);

	check_has(run, "py\\x1b[31m\\x0apython3.15");
	check_has(run, "names\\x1b]0;x\\x07.py");
	check_lacks(run, "\a");
}

/* --- who may --- */

static const char as_nobody[] = "import os, sys, time\n"
				"if not os.getuid():\n"
				"    os.setgid(65534)\n"
				"    os.setuid(65534)\n"
				"    os.execv(sys.executable, [sys.executable, __file__])\n"
				"print('ready', flush=True)\n"
				"time.sleep(1e6)\n";

static struct run *doctor_as_nobody(pid_t pid)
{
	char text[16];
	const char *argv[] = {"setpriv",
			      "--reuid=65534",
			      "--regid=65534",
			      "--clear-groups",
			      public_profiler(),
			      "doctor",
			      "-p",
			      text,
			      NULL};

	snprintf(text, sizeof(text), "%d", pid);
	return profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
}

EACH_OF(table_pythons, doctor, ordinary_user)
{
	struct target *target = start(python, "nobody.py", .text = as_nobody);
	struct run *run;

	pause_for(0.2);
	run = doctor_as_nobody(target->pid);
	check(run->code == 0, "exit code %d", run->code);
	check(!run->err[0], "stderr has: %s", run->err);
	check_columns(run);
	check(!is_given(run, "bpf engine") && strstr(fact(run, "bpf engine"), "CAP_BPF"), "%s", run->out);
	check(is_given(run, "readv engine"), "%s", run->out);
	check_has(run, "=> profiling works, by the readv engine: pybpfprof -p ");
	check_executable(run, target->pid);
	check_runtime(run, target->pid);
	check(!strcmp(fact(run, "threads"), "1 with a thread state, 0 native without one"), "%s",
	      fact(run, "threads"));
}

/*
 * A server that has loaded a libpython which is gone since: without the right to open it (map_files), its
 * memory is all there is.
 */
LIVE_TEST(doctor, deleted_library_of_an_ordinary_user)
{
	const struct python *python = pick("3.15", "debian");
	const char *folder = scratch_folder(python->root), *inside = folder + strlen(python->root);
	char command[CHILD_PATH * 3], program[CHILD_PATH], library[CHILD_PATH];
	const char *argv[] = {"chroot", "--userspec=65534:65534", python->root, program, library, "spin",
			      NULL};
	const char *env = "PYTHONHOME=/usr";
	struct child *child;
	struct run *run;

	snprintf(command, sizeof(command),
		 "cc -w -o %s/server tests/targets/embed.c -ldl -lpthread && chmod 755 %s && "
		 "cp %s/usr/lib/x86_64-linux-gnu/libpython3.15.so.1.0 %s/odd.so",
		 folder, folder, python->root, folder);
	check(!system(command), "%s fails", command);
	snprintf(program, sizeof(program), "%s/server", inside);
	snprintf(library, sizeof(library), "%s/odd.so", inside);
	child = child__start(&(struct child_config){.argv = argv, .env = {env}});
	check(child__wait_line(child, "ready", 60), "the server does not start: %s", child__err(child));
	snprintf(library, sizeof(library), "%s/odd.so", folder);
	unlink(library);
	run = doctor_as_nobody(child->pid);
	check(run->code == 0, "exit code %d", run->code);
	check(strstr(fact(run, "_PyRuntime"), "by its cookie in ") &&
		      strstr(fact(run, "_PyRuntime"), "(deleted)"),
	      "%s", fact(run, "_PyRuntime"));
	check(strstr(fact(run, "Python"), "3.15") &&
		      strstr(fact(run, "Python"), "whether it is a debug build is not told") &&
		      strstr(fact(run, "Python"), "a JIT is not told"),
	      "%s", fact(run, "Python"));
	check(strstr(fact(run, "thread state by"), "list of thread states"), "%s",
	      fact(run, "thread state by"));
	/* For root it is there, and says more. */
	run = doctor(child->pid);
	check(strstr(fact(run, "_PyRuntime"), "section .PyRuntime"), "%s", fact(run, "_PyRuntime"));
	check(strstr(fact(run, "Python"), "release build") && strstr(fact(run, "Python"), "JIT built in"),
	      "%s", fact(run, "Python"));
}

LIVE_TEST(doctor, not_permitted)
{
	struct target *target = start(pick("3.14", "debian"), "idle.py");

	check_refused(doctor_as_nobody(target->pid), NOT_PERMITTED, "CAP_SYS_PTRACE");
}

/* No ptrace, no write, no signal, as strace sees it. */
LIVE_TEST(doctor, target_is_only_read)
{
	static const char *const forbidden[] = {"ptrace(", "process_vm_writev(", "kill(",
						"pidfd_send_signal(", "setns("};
	struct target *target = start(pick("3.15", "debian"), "spin.py");
	char trace[CHILD_PATH + 16], text[16], own[32], *calls, *rest, *line;
	const char *argv[] = {"strace",
			      "-f",
			      "-o",
			      trace,
			      "--trace=process,%desc,%signal,ptrace,process_vm_writev,setns,"
			      "process_vm_readv",
			      profiler_path(),
			      "doctor",
			      "-p",
			      text,
			      NULL};
	struct run *run;
	int reads = 0;

	snprintf(trace, sizeof(trace), "%s/trace", scratch_folder(""));
	snprintf(text, sizeof(text), "%d", target->pid);
	run = profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	snprintf(own, sizeof(own), "\"/proc/%d/", target->pid);
	rest = calls = read_text(trace);
	while ((line = strsep(&rest, "\n"))) {
		reads += strstr(line, "process_vm_readv(") != NULL;
		for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
			check(!strstr(line, forbidden[i]), "a call that is none of its business: %s", line);
		check(!strstr(line, own) || (!strstr(line, "/mem\"") && !strstr(line, "O_RDWR") &&
					     !strstr(line, "O_WRONLY")),
		      "a file of the target: %s", line);
	}
	check(reads, "strace saw no read of the target");
	check(!strchr("Tt", process_state(target->pid)), "the target is stopped");
}

/* --- what is refused --- */

/* The newest thread of a process. */
static pid_t last_thread(pid_t pid)
{
	struct proc_tasks tasks = {0};
	pid_t last = 0;

	if (!proc__tasks(pid, &tasks) && tasks.tids.len)
		last = tasks.tids.items[tasks.tids.len - 1];
	vec__free(&tasks.tids);
	return last;
}

LIVE_TEST(doctor, refused)
{
	struct child *ended =
		child__start(&(struct child_config){.argv = (const char *const[]){"true", NULL}});
	struct child *other =
		child__start(&(struct child_config){.argv = (const char *const[]){"sleep", "60", NULL}});
	char text[16];

	pause_for(0.2); /* for exec */
	check_refused(profiler_run("doctor", "-p", "1,2"), USAGE, "one process");
	check_refused(profiler_run("doctor", "-p", "0"), USAGE, "process id");
	check_refused(profiler_run("doctor", "-p", "1", "-d", "1"), USAGE, "doctor takes");
	check_refused(profiler_run("doctor", "-p", "2147483646"), FAILED, "no such process");
	check_refused(profiler_run("doctor", "-p", "2"), NOT_PYTHON, "not a Python process");
	snprintf(text, sizeof(text), "%d", other->pid);
	check_refused(profiler_run("doctor", "-p", text), NOT_PYTHON, "sleep is not a Python process");
	for (int i = 0; i < 1000 && process_state(ended->pid) != 'Z'; i++)
		pause_for(0.01);
	snprintf(text, sizeof(text), "%d", ended->pid);
	check_refused(profiler_run("doctor", "-p", text), FAILED, "zombie");
}

LIVE_TEST(doctor, id_of_a_thread)
{
	struct target *target = start(pick("3.14", "debian"), "known.py", .text = known);
	char text[16];

	snprintf(text, sizeof(text), "%d", last_thread(target->pid));
	check_refused(profiler_run("doctor", "-p", text), FAILED, "it is a thread of process");
}

static void patch(pid_t pid, unsigned long addr, uint64_t value)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	check(pwrite(fd, &value, sizeof(value), addr) == sizeof(value), "%s cannot be written", path);
	close(fd);
}

/* Each by its name. */
LIVE_TEST(doctor, refused_versions)
{
	static const struct {
		uint64_t version;
		const char *reason;
	} versions[] = {{0x031002f0, "Python 3.16 is not supported (3.8 to 3.15 are)"},
			{0x030f00b1, "Python 3.15.0b1 is a pre-release"}};

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct target *target = start(pick("3.15", "debian"), "idle.py");
		char text[16], file[CHILD_PATH];

		snprintf(text, sizeof(text), "%d", target->pid);
		patch(target->pid, runtime_of(target->pid, file) + 8, versions[i].version);
		check_refused(profiler_run("doctor", "-p", text), NOT_PYTHON, versions[i].reason);
	}
}

/* Stopped before it has run one instruction; goes on while the doctor waits for it. */
LIVE_TEST(doctor, one_that_is_starting)
{
	const struct python *python = pick("3.15", "debian");
	char text[16];
	struct child *child;
	struct run *run;
	int status;
	pid_t pid = start_stopped(python, "import time; time.sleep(60)");

	snprintf(text, sizeof(text), "%d", pid);
	child = profiler("doctor", "-p", text);
	pause_for(0.5);
	check(!child__wait(child, 0), "it does not wait: %s%s", child__out(child), child__err(child));
	kill(pid, SIGCONT);
	run = profiler__finish(child, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(run->code == 0, "exit code %d", run->code);
	check(strstr(fact(run, "Python"), "3.15"), "%s", fact(run, "Python"));
}
