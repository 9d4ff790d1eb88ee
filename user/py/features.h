/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What can be told of a target, by the fields that its version and build have. For doctor: what others ask of
 * the offsets one by one, put in words.
 */
#pragma once

#include "py/target.h"

#include <stdbool.h>
#include <stddef.h>

struct py_feature {
	const char *name;
	bool given;
	const char *how; /* ..., or why not */
};

#define PY_FEATURES_MAX 16
/* Their number. Pure. */
size_t py_features__list(struct py_target *target, struct py_feature out[PY_FEATURES_MAX]);

/* Where the offsets come from. Static. */
const char *py_features__origin(const struct py_target *target);

/* Has a profiler that uses the frame marker (py/marker.h) left it in a thread? */
bool py_features__is_marked(struct py_target *target);
