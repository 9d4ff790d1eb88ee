/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding the live runtime, end to end, in processes where that is not plain: second copies, other versions
 * beside it, deleted and replaced files, no section headers, namespaces, programs that embed Python.
 */
#include "harness.h"

#include "py/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* All of the profile is that stack, and the version is the one that runs. */
static void check_found(struct target *target, pid_t pid, const char *names)
{
	struct target same = *target;
	struct py_runtime runtime;
	struct remote remote;
	char reason[512] = "";
	struct run *run;

	same.pid = pid;
	run = profile(&same, .seconds = 0.5, .min_samples = 50);
	check(percent(run, stacks__ending_in(&run->stacks, names)) > 99, "%s has %.2f %%", names,
	      percent(run, stacks__ending_in(&run->stacks, names)));
	remote__init(&remote, pid);
	check(py_runtime__find(&runtime, &remote, reason, sizeof(reason)) == PY_ATTACH_OK, "%s", reason);
	check(runtime.offsets.version >> 24 == 3 &&
		      (int)(runtime.offsets.version >> 16 & 0xff) == target->python->minor,
	      "version 0x%x", runtime.offsets.version);
	py_runtime__close(&runtime);
}

static const char spin[] = "outer;middle;spin";

/* pyenv's libpython is position-independent with TLS of its own, Debian's runtime lies in the executable. */
EACH_OF(supported_pythons, runtime, plain)
{
	struct target *target = start(python, "spin.py");

	check_found(target, target->pid, spin);
}

/* A libpython loaded once more: its runtime is never initialised. */
EACH_OF(supported_pythons, runtime, second_copy)
{
	struct target *target = start(python, "dlopen.py", .args = {"self"});

	check_found(target, target->pid, "<module>;spin");
}

/* The same from another file, below and before the live one in the maps of a libpython build. */
EACH_OF(supported_pythons, runtime, second_file)
{
	const char *folder = scratch_folder(python->root);
	const char *inside = folder + strlen(python->root);
	char library[64];
	struct target *target;

	/* The copy is made from a path, which Debian's loader does not give. */
	snprintf(library, sizeof(library), "/usr/lib/x86_64-linux-gnu/libpython3.%d.so.1.0", python->minor);
	target = start(python, "dlopen.py",
		       .args = {"--copy", inside, "--delete", python->root[0] ? library : "self"});
	check_found(target, target->pid, "<module>;spin");
}

/* The libpython of a Python that is not in the root. */
static void library_of(const struct python *python, char *path, size_t size)
{
	int len = strstr(python->command, "/bin/") - python->command;

	snprintf(path, size, "%.*s/lib/libpython3.%d%s.so.1.0", len, python->command, python->minor,
		 python->free_threaded ? "t" : "");
}

/* A libpython of another version in the same process. */
EACH_PYTHON(runtime, another_version_beside_it)
{
	const char *debian = python->minor == 13 ? "libpython3.14.so.1.0" : "libpython3.13.so.1.0";
	char library[CHILD_PATH];
	struct target *target;

	snprintf(library, sizeof(library), "%s", debian);
	if (!python->root[0])
		library_of(pythons__find(python->minor == 10 ? "3.9" : "3.10", "pyenv") ?: python, library,
			   sizeof(library));
	target = start(python, "dlopen.py", .args = {"--deepbind", library});

	check_found(target, target->pid, "<module>;spin");
}

/* A deleted library that has nothing to do with Python. */
EACH_PYTHON(runtime, deleted_library)
{
	const char *folder = scratch_folder(python->root);
	struct target *target = start(python, "dlopen.py",
				      .args = {"--copy", folder + strlen(python->root), "--delete",
					       "/lib/x86_64-linux-gnu/libz.so.1"});

	check_found(target, target->pid, "<module>;spin");
}

/* --- the executable --- */

/* A copy of the executable in the root: its path from here, and as the target sees it. */
struct executable {
	char path[CHILD_PATH];
	const char *inside;
};

static const char *executable_of(const struct python *python)
{
	const char *last = strrchr(python->command, ' ');

	return last ? last + 1 : python->command;
}

static struct executable copy_executable(const struct python *python, const char *name)
{
	struct executable copy;
	char original[2 * CHILD_PATH];

