/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dump: what it says of processes that stand still at interesting places, against what they are known to do
 * and against CPython's own reader; values of variables; threads that run; who may do it; and what is
 * refused.
 */
#include "../unit/json_check.h"
#include "harness.h"

#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2, NOT_PYTHON = 3, NOT_PERMITTED = 4 };

/* Where quiet.py stands still, and the stack that belongs to it: names of the innermost functions. */
static const struct quiet {
	const char *mode;
	const char *functions[8];
} QUIET[] = {
	{"threads", {"stand", "threads", "<module>"}},
	{"generators", {"stand", "generators.<locals>.chain", "generators.<locals>.chain"}},
	{"coroutines", {"stand", "coroutines.<locals>.level", "coroutines.<locals>.level"}},
	{"recursion", {"stand", "recursion", "recursion", "recursion", "recursion", "recursion"}},
	{"subinterp", {"stand", "subinterp", "<module>"}},
	{"callbacks",
	 {"stand", "callbacks.<locals>.key.<locals>.<lambda>.<locals>.<lambda>",
	  "callbacks.<locals>.key.<locals>.<lambda>", "callbacks.<locals>.key", "callbacks", "<module>"}},
	{"init", {"stand", "Often.__init__", "init", "<module>"}},
	{"gc", {"stand", "Finalised.__del__", "gc_", "<module>"}},
	{"weakref", {"stand", "weakref_.<locals>.<lambda>", "weakref_", "<module>"}},
	{"handling", {"stand", "handling", "<module>"}},
	{"raising", {"stand", "raising", "<module>"}},
	{"generator_handling",
	 {"stand", "handling", "generator_handling.<locals>.chain", "generator_handling", "<module>"}},
	{"gil", {"gil", "<module>"}},
	{"lambdas", {"stand", "<module>", "lambdas.<locals>.decorated.<locals>.Body.<lambda>"}},
	{"native", {"stand", "native", "<module>"}},
};

/* Every one of 3.13 and later: their objects can be read, and so names of threads and variables. */
static struct criterion_test_params new_pythons(void)
{
	const struct python *all;
	size_t count = pythons__all(&all), taken = 0;
	struct python *copy = cr_malloc((count + 1) * sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		if (all[i].minor >= 13 && python__is_supported(&all[i]))
			copy[taken++] = all[i];
	return cr_make_param_array(struct python, copy, taken);
}

/* dump -p PID ARGS...; it has to succeed. */
static struct run *dump_pid(pid_t pid, const char *first, const char *second)
{
	char text[16];
	struct run *run;

	snprintf(text, sizeof(text), "%d", pid);
	run = profiler_run("dump", "-p", text, first, second);
	check(run->code == 0, "exit code %d", run->code);
	check(!run->err[0], "stderr has: %s", run->err);
	return run;
}

static struct run *dump_json(const struct target *target)
{
	struct run *run = dump_pid(target->pid, "--json", "--locals");

	check(json_is_valid(run->out, strlen(run->out)), "no valid JSON: %s", run->out);
	return run;
}

static void check_has(const struct run *run, const char *text)
{
	check(strstr(run->out, text), "\"%s\" is not in:\n%s", text, run->out);
}

static void check_lacks(const struct run *run, const char *text)
{
	check(!strstr(run->out, text), "\"%s\" is in:\n%s", text, run->out);
}

/* In this order. */
static void check_functions(const struct run *run, const struct quiet *quiet)
{
	const char *at = run->out;
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(quiet->functions) && quiet->functions[i]; i++) {
		snprintf(text, sizeof(text), "{\"function\": \"%s\"", quiet->functions[i]);
		at = strstr(at, text);
		check(at, "%s is not there, or not in its place, of %s:\n%s", quiet->functions[i],
		      quiet->mode, run->out);
		at += strlen(text);
	}
}

