/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is there a live runtime at an address? Reads the table and the first interpreter, and judges. Used by
 * runtime.c on every candidate.
 */
#pragma once

#include "os/remote.h"
#include "py/attach.h"
#include "py/offsets.h"

#include <stdbool.h>
#include <stddef.h>

struct py_probe {
	enum py_attach_error verdict; /* OK = live; NOT_PYTHON = there is no table; the rest as named */
	bool has_table;		      /* the cookie is there: 3.13 or later */
	struct py_offsets offsets;    /* valid if OK or STARTING */
	char reason[200];
};

void py_probe__run(struct py_probe *probe, struct remote *remote, py_addr runtime);

/* The same with offsets that are known (probe->offsets), for versions without a table. Sets the verdict. */
void py_probe__look(struct py_probe *probe, struct remote *remote, py_addr runtime);
