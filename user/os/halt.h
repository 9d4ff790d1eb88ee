/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does something keep a process from running at all: a stop signal, a debugger, a frozen cgroup? Such a
 * process can be read, but uses no CPU time.
 */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

enum halt_kind {
	HALT_NONE,
	HALT_STOPPED, /* by SIGSTOP, or Ctrl-Z */
	HALT_TRACED,  /* by a debugger that is attached to it */
	HALT_FROZEN,  /* its cgroup is */
};

struct halt {
	enum halt_kind kind;
	pid_t tracer;	  /* that is attached to it, stopped or not; 0: none that can be seen */
	char cgroup[256]; /* HALT_FROZEN: which, as /proc/PID/cgroup names it */
};

/* As its main thread is, or another one where that has ended. */
void halt__look(struct halt *out, pid_t pid);

/* "stopped while process 77 (gdb) traces it", escaped. Nothing for HALT_NONE. */
void halt__describe(const struct halt *halt, struct buf *out);
/* "process 77 (gdb)", escaped. Only if there is a tracer. */
void halt__describe_tracer(const struct halt *halt, struct buf *out);