	snprintf(original, sizeof(original), "%s%s", python->root, executable_of(python));
	snprintf(copy.path, sizeof(copy.path), "%s/%s", scratch_folder(python->root), name);
	copy_file(original, copy.path);
	copy.inside = strdup(copy.path + strlen(python->root));
	return copy;
}

EACH_OF(supported_pythons, runtime, deleted_executable)
{
	struct executable copy = copy_executable(python, "pyx");
	struct target *target = start(python, "spin.py", .interpreter = copy.inside);

	check(!unlink(copy.path), "unlink");
	check_found(target, target->pid, spin);
}

/* Its name says that it is deleted; it is not. */
EACH_OF(supported_pythons, runtime, executable_named_deleted)
{
	struct executable copy = copy_executable(python, "py (deleted)");
	struct target *target = start(python, "spin.py", .interpreter = copy.inside);

	check_found(target, target->pid, spin);
}

EACH_OF(supported_pythons, runtime, no_section_headers)
{
	struct executable copy = copy_executable(python, "py-nosh");
	FILE *file = fopen(copy.path, "r+");
	struct target *target;

	/* e_shoff, then e_shnum and e_shstrndx */
	check(file && !fseek(file, 0x28, SEEK_SET) && fwrite("\0\0\0\0\0\0\0", 1, 8, file) == 8 &&
		      !fseek(file, 0x3c, SEEK_SET) && fwrite("\0\0\0", 1, 4, file) == 4 && !fclose(file),
	      "cannot change %s", copy.path);
	target = start(python, "spin.py", .interpreter = copy.inside);
	check_found(target, target->pid, spin);
}

/* Another file has the executable's path by now. */
EACH_WITH_TABLE(runtime, replaced_executable)
{
	const struct python *other = pick(python->minor == 13 ? "3.14" : "3.13", "debian");
	struct executable copy = copy_executable(python, "py"), second = copy_executable(other, "py");
	struct target *target = start(python, "spin.py", .interpreter = copy.inside);
	char beside[CHILD_PATH + 8];

	snprintf(beside, sizeof(beside), "%s.new", copy.path);
	copy_file(second.path, beside);
	check(!rename(beside, copy.path), "rename");
	check_found(target, target->pid, spin);
}

/* The path is another Python out here; in the target's mount namespace it is bound over. */
EACH_WITH_TABLE(runtime, other_file_at_the_path)
{
	const struct python *other = pick(python->minor == 13 ? "3.14" : "3.13", "debian");
	struct executable copy = copy_executable(other, "py");
	char original[2 * CHILD_PATH], script[4 * CHILD_PATH];
	struct target *target;

	snprintf(original, sizeof(original), "%s%s", python->root, executable_of(python));
	snprintf(script, sizeof(script), "mount --bind %s %s && exec \"$0\" \"$@\"", original, copy.path);
	target = start(python, "spin.py", .interpreter = copy.path + strlen(python->root),
		       .wrapper = {"unshare", "-m", "sh", "-c", script});
	check_found(target, target->pid, spin);
}

/* --- namespaces --- */

EACH_PYTHON(runtime, user_and_mount_namespace)
{
	struct target *target = start(python, "spin.py", .wrapper = {"unshare", "-Urm"});

	check_found(target, target->pid, spin);
}

/* The thread calls itself 1; out here it has another number. */
EACH_PYTHON(runtime, pid_namespace)
{
	struct target *target = start(python, "pidns.py");
	const char *child = child__wait_line(target->child, "child ", 5);

	check(child, "the child's pid is not said");
	check_found(target, atoi(child), "<module>;spin");
}

/* Target and profiler in one: a profile, or a refusal that names the reason. */
EACH_PYTHON(runtime, both_in_a_pid_namespace)
{
	static const char script[] =
		"$1 $2 >/dev/null & sleep 1; exec \"$3\" -p $! -d 0.5 -r 999 -q -o \"$4\"";
	struct target *target = start(python, "spin.py"); /* for its file */
	char file[CHILD_PATH];
	struct child *child;
	struct run *run;

	snprintf(file, sizeof(file), "%s/x.collapsed", scratch_folder(""));
	child = child__start(&(struct child_config){
		.argv = (const char *const[]){"unshare", "-pf", "--kill-child", "--mount-proc", "sh", "-c",
					      script, "sh", python->command, target->file, profiler_path(),
					      file, NULL}});
	run = profiler__finish(child, file);
	if (run->code == 0)
		check(percent(run, stacks__ending_in(&run->stacks, spin)) > 95, "spin has %.2f %%",
		      percent(run, stacks__ending_in(&run->stacks, spin)));
	else
		check(strstr(run->err, "namespace"), "exit code %d, for no reason: %s", run->code, run->err);
}

