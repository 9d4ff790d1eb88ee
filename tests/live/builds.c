/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See builds.h.
 */
#include "builds.h"

#include "py/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void check_found(struct target *target, pid_t pid, const char *names)
{
	struct target same = *target;
	struct py_runtime runtime;
	struct remote remote;
	char reason[512] = "";
	struct run *run;

	same.pid = pid;
	run = profile(&same, .seconds = 0.25, .min_samples = 50);
	check(percent(run, stacks__ending_in(&run->stacks, names)) > 99, "%s has %.2f %%", names,
	      percent(run, stacks__ending_in(&run->stacks, names)));
	remote__init(&remote, pid);
	check(py_runtime__find(&runtime, &remote, reason, sizeof(reason)) == PY_ATTACH_OK, "%s", reason);
	check(runtime.offsets.version >> 24 == 3 &&
		      (int)(runtime.offsets.version >> 16 & 0xff) == target->python->minor,
	      "version 0x%x", runtime.offsets.version);
	py_runtime__close(&runtime);
}

/* --- copies --- */

const char *executable_of(const struct python *python)
{
	const char *last = strrchr(python->command, ' ');

	return last ? last + 1 : python->command;
}

void prefix_of(const struct python *python, char *path, size_t size)
{
	int len = strstr(python->command, "/bin/") - python->command;

	snprintf(path, size, "%.*s", len, python->command);
}

void library_of(const struct python *python, char *path, size_t size)
{
	char prefix[256] = "/usr";

	if (!python->root[0])
		prefix_of(python, prefix, sizeof(prefix));
	snprintf(path, size, "%s/lib%s/libpython3.%d%s.so.1.0", prefix,
		 python->root[0] ? "/x86_64-linux-gnu" : "", python->minor, python->free_threaded ? "t" : "");
}

struct build build__copy(const struct python *python, const char *name)
{
	struct build build = {};
	char original[2 * CHILD_PATH];

	snprintf(original, sizeof(original), "%s%s", python->root, executable_of(python));
	snprintf(build.program, sizeof(build.program), "%s/%s", scratch_folder(python->root), name);
	copy_file(original, build.program);
	build.inside = strdup(build.program + strlen(python->root));
	return build;
}

struct build build__copy_all(const struct python *python, const char *name)
{
	struct build build = build__copy(python, name);
	char library[CHILD_PATH], folder[CHILD_PATH];

	library_of(python, library, sizeof(library));
	/* Debian's and the machine's own have the runtime in the program. */
	if (python->root[0] || access(library, F_OK))
		return build;
	snprintf(folder, sizeof(folder), "%s", scratch_folder(""));
	snprintf(build.library, sizeof(build.library), "%s%s", folder, strrchr(library, '/'));
	copy_file(library, build.library);
	snprintf(build.library_path, sizeof(build.library_path), "LD_LIBRARY_PATH=%s", folder);
	return build;
}

/* --- programs --- */

void compile(const char *const *args)
{
	const char *argv[24] = {"cc"};
	struct child *compiler;

	for (size_t i = 0; args[i]; i++) {
		check(i + 2 < sizeof(argv) / sizeof(*argv), "too many words");
		argv[i + 1] = args[i];
	}
	compiler = child__start(&(struct child_config){.argv = argv});
	check(child__wait(compiler, 120) && !child__code(compiler), "cc: %s", child__err(compiler));
}

const char *compile_embed(const struct python *python)
{
	char path[CHILD_PATH + 16];

	snprintf(path, sizeof(path), "%s/webworker", scratch_folder(python->root));
	compile((const char *const[]){"-O1", "-Wl,-z,noseparate-code", "-o", path, "tests/targets/embed.c",
				      "-ldl", "-lpthread", NULL});
	return strdup(path + strlen(python->root));
}

/* As a target its "Python" is the program, its "program" the library. */
struct target *start_embed(const struct python *python, bool remove, const char *mode,
			   const char *const *more)
{
	static struct python embedder;
	char library[CHILD_PATH], original[2 * CHILD_PATH], copy[2 * CHILD_PATH];
	char prefix[256] = "/usr", home[300];
	const char *program = compile_embed(python), *argv[12];
	struct target *target = calloc(1, sizeof(*target));
	size_t count = 0;

	embedder = *python;
	target->python = &embedder;
	snprintf(target->name, sizeof(target->name), "embed.c %s", mode);
	if (!python->root[0])
		prefix_of(python, prefix, sizeof(prefix));
	snprintf(home, sizeof(home), "PYTHONHOME=%s", prefix);
	library_of(python, library, sizeof(library));
	snprintf(original, sizeof(original), "%s%s", python->root, library);
	snprintf(copy, sizeof(copy), "%s/libunpacked.so", scratch_folder(python->root));
	if (remove)
		copy_file(original, copy);
	if (python->root[0]) {
		argv[count++] = "chroot";
		argv[count++] = python->root;
	}
	argv[count++] = program;
	argv[count++] = remove ? copy + strlen(python->root) : library;
	argv[count++] = mode;
	while (more && *more && count < 11)
		argv[count++] = *more++;
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
