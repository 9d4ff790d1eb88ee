/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Was a signal sent to this program alone, or to its whole process group or cgroup? Nobody tells. So a
 * process that does nothing is kept in both, with the signals in question blocked: what waits for it there
 * was sent to all. It ends with this program, holds none of its files, and does not have its name.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct witness {
	pid_t pid; /* 0: there is none */
};

/* 0 or -errno. As the others to be called from a signal handler, too. */
int witness__start(struct witness *witness);
/* Has that signal come to it, or does it within some hundredths of a second? Then another one is begun with.
 */
bool witness__saw(struct witness *witness, int signal);
/* Another one, to which nothing has come yet. */
void witness__renew(struct witness *witness);
void witness__stop(struct witness *witness);