EACH_OF(new_pythons, dump, quiet_places)
{
	for (size_t i = 0; i < ARRAY_SIZE(QUIET); i++) {
		struct target *target = start(python, "quiet.py", .args = {QUIET[i].mode});
		struct run *run;

		await_quiet(target->pid); /* from "ready" to where it stands */
		run = dump_json(target);
		check_functions(run, &QUIET[i]);
		/* Without a GIL the others run on. */
		if (!python->free_threaded || strcmp(QUIET[i].mode, "gil")) {
			check_has(run, "\"consistent\": true, \"readings\": 2,");
			check_lacks(run, "\"stack\": \"changing\"");
			check_lacks(run, "\"consistent\": false");
		}
		target__end(target);
	}
}

/* Before 3.13 the stacks, states and names are there, what is made of other objects is not, and that is told. */
EACH_OF(old_pythons, dump, old_versions)
{
	static const struct quiet recursion = {"recursion", {"stand", "recursion", "recursion", "recursion"}};
	struct target *target = start(python, "quiet.py", .args = {"recursion"});
	struct run *run;
	char text[64];

	await_quiet(target->pid);
	run = dump_json(target);
	check_functions(run, &recursion);
	check_has(run, "\"consistent\": true, \"readings\": 2,");
	snprintf(text, sizeof(text), "{\"tid\": %d, \"native_id\": %d, ", target->pid, target->pid);
	check_has(run, text);
	check_has(run, "\"name_source\": \"python\", \"main\": true, \"state\": \"waiting\", "
		       "\"waits_in\": \"");
	check_has(run, "\"source\": \"time.sleep(1e6)\"");
	check_has(run, "\"locals\": null");
	check_lacks(run, "\"locals\": [");
	check_has(dump_pid(target->pid, "--locals", NULL), "\nVariables of this version are not read\n");
	target = start(python, "spin.py");
	check_has(dump_pid(target->pid, NULL, NULL), " holds the GIL, on CPU\n");
}

/* --- CPython's own reader --- */

/* reference.py with the 3.15 of the root, but not in the root, so that it finds the files of both. */
static struct run *run_reference(const struct target *target, const char *dump)
{
	const struct python *reader = pick("3.15", "debian");
	char home[300], loader[400], libraries[300], program[300], pid[16];
	const char *argv[] = {
		"env", home, loader, "--library-path", libraries, program, "tests/live/reference.py",
		pid,   dump, NULL};

	snprintf(home, sizeof(home), "PYTHONHOME=%s/usr", reader->root);
	snprintf(libraries, sizeof(libraries), "%s/usr/lib/x86_64-linux-gnu", reader->root);
	snprintf(loader, sizeof(loader), "%s/ld-linux-x86-64.so.2", libraries);
	snprintf(program, sizeof(program), "%s/usr/bin/python3.15", reader->root);
	snprintf(pid, sizeof(pid), "%d", target->pid);
	return profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
}

/*
 * A thread that waits for the GIL wakes up every 5 ms to ask for it, and the two look at different moments:
 * its state may have to be looked at again.
 */
static struct run *compare_once(struct target *target)
{
	struct run *reader = NULL;

	for (int i = 0; i < 5 && !(reader && reader->code == 0); i++)
		reader = run_reference(target, dump_json(target)->child->out);
	return reader;
}

static void compare_with_reader(const struct python *python, const struct quiet *quiet)
{
	struct target *target = start(python, "quiet.py", .args = {quiet->mode});
	struct run *reader;

	await_quiet(target->pid);
	reader = compare_once(target);
	/*
	 * It looks only at the outermost of the exceptions being handled, which is none of a generator's
	 * (THREAD_STATUS_HAS_EXCEPTION in Modules/_remote_debugging/threads.c).
	 */
	if (!strcmp(quiet->mode, "generator_handling")) {
		check(strstr(reader->out, "differences 1") && strstr(reader->out, ", exception:"),
		      "it sees: %s%s", reader->out, reader->err);
		return;
	}
	check(reader->code == 0 && strstr(reader->out, "differences 0"), "%s: %s%s", quiet->mode, reader->out,
	      reader->err);
	check(number_before(reader->out, " frames") != 0, "nothing was compared");
}

