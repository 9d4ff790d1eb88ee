/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `pybpfprof diff`: what changed between two recordings, as a table and as a page.
 */
#pragma once

#include "options.h"

/* Its exit code: 0, EXIT_FAILED, EXIT_USAGE if the two cannot be compared, EXIT_PARTIAL if one is not whole.
 */
int diff_command__run(const struct options *options);
