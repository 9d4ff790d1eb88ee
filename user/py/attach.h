/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a process cannot be profiled: the answer of every step of an attach. Always comes with a sentence for
 * the user.
 */
#pragma once

enum py_attach_error {
	PY_ATTACH_OK,
	PY_ATTACH_GONE,	       /* no such process, or it ended meanwhile */
	PY_ATTACH_NOT_PYTHON,  /* no runtime in any of its images (now) */
	PY_ATTACH_STARTING,    /* a runtime is there but has no interpreter yet: try again soon */
	PY_ATTACH_UNSUPPORTED, /* Python, but a version or build that is not supported */
	PY_ATTACH_DENIED,      /* not permitted to read it */
	PY_ATTACH_CORRUPT,     /* its tables contradict themselves */
	PY_ATTACH_SYSTEM,      /* anything else */
};