LIVE_TEST(dump, as_cpython_reads_it)
{
	for (size_t i = 0; i < ARRAY_SIZE(QUIET); i++)
		compare_with_reader(pick("3.15", "debian"), &QUIET[i]);
}

LIVE_TEST(dump, as_cpython_reads_it_debug_build)
{
	for (size_t i = 0; i < ARRAY_SIZE(QUIET); i++)
		compare_with_reader(pick("3.15-dbg", "debian"), &QUIET[i]);
}

/* --- text --- */

EACH_OF(table_pythons, dump, text_of_threads)
{
	struct target *target = start(python, "quiet.py", .args = {"threads"});
	struct run *run = dump_pid(target->pid, NULL, NULL);
	char head[64];

	snprintf(head, sizeof(head), "Process %d: ", target->pid);
	check(!strncmp(run->out, head, strlen(head)), "it begins with: %.80s", run->out);
	check_has(run, ", 5 threads; two readings agree\n");
	snprintf(head, sizeof(head), "\nThread %d (MainThread) idle (clock_nanosleep)\n    stand (",
		 target->pid);
	check_has(run, head);
	check_has(run, "        time.sleep(1e6)\n    threads (");
	check_has(run, " (sleeper) idle (clock_nanosleep)\n");
	check_has(run, " (locked) idle (futex)\n");
	check_has(run, " (waiter) idle (futex)\n");
	check_has(run, " (reader) idle (read)\n");
	check_has(run, "/threading.py:");
	check_has(run, "        self._bootstrap_inner()\n");
	check_lacks(run, "\x1b");
}

EACH_OF(table_pythons, dump, gil)
{
	struct target *target = start(python, "quiet.py", .args = {"gil"});
	struct run *run;

	await_quiet(target->pid);
	run = dump_pid(target->pid, NULL, NULL);
	if (python->free_threaded) {
		check_has(run, "(MainThread) idle (clock_nanosleep)\n    gil (");
		check_lacks(run, "GIL");
		return;
	}
	check_has(run, "(MainThread) holds the GIL, idle (clock_nanosleep)\n    gil (");
	check_has(run, "(first) waits for the GIL\n");
	check_has(run, "(second) waits for the GIL\n");
}

EACH_OF(table_pythons, dump, exceptions)
{
	struct target *target = start(python, "quiet.py", .args = {"handling"});

	check_has(dump_pid(target->pid, NULL, NULL), "(clock_nanosleep), handling an exception\n");
	target = start(python, "quiet.py", .args = {"generator_handling"});
	check_has(dump_pid(target->pid, NULL, NULL), "(clock_nanosleep), handling an exception\n");
	target = start(python, "quiet.py", .args = {"recursion"});
	check_lacks(dump_pid(target->pid, NULL, NULL), "exception");
}

/* From 3.15 on the interpreter tells which frame started the collection; before, it is the thread with the
 * GIL. */
EACH_OF(table_pythons, dump, garbage_collection)
{
	struct target *target = start(python, "quiet.py", .args = {"gc"});
	struct run *run = dump_json(target);

	check_has(run, "{\"id\": 0, \"collecting_garbage\": true");
	if (python->minor >= 15)
		check_has(dump_pid(target->pid, NULL, NULL), "    [garbage collection]\n    gc_ (");
	target = start(python, "collector.py");
	for (int i = 0; i < 50; i++) {
		run = dump_pid(target->pid, NULL, NULL);
		if (strstr(run->out, "on CPU, collecting garbage\n"))
			return;
	}
	check(false, "it never collects garbage");
}

EACH_OF(table_pythons, dump, subinterpreters)
{
	struct target *target = start(python, "quiet.py", .args = {"subinterp"});
	struct run *run;

	await_quiet(target->pid);
	run = dump_pid(target->pid, NULL, NULL);
	check_has(run, " in 2 interpreters; ");
	check_has(run, "(MainThread) in interpreter 0 ");
	check_has(run, " in interpreter 1 idle (clock_nanosleep)\n    inner (<s");
	check_has(run, "    subinterp.<locals>.<lambda> (");
}

