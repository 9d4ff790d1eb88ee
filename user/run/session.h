/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * START HERE (user side). One profiling run: attach to the processes, sample until the end, give a profile
 * and an account of every sample. One thread, one epoll loop over the engine, signals and the processes'
 * pidfds.
 */
#pragma once

#include "agg/profile.h"
#include "agg/sink.h"
#include "base/buf.h"
#include "base/vec.h"
#include "os/filter.h"
#include "run/engine.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum session_by {
	SESSION_BY_DEFAULT, /* by process if there may be several */
	SESSION_BY_PROCESS,
	SESSION_BY_CONTAINER,
	SESSION_BY_MERGED,
};

struct session_config {
	VEC(pid_t) pids;
	char *const *command; /* to be started and profiled, instead of the pids; NULL: none */
	bool keep_root;	      /* it is not run as the user who called sudo */
	bool subprocesses;    /* what they start is profiled, too */
	bool all;	      /* every Python of the machine is */
	VEC(const char *) cgroups; /* all in these is, by what the user called them; borrowed */
	VEC(const char *) containers;
	enum session_by by;
	struct filter filter; /* of those that are found */
	uint64_t duration_ns; /* 0 = until stopped or the processes end */
	uint32_t rate_hz;
	enum engine_kind engine;
	enum engine_mode mode;
	bool hide_idle; /* leave out what waits for work */
	bool hide_gc;	/* no frames for the collection of garbage */
	bool only_exceptions; /* samples of threads that have an exception */
	struct thread_filter threads;
	uint32_t kernel_frames; /* 0 = from the rate */
	enum sampler_program program;
	enum sampler_clock clock;
	bool no_slot; /* find thread states by their lists only */
	bool by_thread;
	bool gives_samples; /* session__give_samples will be called ... */
	bool no_profile;    /* ... and nobody wants the profile as a whole: it may begin anew */
	bool blocking;	   /* readv: stop threads while they are read */
	bool frame_marker; /* readv: use the frame marker of 3.15 */
	bool stats;	   /* the report tells of reads and caches */
	bool code;	   /* session__read_code is going to be called */
	bool progress;	   /* keep a line on stderr up to date */
};

/* Why a run could not start; main.c turns it into an exit code. */
enum session_error {
	SESSION_OK,
	SESSION_FAILED,
	SESSION_NOT_PYTHON,
	SESSION_NOT_PERMITTED,
	SESSION_COMMAND_NOT_RUN,   /* as env: exit codes 126 ... */
	SESSION_COMMAND_NOT_FOUND, /* ... and 127 */
};

enum session_end {
	SESSION_END_DURATION,
	SESSION_END_SIGNAL,
	SESSION_END_TARGETS, /* every process has ended, or the command */
	SESSION_END_ERROR,   /* out of memory and the like; what was sampled so far is there */
};

struct session;

/* Attach. On failure the reason has been logged and nothing is left attached. */
enum session_error session__open(struct session **out, const struct session_config *config);

/* Before it is run: sinks that get every sample by itself, and are flushed in time. Borrowed. */
void session__give_samples(struct session *session, struct sink *sinks);
/* Are processes, containers told apart? That they may be is known from open on. */
bool session__is_by_process(const struct session *session);

/*
 * Sample until the end. `snapshot` is called on SIGUSR1, with the profile as it is then; may be NULL. From
 * open on, INT, TERM and HUP end the run the first time, and the program the second time; with a command,
 * they are its business (run/signals.h).
 */
enum session_end session__run(struct session *session, void (*snapshot)(void *context), void *context);

const struct profile *session__profile(const struct session *session);
/* Reads the code of its functions, for formats that show it (agg/listing.h). 0 or -ENOMEM. */
int session__read_code(struct session *session);

/* The account of the run, some lines of text for stderr; writes no more than it knows. */
void session__report(struct session *session, struct buf *out);

/* The same for programs, as JSON. */
void session__report_json(struct session *session, struct buf *out);

/*
 * Waits for the command's end; nothing more is reported then, if it still ran. Its exit code, as a shell
 * gives it; 0 without a command.
 */
int session__wait_command(struct session *session);

/* Were processes found that may be Python, or are, and could not be profiled? */
bool session__is_partial(const struct session *session);
/* Was a process found that was not permitted to be read? */
bool session__was_denied(const struct session *session);
/* Was any process Python? */
bool session__found_python(const struct session *session);
/* Was there one process to look at, Python by its name, that ended before that could be found out? */
bool session__ended_too_soon(const struct session *session);
/* Why not, one line. If the command is over, its end is told, too. */
void session__explain_not_python(const struct session *session, struct buf *out);

/* Why there are no samples, one line. Only if profile->samples is 0. */
void session__explain_empty(struct session *session, struct buf *out);

void session__close(struct session *session);
