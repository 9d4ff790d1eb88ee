/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame marker of 3.15 (thread_state.last_profiled_frame): written by a profiler, moved by the
 * interpreter to the caller, with a count, whenever the marked frame returns. So all from the marked frame on
 * down is as it was when the mark was set. The one thing in this program that writes to a target, only if it
 * is asked for
 * (--frame-marker), and taken away again on every way out that leaves time for it.
 */
#pragma once

#include "os/remote.h"

#include <stdbool.h>
#include <sys/types.h>

/* Where a thread's marker is, and how to tell that the thread state is still that thread's. */
struct marker_place {
	pid_t pid;
	py_addr field;
	py_addr id_field;
	uint64_t id;
};

/* 0 or -errno; -ENOSPC: too many threads are marked already. */
int marker__set(const struct marker_place *place, py_addr frame);
/* Take it away, if it was set. */
void marker__clear(const struct marker_place *place);
/* Take all away; safe in a signal handler. */
void marker__clear_all(void);
/* Let signals that end this program (a crash) take all away first. */
void marker__catch_crashes(void);
