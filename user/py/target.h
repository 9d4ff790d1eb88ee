/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One Python process, attached for reading: where its runtime is, what its memory looks like, its thread
 * states. Reads only.
 */
#pragma once

#include "os/remote.h"
#include "py/attach.h"
#include "py/offsets.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct py_target {
	pid_t pid;
	uint64_t start_ticks; /* with pid: identity */
	struct remote remote;
	struct py_offsets offsets;
	py_addr runtime;	  /* address of _PyRuntime */
	uint64_t main_thread;	  /* its pthread_self(): changes with exec, even to the same program */
	py_addr code_type;	  /* address of PyCode_Type, 0 = no frame seen at attach */
	char image[256];	  /* file it lies in, as /proc/PID/maps names it (unescaped) */
	char how[32];		  /* how it was found: "section", "symbol", "scan" */
	struct pbp_target layout; /* the same for the BPF program, slot included */
	char slot_how[96];	  /* how thread states are found, for doctor */
};

/*
 * Find and validate the runtime of pid and fill *out. On failure returns why, and `reason` (a whole sentence
 * without the pid, escaped) says what and what to do. Never blocks for long: one pass over the images. A
 * process that is starting or about to exec is for the caller to retry.
 */
enum py_attach_error py_target__open(struct py_target *out, pid_t pid, char *reason, size_t reason_size);

/*
 * Is it still the Python that was attached, not the same or another one after an exec or a second
 * Py_Initialize? One read.
 */
bool py_target__is_alive(struct py_target *target);

struct py_thread {
	py_addr tstate;
	py_addr interp;
	int64_t interp_id;
	uint64_t thread_id;	   /* pthread_self(), = fsbase on x86-64 glibc */
	uint64_t native_thread_id; /* in the target's own pid namespace; 0 = version has none */
};

/* All thread states of all interpreters, at most `max`. Caps and cycle-proof. Number found, or -errno. */
int py_target__threads(struct py_target *target, struct py_thread *out, size_t max);
