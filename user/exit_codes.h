/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the program ends with; that of a command is passed on. See README.
 */
#pragma once

enum {
	EXIT_WRITTEN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PYTHON = 3,
	EXIT_NOT_PERMITTED = 4,
	EXIT_PARTIAL = 5,
	EXIT_NOT_RUN = 126,
	EXIT_NOT_FOUND = 127
};
