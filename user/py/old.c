/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The version is told by what the file exports, since names may be changed: Py_Version, a u32, from 3.11 on
 * (Include/pylifecycle.h), and before that functions of the API that came with a version and stayed. A
 * program that has Python linked in and exports nothing still has the section .PyRuntime from 3.10 on: there
 * each version that it can be is tried on the live process, and one alone has to fit. Names count only where
 * they cannot do harm, in the refusal of what is older than 3.7.
 */
#include "py/old.h"

#include "base/util.h"
#include "py/offsets_debug.h"
#include "py/offsets_table.h"
#include "py/threads.h"
#include "py/verify.h"

#include <stdio.h>
#include <stdlib.h>

#define SECTION_FIRST_MINOR 10 /* has .PyRuntime */
#define MAX_THREADS	    64 /* looked at where the version is in doubt */
#define RELEASE(minor)	    (3u << 24 | (minor) << 16 | PY_MICRO_UNKNOWN << 8 | 0xf0)

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

static bool exports(struct image_file *file, const char *name)
{
	uint64_t vaddr;

	return !image_file__symbol(file, name, &vaddr);
}

static bool read_exported_version(struct remote *remote, struct image_file *file, uint64_t bias,
				  uint32_t *version)
{
	uint64_t vaddr;

	return !image_file__symbol(file, "Py_Version", &vaddr) &&
	       !remote__read(remote, bias + vaddr, version, sizeof(*version)) &&
	       py_version_major(*version) == 3;
}

/*
 * Minor version of a file that exports the API but not Py_Version (the "added in" notes of the C API's
 * documentation). 0: it exports no API.
 */
static uint32_t minor_of_exports(struct image_file *file)
{
	if (exports(file, "PyIter_Send"))
		return 10;
	if (exports(file, "PyThreadState_GetFrame"))
		return 9;
	if (exports(file, "PyCode_NewWithPosOnlyArgs"))
		return 8;
	return exports(file, "PyCode_New") ? 7 : 0;
}

static void refuse(struct py_probe *probe, const char *which)
{
	probe->verdict = PY_ATTACH_UNSUPPORTED;
	snprintf(probe->reason, sizeof(probe->reason), "Python %s is not supported (%s are)", which,
		 PY_SUPPORTED_VERSIONS);
}

static void refuse_version(struct py_probe *probe, unsigned int major, unsigned int minor)
{
	char which[48];

	snprintf(which, sizeof(which), "%u.%u%s", major, minor,
		 major == 3 && minor >= PY_DEBUG_FIRST_MINOR ? " without _Py_DebugOffsets" : "");
	refuse(probe, which);
}

/*
 * A version that the file itself tells. Copies that no interpreter uses are told by their list head, as with
 * the newer versions.
 */
static void probe_version(struct py_probe *probe, struct remote *remote, py_addr runtime, uint32_t version)
{
	uint32_t minor = py_version_minor(version);

	if (minor < PY_TABLE_FIRST_MINOR || minor > PY_TABLE_LAST_MINOR)
		refuse_version(probe, 3, minor);
	else if (py_offsets__of_version(&probe->offsets, version, probe->reason, sizeof(probe->reason)))
		probe->verdict = PY_ATTACH_UNSUPPORTED;
	else
		py_probe__look(probe, remote, runtime);
}

/* Do frames of a live thread prove the offsets? */
static bool is_proved(const struct py_probe *probe, struct remote *remote, py_addr runtime)
{
	struct py_target target = {.remote = *remote, .offsets = probe->offsets};
	struct py_thread threads[MAX_THREADS];
	char reason[sizeof(probe->reason)];
	int count = py_threads__list(remote, &target.offsets, runtime, threads, MAX_THREADS);

	return count > 0 && !py_verify__run(&target, threads, count, reason, sizeof(reason)) &&
	       target.code_type;
}

/* The versions that only have the section in common. One that may still come to life can be told later. */
static void probe_each_version(struct py_probe *probe, struct remote *remote, py_addr runtime)
{
	struct py_probe attempt;
	unsigned int proved = 0, hopeful = 0;

	for (uint32_t minor = SECTION_FIRST_MINOR; minor <= PY_TABLE_LAST_MINOR; minor++) {
		attempt = (struct py_probe){};
		probe_version(&attempt, remote, runtime, RELEASE(minor));
		hopeful += attempt.verdict == PY_ATTACH_OK || attempt.verdict == PY_ATTACH_STARTING;
		if (attempt.verdict == PY_ATTACH_OK && is_proved(&attempt, remote, runtime)) {
			proved++;
			*probe = attempt;
		}
	}
	if (proved == 1)
		return;
	probe->verdict = hopeful ? PY_ATTACH_STARTING : PY_ATTACH_UNSUPPORTED;
	snprintf(probe->reason, sizeof(probe->reason),
		 "its file does not tell its version of Python, and no frame of it does");
}

void py_old__probe(struct py_probe *probe, struct remote *remote, py_addr runtime,
		   struct image_file *file, uint64_t bias)
{
	uint64_t vaddr;
	uint32_t version, minor;

	if (read_exported_version(remote, file, bias, &version)) {
		probe_version(probe, remote, runtime, version);
		return;
	}
	minor = minor_of_exports(file);
	if (minor)
		probe_version(probe, remote, runtime, RELEASE(minor));
	else if (!image_file__section(file, ".PyRuntime", &vaddr))
		probe_each_version(probe, remote, runtime);
	else
		refuse(probe, "of a version that its file does not tell");
}

void py_old__describe_ancient(struct py_probe *probe, struct image_file *file, const char *path)
{
	unsigned int major, minor;

	if (strstr(path, "pypy") && exports(file, "pypy_main_startup")) {
		probe->verdict = PY_ATTACH_UNSUPPORTED;
		snprintf(probe->reason, sizeof(probe->reason), "PyPy is not supported, CPython is");
		return;
	}
	/* Global until 3.6, a member of _PyRuntime since. */
	if (!exports(file, "_PyThreadState_Current"))
		return;
	if (py_old__version_of_name(image_file__soname(file), &major, &minor) ||
	    py_old__version_of_name(path, &major, &minor))
		refuse_version(probe, major, minor);
	else
		refuse(probe, exports(file, "PyInt_Type") ? "2" : "3.6 or older");
}
