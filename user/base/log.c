/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages and the progress line, both on stderr. A message goes out in one write, so that lines of two
 * programs on one terminal do not mix. The only state is the level and whether a progress line is on the
 * screen now. errno survives every call: logging must not change what the caller is about to return.
 */
#include "base/log.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_BYTES	4608u /* a path of 4096 and some words */
#define DEFAULT_COLUMNS 80u
#define CLEAR_LINE	"\r\x1b[K"
#define SHOWN_WORDS	4 /* of one message */

static enum log_level shown_level = LOG_INFO;
static bool progress_shown;

void log_set_level(enum log_level level)
{
	shown_level = level;
}

bool log_enabled(enum log_level level)
{
	return level <= shown_level;
}

/* Nothing sensible is left to do when stderr itself fails. */
static void write_line(const char *line, size_t len)
{
	while (len) {
		ssize_t n = write(STDERR_FILENO, line, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		line += n;
		len -= (size_t)n;
	}
}

static void log_line(enum log_level level, const char *prefix, const char *module, const char *fmt,
		     va_list args)
{
	char text[LINE_BYTES], line[LINE_BYTES + 128];
	int saved_errno = errno, len;

	if (!log_enabled(level))
		return;
	if (vsnprintf(text, sizeof(text), fmt, args) < 0)
		text[0] = '\0';
	len = snprintf(line, sizeof(line), "%spybpfprof: %s%s%s%s\n", progress_shown ? CLEAR_LINE : "",
		       prefix, module ?: "", module ? ": " : "", text);
	progress_shown = false;
	if (len > 0)
		write_line(line, min_u64((size_t)len, sizeof(line) - 1));
	errno = saved_errno;
}

#define LOG_WITH_ARGS(level, prefix, module, fmt)                                                            \
	do {                                                                                                 \
		va_list args;                                                                                \
		va_start(args, fmt);                                                                         \
		log_line((level), (prefix), (module), (fmt), args);                                          \
		va_end(args);                                                                                \
	} while (0)

void log_err(const char *fmt, ...)
{
	LOG_WITH_ARGS(LOG_ERR, "error: ", NULL, fmt);
}

void log_warn(const char *fmt, ...)
{
	LOG_WITH_ARGS(LOG_WARN, "warning: ", NULL, fmt);
}

void log_info(const char *fmt, ...)
{
	LOG_WITH_ARGS(LOG_INFO, "", NULL, fmt);
}

void log_text(const char *text, size_t len)
{
	struct buf line = {0};
	int saved_errno = errno;

	if (!log_enabled(LOG_INFO))
		return;
	buf__adds(&line, progress_shown ? CLEAR_LINE "pybpfprof: " : "pybpfprof: ");
	buf__add(&line, text, len);
	buf__addc(&line, '\n');
	progress_shown = false;
	if (!line.err)
		write_line(line.data, line.len);
	buf__free(&line);
	errno = saved_errno;
}

void log_dbg(const char *module, const char *fmt, ...)
{
	LOG_WITH_ARGS(LOG_DBG, "", module, fmt);
}

const char *log_shown(const char *text)
{
	static char words[SHOWN_WORDS][LINE_BYTES];
	static unsigned int next;
	char *word = words[next++ % SHOWN_WORDS];
	struct buf escaped = {0};

	buf__add_escaped(&escaped, text, NULL);
	snprintf(word, LINE_BYTES, "%.*s", escaped.err ? 0 : (int)escaped.len,
		 escaped.len ? escaped.data : "");
	if (!*text)
		snprintf(word, LINE_BYTES, "''");
	buf__free(&escaped);
	return word;
}

const char *log_reason(int err)
{
	return err == -EMFILE ? "Too many open files: RLIMIT_NOFILE (ulimit -n) is too low" : strerror(-err);
}

/* The last column stays free: a full line would wrap, and clearing it would leave the first part behind. */
static size_t progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return DEFAULT_COLUMNS - 1;
	return size.ws_col - 1;
}

void log_progress(const char *fmt, ...)
{
	char text[LINE_BYTES], line[LINE_BYTES + 128];
	int saved_errno = errno, len;
	va_list args;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (len >= 0 && isatty(STDERR_FILENO) && (len > 0 || progress_shown)) {
		size_t text_len = utf8_fit(text, strlen(text), progress_columns());

		len = snprintf(line, sizeof(line), "\r%.*s\x1b[K", (int)text_len, text);
		write_line(line, (size_t)len);
		progress_shown = text_len > 0;
	}
	errno = saved_errno;
}
