/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of the processes that are found are wanted, by what the kernel says of them; those that are asked for
 * by number are not asked about. And which threads. Pure.
 */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct filter {
	VEC(const char *) comms;    /* shell patterns of the whole name, one of which it has; none: any */
	VEC(const char *) excludes; /* ... of a part of the command line, none of which it has */
	VEC(uid_t) users;	    /* one of which it is of; none: any */
};

/* Is there anything to look at? */
bool filter__is_set(const struct filter *filter);
bool filter__wants(const struct filter *filter, const char *comm, const char *command, uid_t user);
/* The lists; the patterns are borrowed. */
void filter__free(struct filter *filter);

struct thread_filter {
	VEC(const char *) names; /* numbers, or shell patterns of the whole name; any will do ... */
	bool main;		 /* ... and so will the main thread */
};

bool thread_filter__is_set(const struct thread_filter *filter);
bool thread_filter__wants(const struct thread_filter *filter, const char *name, pid_t tid, bool is_main);
void thread_filter__free(struct thread_filter *filter);
