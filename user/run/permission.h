/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which capabilities this process needs, has, and how to get the missing ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum permission_use {
	PERMISSION_BPF,	  /* load the BPF program and put it on timers */
	PERMISSION_ALL,	  /* ... and read any process */
	PERMISSION_FILES, /* open deleted and replaced libraries */
};

/*
 * One line, without newline: what is missing and what would permit it; "" when nothing is. Static, until the
 * next call.
 */
const char *permission__missing(enum permission_use use);

/*
 * Appends to `text` what else may be why the kernel refuses a system call to this process: "; a seccomp
 * filter ...". False: nothing is known.
 */
bool permission__add_hint(char *text, size_t size);

/* The same for reading a process: what is about that one. */
void permission__add_target_hint(pid_t pid, char *text, size_t size);
