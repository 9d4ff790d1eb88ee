/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See quit.h.
 */
#include "quit.h"

#include "base/util.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static void (*at_quit)(void);

static void quit(int signal)
{
	at_quit();
	_exit(128 + signal);
}

void quit__on_signals(void (*clean_up)(void))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	at_quit = clean_up;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signal(signals[i], quit) == SIG_IGN)
			signal(signals[i], SIG_IGN);
}
