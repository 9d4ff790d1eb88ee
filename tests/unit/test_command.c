/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands that are started: held, let go, and how they end.
 */
#include "os/command.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define argv(...) ((char *const[]){__VA_ARGS__, NULL})

static struct command command;
static char reason[256];

static void stop(void)
{
	command__close(&command);
}

TestSuite(command, .fini = stop, .timeout = 60);

static void start(char *const *argv)
{
	cr_assert_eq(command__start(&command, argv, false), 0);
	cr_assert_gt(command.pid, 0);
}

static int run(char *const *argv)
{
	start(argv);
	cr_assert_eq(command__release(&command, reason, sizeof(reason)), 0, "%s", reason);
	return command__wait(&command);
}

Test(command, exit_codes)
{
	cr_expect_eq(run(argv("true")), 0);
	cr_expect_str_eq(command__status_text(&command), "exit code 0");
	cr_expect_eq(run(argv("sh", "-c", "exit 3")), 3);
	cr_expect_str_eq(command__status_text(&command), "exit code 3");
	cr_expect_eq(command__wait(&command), 3, "once more");
	cr_expect_eq(run(argv("sh", "-c", "kill -9 $$")), 128 + SIGKILL);
	cr_expect(strstr(command__status_text(&command), "signal 9"), "%s", command__status_text(&command));
}

Test(command, what_cannot_be_run)
{
	int err;

	start(argv("/no/such/command"));
	err = command__release(&command, reason, sizeof(reason));
	cr_expect_eq(err, -ENOENT);
	cr_expect_eq(command__code(err), COMMAND_NOT_FOUND);
	cr_expect_eq(command__wait(&command), COMMAND_NOT_FOUND);
	start(argv("/"));
	err = command__release(&command, reason, sizeof(reason));
	cr_expect_eq(command__code(err), COMMAND_NOT_RUN);
	cr_expect_str_eq(reason, "Is a directory");
	start(argv(""));
	err = command__release(&command, reason, sizeof(reason));
	cr_expect_eq(command__code(err), COMMAND_NOT_FOUND);
}

/* Until it is let go it has not begun; if it never is, it never does. */
Test(command, held)
{
	char path[] = "/tmp/pybpfprof-command-XXXXXX";
	int fd = mkstemp(path);
	struct stat stat;

	cr_assert(fd >= 0 && !unlink(path));
	start(argv("touch", path));
	usleep(100000);
	cr_expect_lt(access(path, F_OK), 0);
	command__close(&command);
	cr_expect_lt(access(path, F_OK), 0);
	cr_expect_eq(run(argv("touch", path)), 0);
	cr_expect_eq(fstatat(AT_FDCWD, path, &stat, 0), 0);
	unlink(path);
	close(fd);
}

Test(command, killed_while_held)
{
	start(argv("true"));
	kill(command.pid, SIGTERM);
	usleep(100000);
	signal(SIGPIPE, SIG_IGN);
	cr_expect_eq(command__release(&command, reason, sizeof(reason)), 0);
	cr_expect_eq(command__wait(&command), 128 + SIGTERM);
	cr_expect_str_eq(command__status_text(&command), "signal 15 (Terminated)");
}

/* It gets the descriptors that its caller's caller left open, and none of ours. */
Test(command, descriptors)
{
	int theirs = open("/dev/null", O_RDONLY), ours = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char script[160];

	cr_assert(theirs >= 0 && ours >= 0);
	snprintf(script, sizeof(script), "[ -e /proc/self/fd/%d ] && [ ! -e /proc/self/fd/%d ]", theirs,
		 ours);
	cr_expect_eq(run(argv("sh", "-c", script)), 0);
	start(argv("sh", "-c", script));
	snprintf(script, sizeof(script), "[ ! -e /proc/self/fd/%d ] && [ ! -e /proc/self/fd/%d ]",
		 command.hold_fd, command.error_fd);
	command__close(&command);
	cr_expect_eq(run(argv("sh", "-c", script)), 0);
}

/* Whoever started us may ignore it; the command is to find that so, and we are to learn how it ends. */
Test(command, ignored_sigchld)
{
	signal(SIGCHLD, SIG_IGN);
	cr_expect_eq(run(argv("sh", "-c", "exit 3")), 3);
	signal(SIGCHLD, SIG_IGN);
	cr_expect_eq(run(argv("grep", "-q", "^SigIgn:.*[13579bdf]....$", "/proc/self/status")), 0);
	signal(SIGCHLD, SIG_DFL);
	cr_expect_eq(run(argv("grep", "-q", "^SigIgn:.*[02468ace]....$", "/proc/self/status")), 0);
}

/* Only root under sudo has another user to become. */
Test(command, caller_of_sudo)
{
	const char *const script = "[ $(id -u):$(id -g) = 65534:65534 ]";

	if (geteuid())
		cr_skip("only root can become another user");
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	cr_expect_eq(run(argv("sh", "-c", (char *)script)), 0);
	cr_expect_eq(run(argv("sh", "-c", "[ \"$USER\" = nobody ] && [ \"$LOGNAME\" = nobody ]")), 0);
	cr_assert_eq(command__start(&command, argv("sh", "-c", "[ $(id -u) = 0 ]"), true), 0);
	cr_assert_eq(command__release(&command, reason, sizeof(reason)), 0);
	cr_expect_eq(command__wait(&command), 0, "kept");
}

/* Who called sudo cannot be told: then it is not run, least of all as root. */
Test(command, caller_of_sudo_unknown)
{
	static const char *const ids[][2] = {{"65534", NULL},	   {NULL, "65534"}, {"12x", "12"},
					     {"4294967295", "12"}, {"12", "-1"},    {"99999999999", "1"},
					     {"", "12"},	   {" 12", "12"}};

	if (geteuid())
		cr_skip("only root can become another user");
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		if (ids[i][0])
			setenv("SUDO_UID", ids[i][0], 1);
		if (ids[i][1])
			setenv("SUDO_GID", ids[i][1], 1);
		start(argv("true"));
		cr_expect_eq(command__code(command__release(&command, reason, sizeof(reason))),
			     COMMAND_NOT_RUN);
		cr_expect(strstr(reason, "SUDO_UID") && strstr(reason, "--as-root"), "%s", reason);
		cr_expect_eq(command__wait(&command), COMMAND_NOT_RUN, "it was run: %zu", i);
		cr_assert_eq(command__start(&command, argv("true"), true), 0);
		cr_expect_eq(command__release(&command, reason, sizeof(reason)), 0);
		cr_expect_eq(command__wait(&command), 0, "kept");
	}
	setenv("SUDO_UID", "0", 1);
	setenv("SUDO_GID", "0", 1);
	cr_expect_eq(run(argv("sh", "-c", "[ $(id -u) = 0 ]")), 0, "root called it");
}

/* Of a user that no file knows nothing is left that is root's. */
Test(command, caller_of_sudo_without_a_name)
{
	if (geteuid())
		cr_skip("only root can become another user");
	setenv("SUDO_UID", "4000000001", 1);
	setenv("SUDO_GID", "4000000002", 1);
	setenv("USER", "root", 1);
	setenv("LOGNAME", "root", 1);
	setenv("HOME", "/root", 1);
	cr_expect_eq(
		run(argv("sh", "-c", "[ $(id -u):$(id -g):$(id -G) = 4000000001:4000000002:4000000002 ]")),
		0);
	cr_expect_eq(run(argv("sh", "-c", "[ $HOME = / ] && [ -z \"$USER$LOGNAME\" ]")), 0);
}
