/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end by a signal that nobody else takes.
 */
#pragma once

/*
 * From now on Ctrl-C, SIGTERM and SIGHUP end the program at once, after `clean_up`, which does only what is
 * safe in a signal handler. Those that are ignored stay so.
 */
void quit__on_signals(void (*clean_up)(void));
/* ... and from now on they do what they did before. */
void quit__no_more(void);
