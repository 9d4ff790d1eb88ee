/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was found of one process, and what this program can tell of it. Only reads, without BPF but for a try
 * whether that is permitted, and only needs the permission to read the process's memory.
 */
#pragma once

#include "base/buf.h"
#include "run/session.h"

#include <sys/types.h>

/* Lines of text, of 80 columns unless a word is longer. On failure the reason has been logged. */
enum session_error doctor_process__run(pid_t pid, struct buf *out);
