/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding the runtime however Python was built, linked and stripped, and with other libpythons in the
 * process.
 */
#include "builds.h"

#include "base/util.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char spin[] = "outer;middle;spin";

static void check_build(const struct python *python, const struct build *build)
{
	struct target *target = start(python, "spin.py", .interpreter = build->inside,
				      .env = {build->library_path[0] ? build->library_path : NULL});
	char maps[64], *text;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", target->pid);
	text = read_text(maps);
	check(!build->library[0] || strstr(text, build->library), "the copy of the library is not used");
	free(text);
	check_found(target, target->pid, spin);
}

/* --- files --- */

EACH_OF(supported_pythons, builds, stripped)
{
	struct build build;
	struct child *strip;

	if (python->root[0] || !strcmp(python->kind, "host"))
		return; /* Debian's always are */
	build = build__copy_all(python, "py");
	strip = child__start(&(struct child_config){
		.argv = (const char *const[]){"strip", build.program, build.library[0] ? build.library : NULL,
					      NULL}});

	check(child__wait(strip, 60) && !child__code(strip), "strip: %s", child__err(strip));
	check_build(python, &build);
}

/* e_shoff, then e_shnum and e_shstrndx of an ELF file. */
static void set_section_headers(const char *path, uint64_t offset, uint16_t count, uint16_t names)
{
	FILE *file = fopen(path, "r+");
	uint16_t numbers[] = {count, names};

	check(file && !fseek(file, 0x28, SEEK_SET) && fwrite(&offset, 8, 1, file) == 1 &&
		      !fseek(file, 0x3c, SEEK_SET) && fwrite(numbers, 4, 1, file) == 1 && !fclose(file),
	      "cannot change %s", path);
}

static void try_section_headers(const struct python *python, uint64_t offset, uint16_t count, uint16_t names)
{
	struct build build = build__copy_all(python, "py");

	set_section_headers(build.program, offset, count, names);
	if (build.library[0])
		set_section_headers(build.library, offset, count, names);
	check_build(python, &build);
}

EACH_OF(supported_pythons, builds, no_section_headers)
{
	try_section_headers(python, 0, 0, 0);
}

/* Code in their place, and none within the file. */
EACH_KIND(builds, broken_section_headers)
{
	try_section_headers(python, 0x1000, 40, 39);
	try_section_headers(python, 1ull << 40, 0xffff, 0xfff0);
}

/* --- linked with a libpython.a --- */

/* The library, "" if this Python has none. */
static void archive_of(const struct python *python, char *path, size_t size)
{
	char pattern[CHILD_PATH], prefix[256];
	glob_t found;

	prefix_of(python, prefix, sizeof(prefix));
	snprintf(pattern, sizeof(pattern), "%s/lib/python3.%d/config-3*/libpython3.%d.a", prefix,
		 python->minor, python->minor);
	path[0] = '\0';
	if (glob(pattern, 0, NULL, &found))
		return;
	snprintf(path, size, "%s", found.gl_pathv[0]);
	globfree(&found);
}

/* One of each way that frames are kept, of what the machine has. */
static struct criterion_test_params linkable_pythons(void)
{
	static const char *const versions[] = {"3.9", "3.11", "3.13"};
	struct python *chosen = cr_malloc(ARRAY_SIZE(versions) * sizeof(*chosen));
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const struct python *python = pythons__find(versions[i], "pyenv");

		if (python)
			chosen[count++] = *python;
	}
	return cr_make_param_array(struct python, chosen, count);
}

static const char main_program[] = "int Py_BytesMain(int, char **);\n"
				   "int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }\n";

static void try_linking(const struct python *python, const char *archive, const char *const *flags)
{
	struct build build = {};
	char source[CHILD_PATH + 8], home[300] = "PYTHONHOME=";
	const char *folder = scratch_folder("");
	struct target *target;

	snprintf(source, sizeof(source), "%s/main.c", folder);
	snprintf(build.program, sizeof(build.program), "%s/webworker", folder);
	write_file(source, main_program);
	/* A static program cannot load modules and look up users as others do; this one does not. */
	compile((const char *const[]){"-w", "-o", build.program, source, archive, "-Wl,--no-warnings",
				      "-lpthread", "-ldl", "-lutil", "-lm", flags[0], flags[1], flags[2],
				      NULL});
	prefix_of(python, home + strlen(home), sizeof(home) - strlen(home));
	target = start(python, "spin.py", .interpreter = build.program, .env = {home});
	check_found(target, target->pid, spin);
}

/*
 * Nothing is exported and nothing says "python" but the program's own tables. Before 3.10 the runtime has no
 * section of its own, so that a stripped program has to export it.
 */
EACH_OF(linkable_pythons, builds, linked_in)
{
	static const char *const forms[][3] = {{"-no-pie"}, {"-pie"}, {"-static"}, {"-static-pie"}},
				 *const stripped[] = {"-no-pie", "-s", NULL},
				 *const exporting[] = {"-pie", "-s", "-rdynamic"};
	char archive[CHILD_PATH];

	archive_of(python, archive, sizeof(archive));
	check(archive[0], "it has no libpython.a");
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		try_linking(python, archive, forms[i]);
	try_linking(python, archive, exporting);
	if (python->minor >= 10)
		try_linking(python, archive, stripped);
}

/* --- more than one --- */

/*
 * Debian's program has its own runtime, so that the one of the library is never initialised; others use the
 * one that is loaded first.
 */
EACH_OF(embeddable_pythons, builds, preloaded)
{
	struct build build = build__copy_all(python, "py");
	char library[CHILD_PATH], preload[CHILD_PATH + 16];
	struct target *target;

	library_of(python, library, sizeof(library));
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", build.library[0] ? build.library : library);
	target = start(python, "spin.py", .env = {preload});
	check_found(target, target->pid, spin);
}

/* Two Pythons of different versions, both busy: one is profiled, and which one is said. */
LIVE_TEST(builds, two_at_once)
{
	const struct python *first = pick("3.13", "debian"), *second = pick("3.14", "debian");
	char library[CHILD_PATH];
	struct target *target;
	struct run *run;
	uint64_t one, other;

	library_of(second, library, sizeof(library));
	target = start_embed(first, false, "two", (const char *const[]){library, NULL});
	run = profile(target, .seconds = 0.7, .min_samples = 100);
	one = stacks__exactly(&run->stacks, "<module>;spin");
	other = stacks__exactly(&run->stacks, "<module>;other");
	check(strstr(run->err, "has 2 live Python runtimes; taking the one of Python 3.1"),
	      "it does not say so");
	check(strstr(run->err, "of Python 3.13") ? one && !other : other && !one,
	      "%llu of one, %llu of the other", (unsigned long long)one, (unsigned long long)other);
	check(one + other + run->report.without_python == run->report.samples, "other stacks");
}
