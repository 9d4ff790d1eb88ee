/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a test starts and what it leaves on the disk: child processes with their output in files, and scratch
 * folders. Everything goes when the test ends, however it ends: the children get SIGKILL with their parent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHILD_PATH 512

struct child {
	pid_t pid;
	int status; /* of waitpid, once over */
	bool over;
	char out[CHILD_PATH], err[CHILD_PATH]; /* the files that its output goes to */
};

struct child_config {
	const char *const *argv; /* NULL at the end; argv[0] is looked up in PATH */
	const char *env[4];	 /* "NAME=value", over the test's own */
	const char *out;	 /* what stdout goes to instead of a file */
	int out_fd;		 /* 0: see above; taken over as stdout */
	bool group;		 /* of its own; killed with all that is in it */
};

/* Never fails: a program that cannot be started ends with 127. Valid until clean_up(). */
struct child *child__start(const struct child_config *config);

/* Waits up to that many seconds; false if it still runs. */
bool child__wait(struct child *child, double seconds);

/* Exit code, or 128 + the signal that killed it. Only once it is over. */
int child__code(const struct child *child);

/* What it wrote. Valid until clean_up(). */
const char *child__out(const struct child *child);
const char *child__err(const struct child *child);

/*
 * Waits until its stdout holds a line that starts so; the rest of that line, or NULL when the time is over.
 */
const char *child__wait_line(struct child *child, const char *start, double seconds);
/* Waits until its stderr has that text. */
bool child__wait_message(struct child *child, const char *text, double seconds);

/* "R", "S", "T", ... of /proc/PID/status; 0 if there is no such process. */
char process_state(pid_t pid);
/* Returns when its main thread has slept on for 0.1 s; after 10 s at the latest. */
void await_quiet(pid_t pid);

/* A new folder below /tmp of the root ("": the machine's own): its path here. Valid until clean_up(). */
const char *scratch_folder(const char *root);

/* Kills and reaps every child, removes every folder. */
void clean_up(void);

void copy_file(const char *from, const char *to);
void write_file(const char *path, const char *text);
/* Contents with a NUL behind, "" if there is none. The caller frees. */
char *read_text(const char *path);
double seconds_now(void);
void pause_for(double seconds);
