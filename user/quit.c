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

static void handle_by(void (*handler)(int))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signal(signals[i], handler) == SIG_IGN)
			signal(signals[i], SIG_IGN);
}

void quit__on_signals(void (*clean_up)(void))
{
	at_quit = clean_up;
	handle_by(quit);
}

void quit__no_more(void)
{
	handle_by(SIG_DFL);
}
