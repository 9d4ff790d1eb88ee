/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `pybpfprof report`: recordings as a table and as files of any format, as a whole or in part.
 */
#pragma once

#include "options.h"

/* Its exit code: as that of a run; EXIT_PARTIAL if a recording is not whole. */
int report_command__run(const struct options *options);
