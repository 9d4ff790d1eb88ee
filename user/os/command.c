/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See command.h. Two pipes: by one the child is let go, and sees that nobody will if this program dies first;
 * the other closes at its exec, or brings what went wrong.
 */
#include "os/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum step { STEP_CALLER = 1, STEP_USER, STEP_EXEC };

struct failure {
	enum step step;
	int err;
};

/* --- in the child --- */

static void fail(int fd, enum step step, int err)
{
	struct failure failure = {step, err};

	if (write(fd, &failure, sizeof(failure)) < 0)
		_exit(COMMAND_NOT_RUN);
	_exit(command__code(-err));
}

static bool parse_id(const char *text, unsigned int *out)
{
	unsigned long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	*out = value;
	return !errno && !*end && value < UINT32_MAX;
}

/* What a login would have set; NULL: a user that no file knows. */
static int set_names(const struct passwd *user)
{
	if (!user) /* root's are not its own */
		return setenv("HOME", "/", 1) || unsetenv("USER") || unsetenv("LOGNAME") ? errno : 0;
	return setenv("HOME", user->pw_dir, 1) || setenv("USER", user->pw_name, 1) ||
			       setenv("LOGNAME", user->pw_name, 1)
		       ? errno
		       : 0;
}

/* 0 or errno, and the step that failed. What cannot be told must not end as root. */
static int become_caller_of_sudo(enum step *step)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	const struct passwd *user;
	unsigned int uid, gid;

	*step = STEP_USER;
	/* A set-id program: whoever called it. */
	if (getuid() != geteuid() || (getuid() && getgid() != getegid()))
		return setresgid(getgid(), getgid(), getgid()) || setresuid(getuid(), getuid(), getuid())
			       ? errno
			       : 0;
	if (getuid() || (!uid_text && !gid_text))
		return 0;
	*step = STEP_CALLER;
	if (!parse_id(uid_text, &uid) || !parse_id(gid_text, &gid))
		return EINVAL;
	*step = STEP_USER;
	if (!uid)
		return 0;
	user = getpwuid(uid);
	if (user ? initgroups(user->pw_name, gid) : setgroups(0, NULL))
		return errno;
	if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return errno;
	return set_names(user);
}

/* The kernel's "permission denied" is none. */
static int explain_exec(int err, const char *path)
{
	struct stat file;

	return err == EACCES && strchr(path, '/') && !stat(path, &file) && S_ISDIR(file.st_mode) ? EISDIR
												 : err;
}

static void run(char *const *argv, int hold_fd, int error_fd, bool keep_root)
{
	enum step step = STEP_USER;
	int err = keep_root ? 0 : become_caller_of_sudo(&step);
	ssize_t got;
	char go;

	do
		got = read(hold_fd, &go, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(COMMAND_NOT_RUN);
	if (err)
		fail(error_fd, step, err);
	execvp(argv[0], argv);
	fail(error_fd, STEP_EXEC, explain_exec(errno, argv[0]));
}

/* --- in the parent --- */

int command__start(struct command *command, char *const *argv, bool keep_root)
{
	int hold[2] = {-1, -1}, error[2] = {-1, -1}, err = 0;
	sighandler_t old;

	*command = (struct command){.hold_fd = -1, .error_fd = -1};
	if (pipe2(hold, O_CLOEXEC) || pipe2(error, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	/* Where it is ignored, as it may be from our caller on, nobody would tell how a child ends. */
	old = signal(SIGCHLD, SIG_DFL);
	command->pid = fork();
	if (command->pid < 0) {
		err = -errno;
		command->pid = 0;
		goto out;
	}
	if (!command->pid) {
		signal(SIGCHLD, old);
		close(hold[1]);
		close(error[0]);
		run(argv, hold[0], error[1], keep_root);
	}
	command->hold_fd = hold[1];
	command->error_fd = error[0];
	hold[1] = error[0] = -1;
out:
	for (int i = 0; i < 2; i++) {
		if (hold[i] >= 0)
			close(hold[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int command__release(struct command *command, char *reason, size_t reason_size)
{
	struct failure failure;
	ssize_t got;
	char go = 1;

	/* If it has been killed meanwhile, this fails, and its status tells. */
	if (write(command->hold_fd, &go, 1) < 0 && errno != EPIPE)
		return -errno;
	close_fd(&command->hold_fd);
	do
		got = read(command->error_fd, &failure, sizeof(failure));
	while (got < 0 && errno == EINTR);
	close_fd(&command->error_fd);
	if (got != sizeof(failure))
		return 0;
	if (failure.step == STEP_CALLER)
		snprintf(reason, reason_size,
			 "SUDO_UID and SUDO_GID are not both the numbers of a user and a group, so it cannot "
			 "be told "
			 "who called sudo; --as-root runs it as root");
	else if (failure.step == STEP_USER)
		snprintf(reason, reason_size, "cannot run it as the user who called sudo: %s",
			 strerror(failure.err));
	else
		snprintf(reason, reason_size, "%s", strerror(failure.err));
	return -failure.err;
}

int command__wait(struct command *command)
{
	pid_t got = 0;

	while (!command->over && ((got = waitpid(command->pid, &command->status, 0)) >= 0 || errno == EINTR))
		command->over = got == command->pid;
	return WIFSIGNALED(command->status) ? 128 + WTERMSIG(command->status) : WEXITSTATUS(command->status);
}

const char *command__status_text(const struct command *command)
{
	static char text[80];

	if (WIFSIGNALED(command->status))
		snprintf(text, sizeof(text), "signal %d (%s)", WTERMSIG(command->status),
			 strsignal(WTERMSIG(command->status)));
	else
		snprintf(text, sizeof(text), "exit code %d", WEXITSTATUS(command->status));
	return text;
}

int command__code(int err)
{
	return err == -ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_RUN;
}

void command__close(struct command *command)
{
	bool held = command->hold_fd >= 0;

	if (!command->pid)
		return;
	close_fd(&command->hold_fd);
	close_fd(&command->error_fd);
	if (held)
		command__wait(command);
}
