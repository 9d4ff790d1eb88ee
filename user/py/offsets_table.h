/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The offsets of CPython 3.8 to 3.12, one table for each minor version; offsets.h is the interface for
 * everybody else. Only offsets are in them, nothing of what follows from the version.
 */
#pragma once

#include "py/offsets.h"

#define PY_TABLE_FIRST_MINOR 8
#define PY_TABLE_LAST_MINOR  12

extern const struct py_offsets py_offsets_tables[PY_TABLE_LAST_MINOR - PY_TABLE_FIRST_MINOR + 1];
