/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a session, for run/session*.c only: session_open.c attaches and starts, session.c samples,
 * session_report.c gives the account of it.
 */
#pragma once

#include "agg/profile.h"
#include "run/engine.h"
#include "run/process.h"
#include "run/session.h"
#include "run/symbolize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MS     1000000ull
#define SECOND (1000 * MS)

/* What epoll says is ready: the ring, a signal, or WATCH_PROCESS + index. */
enum { WATCH_RING, WATCH_SIGNAL, WATCH_PROCESS };

struct session {
	struct session_config config;
	struct profile profile;
	struct symbolizer symbolizer;
	struct engine engine;
	struct process *processes;
	size_t process_count;
	int epoll_fd;
	uint64_t start_ns, end_ns, progress_ns, refresh_ns;
	uint32_t drains;
	bool more, news, first_seen;
	enum session_end end;
	int signal; /* that ended the run */
	int err;    /* that ended the run */
};

/* session.c */

uint64_t session_now_ns(clockid_t clock);
/* Tell the engine how to walk a process, unless it has meanwhile become another program. 0 or -errno. */
int session_set_target(struct session *session, struct process *process);
