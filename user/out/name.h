/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of files that tell one run from the other: "profile-%p-%t.html".
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct name_facts {
	pid_t pid;	  /* %p */
	uint64_t time_s;  /* %t, since 1970: 20261130T013405Z */
	const char *host; /* %h; a slash in it becomes "_" */
};

/*
 * The name that a pattern stands for; the caller frees it; NULL when out of memory. %% is a %, and any other
 * % stands for itself, as in names that are no patterns.
 */
char *name__expand(const char *pattern, const struct name_facts *facts);

/* "x.pbp" -> "x.0007.pbp"; the caller frees it; NULL when out of memory. */
char *name__numbered(const char *name, uint32_t number);
/* The first number beyond those that are there, from 1 on. */
uint32_t name__first_free_number(const char *name);