/* --- programs that embed Python --- */

/* embed.c, compiled into a folder of the root; as the target sees it. */
static const char *compile_embed(const struct python *python, char *folder, size_t size)
{
	char path[CHILD_PATH + 16];
	struct child *compiler;

	snprintf(folder, size, "%s", scratch_folder(python->root));
	snprintf(path, sizeof(path), "%s/webworker", folder);
	compiler = child__start(&(struct child_config){
		.argv = (const char *const[]){"cc", "-O1", "-Wl,-z,noseparate-code", "-o", path,
					      "tests/targets/embed.c", "-ldl", "-lpthread", NULL}});
	check(child__wait(compiler, 60) && !child__code(compiler), "cannot compile embed.c: %s",
	      child__err(compiler));
	return strdup(path + strlen(python->root));
}

/* As a target: its "Python" is the program, its "program" the library, as a file that can be deleted. */
static struct target *start_embed(const struct python *python, const char *mode, bool remove)
{
	static struct python embedder;
	char folder[CHILD_PATH], library[2 * CHILD_PATH], copy[2 * CHILD_PATH], home[CHILD_PATH];
	const char *program = compile_embed(python, folder, sizeof(folder)), *argv[12];
	struct target *target = calloc(1, sizeof(*target));
	size_t count = 0;

	embedder = *python;
	target->python = &embedder;
	snprintf(target->name, sizeof(target->name), "embed.c %s", mode);
	if (python->root[0]) {
		snprintf(library, sizeof(library), "%s/usr/lib/x86_64-linux-gnu/libpython3.%d.so.1.0",
			 python->root, python->minor);
		snprintf(home, sizeof(home), "PYTHONHOME=/usr");
	} else {
		size_t len = strstr(python->command, "/bin/") - python->command;

		library_of(python, library, sizeof(library));
		snprintf(home, sizeof(home), "PYTHONHOME=%.*s", (int)len, python->command);
	}
	snprintf(copy, sizeof(copy), "%s/libunpacked.so", folder);
	copy_file(library, copy);
	if (python->root[0]) {
		argv[count++] = "chroot";
		argv[count++] = python->root;
	}
	argv[count++] = program;
	argv[count++] = copy + strlen(python->root);
	argv[count++] = mode;
	argv[count] = NULL;
	target->child = child__start(
		&(struct child_config){.argv = argv, .env = {"PBP_LIMIT=100", home}, .group = true});
	target->pid = target->child->pid;
	check(child__wait_line(target->child, "ready", 60), "embed did not get ready: %s",
	      child__err(target->child));
	if (remove)
		check(!unlink(copy), "unlink");
	return target;
}

/* Not called python, nor linked with libpython; the library has an odd name and is deleted after loading. */
EACH_OF(embeddable_pythons, runtime, embedded)
{
	struct target *target = start_embed(python, "spin", true);

	check_found(target, target->pid, "<module>;spin");
}

/* A thread that Python knows, but that runs only C: it is counted, and does not disturb the others. */
EACH_OF(embeddable_pythons, runtime, native_thread)
{
	struct target *target = start_embed(python, "native", false);
	struct run *run = profile(target, .seconds = 0.7);
	uint64_t spinning = stacks__exactly(&run->stacks, "<module>;spin");

	check(spinning && spinning + run->report.without_python == run->report.samples,
	      "%llu of spin, %.0f without Python frames, of %.0f", (unsigned long long)spinning,
	      run->report.without_python, run->report.samples);
	check(run->report.without_python > 0.2 * run->report.samples, "%.0f of %.0f without Python frames",
	      run->report.without_python, run->report.samples);
}

/* Python is there, but no thread is in it. */
EACH_OF(embeddable_pythons, runtime, detached)
{
	struct target *target = start_embed(python, "detached", false);
	char pid[16];
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = profiler_run("-p", pid, "-d", "0.3");
	check(run->code == 1 && strstr(run->err, "no samples"), "exit code %d: %s", run->code, run->err);
}
