/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sources of the version, best first: the exported u32 Py_Version (3.11+, Include/pylifecycle.h), the
 * library's soname, the file's name. Failing those, what the file has narrows it down: section .PyRuntime
 * came with 3.10, symbol _PyRuntime with 3.7.
 */
#include "py/old.h"

#include "base/util.h"
#include "py/offsets_debug.h"

#include <stdio.h>
#include <stdlib.h>

#define PLANNED_FIRST_MINOR 8 /* 3.8 to 3.12: "not yet" */

bool py_old__version_of_name(const char *path, unsigned int *major, unsigned int *minor)
{
	static const char word[] = "python";
	const char *at = strrchr(path, '/');
	int used = 0;

	at = strstr(at ? at + 1 : path, word);
	if (!at)
		return false;
	at += sizeof(word) - 1;
	if (at[0] < '2' || at[0] > '4' || at[1] != '.')
		return false;
	return sscanf(at, "%1u.%2u%n", major, minor, &used) == 2 && used;
}

static bool read_exported_version(struct remote *remote, const struct image_file *file, uint64_t bias,
				  unsigned int *major, unsigned int *minor)
{
	struct elf_symbol symbol;
	uint32_t version;

	if (elf__symbol(file->elf, "Py_Version", &symbol) ||
	    remote__read(remote, bias + symbol.vaddr, &version, sizeof(version)) ||
	    py_version_major(version) != 3)
		return false;
	*major = py_version_major(version);
	*minor = py_version_minor(version);
	return true;
}

static void refuse(struct py_probe *probe, const char *which, const char *yet)
{
	probe->verdict = PY_ATTACH_UNSUPPORTED;
	snprintf(probe->reason, sizeof(probe->reason), "Python %s is not supported%s (%s are)", which, yet,
		 PY_SUPPORTED_VERSIONS);
}

static void refuse_version(struct py_probe *probe, unsigned int major, unsigned int minor)
{
	char which[48];

	if (major == 3 && minor >= PY_DEBUG_FIRST_MINOR) {
		snprintf(which, sizeof(which), "%u.%u without _Py_DebugOffsets", major, minor);
		refuse(probe, which, "");
		return;
	}
	snprintf(which, sizeof(which), "%u.%u", major, minor);
	refuse(probe, which, major == 3 && minor >= PLANNED_FIRST_MINOR ? " yet" : "");
}

/*
 * Copies that no interpreter uses are zero where the list head is: at 32 in 3.7 to 3.10, at 40 in 3.11
 * and 3.12
 * (_PyRuntimeState.interpreters.head in Include/internal/pycore_runtime.h).
 */
static bool is_unused(struct remote *remote, py_addr runtime)
{
	uint64_t words[2];

	return !remote__read(remote, runtime + 32, words, sizeof(words)) && !words[0] && !words[1];
}

void py_old__describe(struct py_probe *probe, struct remote *remote, py_addr runtime,
		      const struct image_file *file, uint64_t bias, const char *path, const char *how)
{
	unsigned int major, minor;

	if (is_unused(remote, runtime)) {
		probe->verdict = PY_ATTACH_STARTING;
		snprintf(probe->reason, sizeof(probe->reason), "its Python is not initialised (yet)");
		return;
	}
	if (read_exported_version(remote, file, bias, &major, &minor) ||
	    py_old__version_of_name(elf__soname(file->elf), &major, &minor) ||
	    py_old__version_of_name(path, &major, &minor))
		refuse_version(probe, major, minor);
	else
		refuse(probe, !strcmp(how, "section") ? "3.10 to 3.12" : "3.7 to 3.9", " yet");
}

void py_old__describe_ancient(struct py_probe *probe, const struct image_file *file, const char *path)
{
	struct elf_symbol symbol;
	unsigned int major, minor;

	if (strstr(path, "pypy") && !elf__symbol(file->elf, "pypy_main_startup", &symbol)) {
		probe->verdict = PY_ATTACH_UNSUPPORTED;
		snprintf(probe->reason, sizeof(probe->reason), "PyPy is not supported, CPython is");
		return;
	}
	/* Global until 3.6, a member of _PyRuntime since. */
	if (elf__symbol(file->elf, "_PyThreadState_Current", &symbol))
		return;
	if (py_old__version_of_name(elf__soname(file->elf), &major, &minor) ||
	    py_old__version_of_name(path, &major, &minor))
		refuse_version(probe, major, minor);
	else
		refuse(probe, elf__symbol(file->elf, "PyInt_Type", &symbol) ? "3.6 or older" : "2", "");
}
