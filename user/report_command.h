/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `pybpfprof report`: recordings as a table and as files of any format, as a whole or in part.
 */
#pragma once

#include "options.h"

/* Adds a file, - is stdin, to a sum; tells what is wrong. *fault: as record_sum__add. 0 or -errno. */
struct record_sum;
int report_command__read(struct record_sum *sum, const char *name, const char **fault);

/* Its exit code: as that of a run; EXIT_PARTIAL if a recording is not whole. */
int report_command__run(const struct options *options);
