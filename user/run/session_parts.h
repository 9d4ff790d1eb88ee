/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside a run: session_open.c (opening), session.c (START HERE: the loop), session_report.c (what is said of
 * it).
 */
#pragma once

#include "os/command.h"
#include "run/code_files.h"
#include "run/follow.h"
#include "run/gil.h"
#include "run/report.h"
#include "run/session.h"
#include "run/waits.h"

/* What epoll reports that is no process. */
enum { SESSION_WATCH_RING, SESSION_WATCH_SIGNAL };

struct session {
	struct session_config config;
	struct profile profile;
	struct symbolizer symbolizer;
	struct gil gil; /* --mode gil only */
	struct code_files code_files;
	struct engine engine;
	struct follower follower;
	struct scope scope;	      /* empty if neither cgroups nor containers were asked for */
	struct containers containers; /* that processes are in */
	struct waits waits;
	struct command command; /* pid 0: none */
	struct process *first;	/* that was asked for, or the command; NULL: none was */
	int epoll_fd;
	uint64_t start_ns, end_ns, progress_ns, refresh_ns;
	uint64_t flush_ns; /* when sinks are to be flushed; UINT64_MAX: there are none */
	uint64_t moved_ns; /* before then cgroups are not looked at for that */
	bool moved;	   /* something was put into another cgroup since they were looked at */
	uint32_t drains;
	bool more, news, first_seen;
	enum session_end end;
	int signal; /* that ended the run */
	int err;    /* that ended the run */
	VEC(struct process *) told; /* of in the report */
	VEC(struct report_container) sums;
};

/* Is it about cgroups or containers? */
bool session_has_scope(const struct session *session);
/* Are processes to be found, beside those that were asked for? */
bool session_follows(const struct session *session);

uint64_t session_now_realtime_ns(void);
/* Bring what the profile's metadata says of the run up to date. */
void session_account(struct session *session);
const char *session_end_text(const struct session *session); /* why it ended; static */
