/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * INT, TERM and HUP end a run the first time and the program the second time; USR1 asks for a snapshot. A HUP
 * that was ignored when the program started (nohup) stays ignored. While a command of ours runs, they are its
 * business, and QUIT too: what a terminal sends, or who signals the whole process group, it has got itself;
 * what was sent to this program is passed on.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Begin to catch them; with the command's pid, 0 if there is none. A descriptor that becomes readable when
 * one has come, for epoll; or -errno.
 */
int signals__open(pid_t command);
/* What came since the last call: the signal that ends the run, 0 if none; *snapshot. */
int signals__take(bool *snapshot);
/* The command has ended: its pid may become another's. */
void signals__forget_command(void);
/* Close the descriptor. What the signals do next is the caller's to say. */
void signals__close(void);