EACH_OF(table_pythons, dump, native_thread)
{
	struct target *target = start(python, "quiet.py", .args = {"native"});
	struct run *run = dump_pid(target->pid, NULL, NULL);

	check_has(run, ", 1 thread; ");
	check_has(run, ") runs no Python code\n");
}

/* --- variables --- */

EACH_OF(new_pythons, dump, locals)
{
	static const char *const lines[] = {
		"first = 1",
		"key = 4",
		"rest = (2, 3)",
		"more = {'other': 5}",
		"in_cell = [1]",
		"from_outside = [1]",
		"big = 1000000000000000000000000000000000000000000000000000000000000",
		"huge = <int of about 4020 bits>",
		"minus = -1180591620717411303424",
		"zero = 0",
		"small = 255",
		"pi = 3.14159",
		"tiny = 5e-324",
		"infinite = -inf",
		"one = 1.0",
		"text = 'café \xf0\x9f\x9a\x80 \\x1b[31m \\'q\\' \\\\ \\u202e \\ud800\\n'",
		"wide = '漢字'",
		"raw = b'\\x00\\xff\\'abc'",
		"nothing = None",
		"yes = True",
		"no = False",
		"dots = Ellipsis",
		"single = (1,)",
		"nested = (1, (2, (..., ...)))",
		"many = [0, 1, 2, 3, 4, 5, 6, 7, ...] (100 items)",
		"empty = []",
		"itself = [1, [1, [..., ...]]]",
		"table = {'a': 1, 2: [3], None: {}}",
		"frozen = frozenset({1})",
		"letters = {'s'}",
		"none_in = set()",
		"ordered = collections.OrderedDict({'a': 1})",
		"color = __main__.Color(1)",
		"inherited = __main__.Text('sub')",
		"items = __main__.Items([1])",
		"cls = <class '__main__.Plain'>",
		"builtin = <class 'int'>",
		"attributes = {'x': 1}",
	};
	struct target *target = start(python, "values.py");
	struct run *run = dump_pid(target->pid, "--locals", NULL);
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(text, sizeof(text), "\n          %s\n", lines[i]);
		check_has(run, text);
	}
	check_has(run, "\n          plain = <__main__.Plain object at 0x");
	check_has(run, "xxxxx'... (1000 characters)\n");
	check_has(run, "(имя of a thread \\x1b[0m) idle (futex)\n");
	check_lacks(run, "gone = ");
	check_lacks(run, "unreadable");
	check_lacks(run, "(changing)");
	check_lacks(run, "\x1b");
	run = dump_json(target);
	check_has(run, "{\"name\": \"first\", \"value\": \"1\", \"argument\": true, \"changed\": false}");
	check_has(run, "{\"name\": \"zero\", \"value\": \"0\", \"argument\": false, \"changed\": false}");
	check_lacks(dump_pid(target->pid, NULL, NULL), "first = 1");
}

/* Variables whose objects have been made to lie: lengths, types, pointers. The target never looks at them
 * again. */
