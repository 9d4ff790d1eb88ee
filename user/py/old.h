/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pythons whose runtime has no _Py_DebugOffsets (before 3.13): which version is it, and is it live? The
 * offsets follow from the version, so it must be known for certain.
 */
#pragma once

#include "os/remote.h"
#include "py/image.h"
#include "py/probe.h"

#include <stdint.h>

/*
 * A _PyRuntime at `runtime`, found by section or symbol, whose memory has no cookie: what py_probe__run says
 * of those that have one. Sets probe->verdict and reason, and offsets with OK and STARTING. `bias` is where
 * the file is loaded.
 */
void py_old__probe(struct py_probe *probe, struct remote *remote, py_addr runtime,
		   struct image_file *file, uint64_t bias);

/* A file without _PyRuntime: is it a Python from before 3.7, or PyPy? Leaves NOT_PYTHON if it is neither. */
void py_old__describe_ancient(struct py_probe *probe, struct image_file *file, const char *path);

/*
 * Major and minor version from a name such as "libpython3.9.so.1.0", "python2.7", "libpython3.6m.so.1.0"; any
 * folder in front is skipped. Pure. Returns false when there is none.
 */
bool py_old__version_of_name(const char *path, unsigned int *major, unsigned int *minor);
