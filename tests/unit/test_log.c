/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages as they arrive on stderr, which is a pipe or a pseudo terminal here.
 */
#include "base/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static int saved_stderr, reader;

static void redirect_stderr(int to)
{
	saved_stderr = dup(STDERR_FILENO);
	cr_assert_eq(dup2(to, STDERR_FILENO), STDERR_FILENO);
	close(to);
	cr_assert_eq(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
}

static void use_pipe(void)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	reader = fds[0];
	redirect_stderr(fds[1]);
}

static void use_terminal(unsigned short columns)
{
	const struct winsize size = {.ws_row = 24, .ws_col = columns};
	struct termios mode;
	int terminal;

	reader = posix_openpt(O_RDWR | O_NOCTTY);
	if (reader < 0 || grantpt(reader) || unlockpt(reader))
		cr_skip_test("no pseudo terminal");
	terminal = open(ptsname(reader), O_RDWR | O_NOCTTY);
	cr_assert_geq(terminal, 0);
	/* Bytes arrive as they were written, "\n" included. */
	cr_assert_eq(tcgetattr(terminal, &mode), 0);
	cfmakeraw(&mode);
	cr_assert_eq(tcsetattr(terminal, TCSANOW, &mode), 0);
	cr_assert_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
	redirect_stderr(terminal);
}

/* What has arrived since the last check. */
static void check(const char *want)
{
	char text[8192];
	ssize_t n = read(reader, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = '\0';
	if (!strcmp(text, want))
		return;
	dup2(saved_stderr, STDERR_FILENO);
	cr_assert_str_eq(text, want);
}

Test(log, prefixes)
{
	use_pipe();
	log_set_level(LOG_DBG);
	log_err("cannot open %s", "x");
	check("pybpfprof: error: cannot open x\n");
	log_warn("slow");
	check("pybpfprof: warning: slow\n");
	log_info("%d samples", 7);
	check("pybpfprof: 7 samples\n");
	log_dbg("runtime", "found at %#x", 16);
	check("pybpfprof: runtime: found at 0x10\n");
}

Test(log, levels)
{
	use_pipe();
	log_dbg("runtime", "hidden by default");
	check("");
	cr_assert(log_enabled(LOG_INFO));
	cr_assert_not(log_enabled(LOG_DBG));
	log_set_level(LOG_ERR);
	log_warn("hidden");
	log_info("hidden");
	check("");
	log_err("shown");
	check("pybpfprof: error: shown\n");
}

Test(log, keeps_errno)
{
	use_pipe();
	errno = EPERM;
	log_err("%m");
	cr_assert_eq(errno, EPERM);
	check("pybpfprof: error: Operation not permitted\n");
	close(STDERR_FILENO);
	log_err("nobody hears this");
	log_progress("nor this");
	cr_assert_eq(errno, EPERM);
	dup2(saved_stderr, STDERR_FILENO);
}

Test(log, long_message_is_one_line)
{
	char text[100000];
	char got[8192];
	ssize_t n;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	use_pipe();
	log_err("%s", text);
	n = read(reader, got, sizeof(got));
	dup2(saved_stderr, STDERR_FILENO);
	cr_assert_gt(n, 4096);
	cr_assert_eq(got[n - 1], '\n');
	cr_assert_leq(read(reader, got, sizeof(got)), 0);
}

Test(log, no_progress_into_a_file)
{
	use_pipe();
	log_progress("%d samples", 5);
	check("");
	log_info("done");
	check("pybpfprof: done\n");
}

Test(log, progress_gives_way_to_messages)
{
	use_terminal(80);
	log_progress("%s", "");
	check("");
	log_progress("%d samples", 5);
	check("\r5 samples\x1b[K");
	log_progress("%d samples", 6);
	check("\r6 samples\x1b[K");
	log_info("target ended");
	check("\r\x1b[Kpybpfprof: target ended\n");
	log_info("again");
	check("pybpfprof: again\n");
	log_progress("%d samples", 7);
	check("\r7 samples\x1b[K");
	log_progress("%s", "");
	check("\r\x1b[K");
	log_info("clear");
	check("pybpfprof: clear\n");
}

/* Lines as they are, however long they are together. */
Test(log, long_text)
{
	char text[6000], want[6100];

	use_pipe();
	memset(text, 'x', sizeof(text));
	text[100] = '\n';
	snprintf(want, sizeof(want), "pybpfprof: %.*s\n", (int)sizeof(text), text);
	log_text(text, sizeof(text));
	check(want);
	log_set_level(LOG_WARN);
	log_text(text, sizeof(text));
	check("");
}

/* A line of exactly the width would wrap, and so would half of a wide character. */
Test(log, progress_fits)
{
	use_terminal(10);
	log_progress("123456789");
	check("\r123456789\x1b[K");
	log_progress("1234567890123");
	check("\r123456789\x1b[K");
	log_progress("12345678\xe4\xb8\xad");
	check("\r12345678\x1b[K");
	log_progress("1234567\xe4\xb8\xad!");
	check("\r1234567\xe4\xb8\xad\x1b[K");
}

/* A terminal that does not tell its width is taken for one of 80 columns. */
Test(log, progress_without_a_width)
{
	use_terminal(0);
	log_progress("%0100d", 0);
	check("\r"
	      "0000000000000000000000000000000000000000000000000000000000000000000000000000000"
	      "\x1b[K");
}