static const char lies[] =
	"import ctypes, os, time\n"
	"header = object.__basicsize__ - 16\n" /* free-threaded: a longer one */
	"def word(at):\n"
	"    return ctypes.c_ulonglong.from_address(at + header)\n"
	"def stand(kept):\n"
	"    text, wide, number, items, table, letters, several, raw, other, third = kept\n"
	"    class Own: pass\n"
	"    own = Own()\n"
	"    bad = Own()\n"
	"    word(id(text) + 16).value = 1 << 40\n"
	"    word(id(wide) + 32).value = 0xffffffff\n"
	"    word(id(number) + 16).value = 1 << 50\n"
	"    word(id(items) + 16).value = 1 << 38\n"
	"    ctypes.c_ubyte.from_address(word(id(table) + 32).value + 9).value = 200\n"
	"    word(id(letters) + 32).value = (1 << 30) - 1\n"
	"    word(id(several) + 16).value = 1 << 30\n"
	"    word(id(raw) + 16).value = 1 << 62\n"
	"    word(id(other) + 8).value = id(other)\n"
	"    word(id(third) + 8).value = 0xdeadbeef\n"
	"    word(id(Own) + 24).value = 0x1000\n"
	"    word(id(Own) + 264).value = id(Own)\n"
	"    print('ready', flush=True)\n"
	"    time.sleep(1e6)\n"
	"stand(('some text' * 3, '\\u6f22' * 9, 1 << 90, [1, 2, 3], {'a': 1}, {1, 2}, (1, 2, 3), bytes(40), "
	"1.25, 2.5))\n";

EACH_OF(table_pythons, dump, objects_that_lie)
{
	struct target *target = start(python, "lies.py", .text = lies);
	struct run *run;

	for (int i = 0; i < 3; i++)
		dump_json(target);
	run = dump_pid(target->pid, "--locals", NULL);
	check_has(run, "          text = 'some textsome textsome text");
	check_has(run, "          wide = <unreadable>\n");
	check_has(run, "          raw = <unreadable>\n");
	check_has(run, "          number = <");
	check_has(run, "          table = <unreadable>\n");
	check_has(run, "          third = <unreadable>\n");
	check(strlen(run->out) < 20000, "it prints %zu bytes", strlen(run->out));
	check_lacks(run, "\x1b");
}

/* --- threads that run --- */

static void check_each_frame_is_of(const struct run *run, const char *const *names)
{
	for (const char *at = run->out; (at = strstr(at, "{\"function\": \"")); at++) {
		const char *name = at + strlen("{\"function\": \"");
		size_t len = strcspn(name, "\"");
		bool known = false;

		for (size_t i = 0; names[i]; i++)
			known |= strlen(names[i]) == len && !memcmp(names[i], name, len);
		check(known, "there is no function %.*s", (int)len, name);
	}
}

/* A stack that changes all the time is told as it was at one instant, or told to have changed. */
EACH_PYTHON(dump, busy)
{
	static const char *const fib[] = {"fib", "<module>", "run", "main", NULL};
	static const char *const chains[] = {"a", "b", "c", "<module>", NULL};
	struct target *target = start(python, "fib.py");

	for (int i = 0; i < 20; i++)
		check_each_frame_is_of(dump_json(target), fib);
	target = start(python, "gens.py");
	for (int i = 0; i < 20; i++)
		check_each_frame_is_of(dump_json(target), chains);
}

/* Threads start and end, code is made and freed, while they are read. */
EACH_PYTHON(dump, churning)
{
	static const struct {
		const char *program, *mode;
	} programs[] = {{"threads_churn.py", "jobs"}, {"threads_churn.py", "redblue"},
			{"execs.py", NULL},	      {"deepchurn.py", NULL},
			{"tasks.py", NULL},	      {"names.py", NULL}};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct target *target = start(python, programs[i].program, .args = {programs[i].mode});

		for (int j = 0; j < 7; j++)
			check_has(dump_json(target), "\"interpreters\": [");
		check_lacks(dump_pid(target->pid, "--locals", NULL), "\x1b");
		check(!strchr("TtZ", process_state(target->pid)), "the target is stopped");
		target__end(target);
	}
}

/* --- who may --- */

/* Becomes another user for good, and readable by him. */
static const char as_nobody[] = "import os, sys, time\n"
				"if not os.getuid():\n"
				"    os.setgid(65534)\n"
				"    os.setuid(65534)\n"
				"    os.execv(sys.executable, [sys.executable, __file__])\n"
				"def stand():\n"
				"    print('ready', flush=True)\n"
				"    time.sleep(1e6)\n"
				"stand()\n";

static struct run *dump_as_nobody(pid_t pid)
{
	char program[CHILD_PATH], text[16];
	const char *argv[] = {
		"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "dump", "-p", text,
		NULL};

