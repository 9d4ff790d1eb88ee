/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of the processes that are found are wanted, by what the kernel says of them. Those that are asked for
 * by number are not asked about. Pure.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct filter {
	const char *comm;    /* shell pattern of the name, whole; NULL: any */
	const char *exclude; /* shell pattern of a part of the command line; NULL: none */
	bool by_user;
	uid_t user;
};

/* Is there anything to look at? */
bool filter__is_set(const struct filter *filter);
bool filter__wants(const struct filter *filter, const char *comm, const char *command, uid_t user);
