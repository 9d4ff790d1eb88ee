/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See print.h.
 */
#include "print.h"

#include "base/log.h"
#include "out/blame_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned int print__width(int fd)
{
	struct winsize size;

	if (!isatty(fd))
		return 0;
	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

#define WRAP_INDENT "             "

/* Replace the space at `at` by a newline and an indent. */
static void insert_break(struct buf *text, size_t at)
{
	struct buf rest = {0};

	buf__add(&rest, text->data + at + 1, text->len - at - 1);
	text->len = at;
	buf__adds(text, "\n" WRAP_INDENT);
	buf__add(text, rest.data, rest.len);
	text->err = text->err ?: rest.err;
	buf__free(&rest);
}

/* Break lines at spaces so that they fit, and set off what goes on. */
static void wrap_lines(struct buf *text, unsigned int width)
{
	size_t column = strlen("pybpfprof: "), space = 0;
	struct buf out = {0};

	for (size_t i = 0; i < text->len && !text->err; i++) {
		char c = text->data[i];

		if (c == ' ')
			space = out.len;
		buf__addc(&out, c);
		column = c == '\n' ? 0 : column + 1;
		if (c == '\n')
			space = 0;
		if (column < width || !space)
			continue;
		/* The word that does not fit begins a new line. */
		column = out.len - space - 1 + strlen(WRAP_INDENT);
		insert_break(&out, space);
		space = 0;
	}
	if (!out.err) {
		buf__free(text);
		*text = out;
	} else {
		buf__free(&out);
	}
}

bool print__wants_color(int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}

int print__table(const struct profile *profile, enum group_by group, unsigned int rows, int fd)
{
	struct summary_style style = {
		.group = group, .max_rows = rows, .width = print__width(fd), .color = print__wants_color(fd)};
	struct buf text = {0};
	int err = summary__format(profile, &style, &text);

	err = err ?: blame_table__format(profile, &style, &text);
	err = err ?: buf__write_fd(&text, fd);
	buf__free(&text);
	if (err && err != -EPIPE)
		log_err("cannot write the table: %s", strerror(-err));
	return err == -EPIPE ? 0 : err;
}

void print__lines(struct buf *text)
{
	if (isatty(STDERR_FILENO))
		wrap_lines(text, print__width(STDERR_FILENO));
	if (text->len)
		log_text(text->data, text->len - (text->data[text->len - 1] == '\n'));
	buf__free(text);
}