	snprintf(program, sizeof(program), "%s/pybpfprof", scratch_folder(""));
	copy_file(profiler_path(), program);
	chmod(program, 0755);
	snprintf(text, sizeof(text), "%d", pid);
	return profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
}

EACH_OF(table_pythons, dump, ordinary_user)
{
	struct target *target = start(python, "nobody.py", .text = as_nobody);
	struct run *run = dump_as_nobody(target->pid);

	check(run->code == 0, "exit code %d", run->code);
	check_has(run, "    stand (");
	check_has(run, "        time.sleep(1e6)\n");
	check_has(run, " idle (clock_nanosleep)\n");
}

LIVE_TEST(dump, not_permitted)
{
	struct target *target = start(pick("3.14", "debian"), "idle.py");
	struct run *run = dump_as_nobody(target->pid);

	check(run->code == NOT_PERMITTED, "exit code %d", run->code);
	check(strstr(run->err, "ermi") && !run->out[0], "it says: %s%s", run->out, run->err);
}

/* --- only reads --- */

EACH_PYTHON(dump, target_is_only_read)
{
	static const char *const forbidden[] = {"ptrace(", "process_vm_writev(", "kill(", "setns(",
						"O_RDWR",  "O_WRONLY",		 "/mem\""};
	struct target *target = start(python, "spin.py");
	char folder[CHILD_PATH], trace[CHILD_PATH + 16], pid[16], *text;
	const char *argv[] = {"strace",
			      "-f",
			      "-s",
			      "200",
			      "-o",
			      trace,
			      "--trace=ptrace,process_vm_writev,kill,tgkill,"
			      "tkill,pidfd_send_signal,setns,open,openat,openat2,process_vm_readv",
			      profiler_path(),
			      "dump",
			      "-p",
			      pid,
			      "--locals",
			      NULL};
	struct run *run;

	snprintf(folder, sizeof(folder), "%s", scratch_folder(""));
	snprintf(trace, sizeof(trace), "%s/trace", folder);
	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = profiler__finish(child__start(&(struct child_config){.argv = argv}), NULL);
	check(run->code == 0, "exit code %d: %s", run->code, run->err);
	text = read_text(trace);
	check(strstr(text, "process_vm_readv("), "strace saw no read of the target");
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
		check(!strstr(text, forbidden[i]), "it does %s", forbidden[i]);
}

/* Code that says it comes from places that must not be opened. */
static const char hostile_files[] =
	"import os, time\n"
	"os.mkfifo(os.path.dirname(__file__) + '/fifo')\n"
	"os.symlink('/proc/self/environ', os.path.dirname(__file__) + '/link')\n"
	"def stand():\n"
	"    print('ready', flush=True)\n"
	"    time.sleep(1e6)\n"
	"def call(function, name):\n"
	"    def pass_on():\n"
	"        function()\n"
	"    pass_on.__code__ = pass_on.__code__.replace(co_filename=name, co_firstlineno=0)\n"
	"    return pass_on\n"
	"function = stand\n"
	"for name in ('/dev/zero', '/dev/tty', 'fifo', os.path.dirname(__file__) + '/fifo', "
	"'/proc/self/environ',\n"
	"             '/proc/kmsg', '../../../../../../etc/passwd', '/', '', 'x\\x1b[31m\\n', 'y' * 5000,\n"
	"             os.path.dirname(__file__) + '/link', '\\udcff', '/proc/1/cwd/etc/passwd'):\n"
	"    function = call(function, name)\n"
	"os.chdir(os.path.dirname(__file__))\n"
	"function()\n";

EACH_PYTHON(dump, files_that_are_none)
{
	struct target *target = start(python, "hostile.py", .text = hostile_files);
	struct run *run;

	await_quiet(target->pid);
	run = dump_pid(target->pid, NULL, NULL);
	check_has(run, "        time.sleep(1e6)\n");
	check_has(run, "(/dev/zero:");
	check_has(run, "(x\\x1b[31m\\x0a:");
	check_lacks(run, "root:");
	check_lacks(run, "PATH=");
	check_lacks(run, "\x1b");
	dump_json(target);
}

