/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding the live runtime, end to end, in processes where that is not plain: second copies, other versions
 * beside it, deleted and replaced files, namespaces, programs that embed Python. Ways to link and strip it:
 * test_builds.c.
 */
#include "builds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

EACH_OF(supported_pythons, runtime, deleted_executable)
{
	struct build copy = build__copy(python, "pyx");
	struct target *target = start(python, "spin.py", .interpreter = copy.inside);

	check(!unlink(copy.program), "unlink");
	check_found(target, target->pid, spin);
}

/* Its name says that it is deleted; it is not. */
EACH_OF(supported_pythons, runtime, executable_named_deleted)
{
	struct build copy = build__copy(python, "py (deleted)");
	struct target *target = start(python, "spin.py", .interpreter = copy.inside);

	check_found(target, target->pid, spin);
}

/* Another file has the executable's path by now. */
EACH_WITH_TABLE(runtime, replaced_executable)
{
	const struct python *other = pick(python->minor == 13 ? "3.14" : "3.13", "debian");
	struct build copy = build__copy(python, "py"), second = build__copy(other, "py");
	struct target *target = start(python, "spin.py", .interpreter = copy.inside);
	char beside[CHILD_PATH + 8];

	snprintf(beside, sizeof(beside), "%s.new", copy.program);
	copy_file(second.program, beside);
	check(!rename(beside, copy.program), "rename");
	check_found(target, target->pid, spin);
}

/* The path is another Python out here; in the target's mount namespace it is bound over. */
EACH_WITH_TABLE(runtime, other_file_at_the_path)
{
	const struct python *other = pick(python->minor == 13 ? "3.14" : "3.13", "debian");
	struct build copy = build__copy(other, "py");
	char original[2 * CHILD_PATH], script[4 * CHILD_PATH];
	struct target *target;

	snprintf(original, sizeof(original), "%s%s", python->root, executable_of(python));
	snprintf(script, sizeof(script), "mount --bind %s %s && exec \"$0\" \"$@\"", original, copy.program);
	target = start(python, "spin.py", .interpreter = copy.program + strlen(python->root),
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

/* Not called python, nor linked with libpython; the library has an odd name and is deleted after loading. */
EACH_OF(embeddable_pythons, runtime, embedded)
{
	struct target *target = start_embed(python, true, "spin", NULL);

	check_found(target, target->pid, "<module>;spin");
}

/* A thread that Python knows, but that runs only C: it is counted, and does not disturb the others. */
EACH_OF(embeddable_pythons, runtime, native_thread)
{
	struct target *target = start_embed(python, false, "native", NULL);
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
	struct target *target = start_embed(python, false, "detached", NULL);
	char pid[16];
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	run = profiler_run("-p", pid, "-d", "0.3");
	check(run->code == 1 && strstr(run->err, "no samples"), "exit code %d: %s", run->code, run->err);
}
