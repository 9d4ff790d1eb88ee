/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages for the person at the terminal: always stderr, one line each, "pybpfprof: text". Bytes that
 * come from elsewhere are escaped by the caller (buf__add_escaped, log_shown), never printed raw.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DBG };

/* Messages above this level are dropped; the default is LOG_INFO. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* A word of the command line or the like, escaped for a message; '' if it is empty. Valid until some calls
 * later. */
const char *log_shown(const char *text);

/* What a negative errno means, and what would help if it is a limit that is too low. */
const char *log_reason(int err);

/*
 * While a progress line is shown (without newline at its end), log_progress() replaces it and any other
 * message first clears it. An empty text only clears. Nothing happens when stderr is not a terminal.
 */
void log_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void log_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for lines of any number and length; those above are cut. */
void log_text(const char *text, size_t len);
/* module names the subsystem, e.g. "runtime": printed as "pybpfprof: runtime: text". Shown with -v only. */
void log_dbg(const char *module, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
