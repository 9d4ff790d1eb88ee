/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * INT, TERM and HUP end a run the first time and the program the second time; USR1 asks for a snapshot. A HUP
 * that was ignored when the program started (nohup) stays ignored.
 */
#pragma once

#include <stdbool.h>

/* Begin to catch them. A descriptor that becomes readable when one has come, for epoll; or -errno. */
int signals__open(void);
/* What came since the last call: the signal that ends the run, 0 if none; *snapshot. */
int signals__take(bool *snapshot);
/* Close the descriptor. What the signals do next is the caller's to say. */
void signals__close(void);