/* --- what is refused --- */

LIVE_TEST(dump, refused)
{
	struct child *ended =
		child__start(&(struct child_config){.argv = (const char *const[]){"true", NULL}});
	struct child *other =
		child__start(&(struct child_config){.argv = (const char *const[]){"sleep", "60", NULL}});
	char text[16];

	pause_for(0.2); /* for exec */
	check_refused(profiler_run("dump"), USAGE, "which process");
	check_refused(profiler_run("dump", "-p", "1,2"), USAGE, "one process");
	check_refused(profiler_run("dump", "-p", "0"), USAGE, "process id");
	check_refused(profiler_run("dump", "-p", "1", "-d", "1"), USAGE, "dump takes");
	check_refused(profiler_run("-p", "1", "--json"), USAGE, "belong to dump");
	check_refused(profiler_run("dump", "-p", "2147483646"), FAILED, "no such process");
	check_refused(profiler_run("dump", "-p", "2"), NOT_PYTHON, "not a Python process");
	snprintf(text, sizeof(text), "%d", other->pid);
	check_refused(profiler_run("dump", "-p", text), NOT_PYTHON, "sleep is not a Python process");
	for (int i = 0; i < 1000 && process_state(ended->pid) != 'Z'; i++)
		pause_for(0.01);
	snprintf(text, sizeof(text), "%d", ended->pid);
	check_refused(profiler_run("dump", "-p", text), FAILED, "zombie");
}

LIVE_TEST(dump, id_of_a_thread)
{
	struct target *target = start(pick("3.14", "debian"), "quiet.py", .args = {"threads"});
	struct run *run = dump_pid(target->pid, NULL, NULL);
	char text[16];

	snprintf(text, sizeof(text), "%d", atoi(strstr(strstr(run->out, "(MainThread)"), "\nThread ") + 8));
	run = profiler_run("dump", "-p", text);
	check_refused(run, FAILED, "it is a thread of process");
}

/* Processes that start and end while they are looked at. */
EACH_PYTHON(dump, starting_and_ending)
{
	for (int i = 0; i < 15; i++) {
		struct target *target =
			start(python, "brief.py", .not_ready = true,
			      .text = "import threading\n"
				      "for i in range(50):\n"
				      "    t = threading.Thread(target=sum, args=(range(1000),))\n"
				      "    t.start()\n"
				      "t.join()\n");
		char text[16];
		struct run *run;

		pause_for(0.01 * i);
		snprintf(text, sizeof(text), "%d", target->pid);
		run = profiler_run("dump", "-p", text, "--json", "--locals");
		check(run->code == 0 || run->code == FAILED || run->code == NOT_PYTHON, "exit code %d",
		      run->code);
		check(run->code != 0 || json_is_valid(run->out, strlen(run->out)), "no valid JSON: %s",
		      run->out);
		check(run->code == 0 || run->err[0], "it fails without a word");
	}
}

/* Thread ids of a pid namespace are told apart from those that are valid here. */
EACH_PYTHON(dump, pid_namespace)
{
	struct target *target = start(python, "pidns.py", .not_ready = true);
	const char *line = child__wait_line(target->child, "child ", 60);
	struct run *run;
	char text[64];

	check(line, "no child");
	pause_for(0.3);
	run = dump_pid(atoi(line), "--json", NULL);
	snprintf(text, sizeof(text), "{\"tid\": %d, \"native_id\": 1, ", atoi(line));
	check_has(run, text);
	check_has(run, python->free_threaded ? "\"gil\": \"unknown\"" : "\"gil\": \"holds\"");
	snprintf(text, sizeof(text), "Thread %d [1 inside] (", atoi(line));
	check_has(dump_pid(atoi(line), NULL, NULL), text);
}
