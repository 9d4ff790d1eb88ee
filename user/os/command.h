/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command that this program starts and leaves alone: its terminal, its standard streams, its signals, its
 * file descriptors and its limits are what the caller of this program gave. It waits just before its exec
 * until it is let go, so that nothing of it is missed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid; /* 0: none */
	int hold_fd, error_fd;
	bool over;
	int status; /* of waitpid, once over */
};

/* Exit codes of a command that could not be run, as env has them. */
enum { COMMAND_NOT_RUN = 126, COMMAND_NOT_FOUND = 127 };

/*
 * Forks a process that will run argv (NULL at its end). To be called before anything is set that a child
 * inherits: signals, limits, priority. Under sudo it belongs to the user who called sudo, unless `keep_root`.
 * 0 or -errno.
 */
int command__start(struct command *command, char *const *argv, bool keep_root);
/* Lets it run. 0; -errno: it could not (see command__code), and `reason` says why. */
int command__release(struct command *command, char *reason, size_t reason_size);
/* Waits for its end. Its exit code, 128 + the signal that killed it. */
int command__wait(struct command *command);
/* "exit code 3", "signal 9 (Killed)". Once it is over; valid until the next call. */
const char *command__status_text(const struct command *command);
/* The exit code for an error of command__release. */
int command__code(int err);
/* One that was not let go ends without having run. It is not waited for otherwise. */
void command__close(struct command *command);
