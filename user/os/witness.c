/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See witness.h. What is pending is asked of the kernel, so that the witness never has to run for it. Whoever
 * signals a group does so in one go; whoever signals a cgroup, as systemd does, one process after the other.
 */
#include "os/witness.h"

#include "os/pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS	 25
#define PAUSE_NS 2000000

/* Not to be found by the program's name (pkill -f): a signal that is meant for that is for that alone. */
static void take_name_away(void)
{
	char *name = program_invocation_name;

	if (name)
		memset(name, '-', strlen(name));
	prctl(PR_SET_NAME, "signal-witness");
}

static void watch(pid_t parent, const sigset_t *all)
{
	sigprocmask(SIG_SETMASK, all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	take_name_away();
	syscall(SYS_close_range, 0u, ~0u, 0u);
	for (;;)
		pause();
}

int witness__start(struct witness *witness)
{
	pid_t parent = getpid(), pid;
	sigset_t all, old;

	/*
	 * Beside a command that is the first of a pid namespace: its end would wait for us to reap the
	 * witness.
	 */
	if (pidns__is_other_for_children())
		return -ENOTSUP;
	/* fork() itself is not for signal handlers. Stops are left to it, as to the others of a job. */
	sigfillset(&all);
	sigdelset(&all, SIGTSTP);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid)
		watch(parent, &all);
	witness->pid = pid > 0 ? pid : 0;
	pid = pid < 0 ? -errno : 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

/* The line "ShdPnd:\t0000000000004002" of its status: bit 0 is signal 1. */
static bool is_pending(pid_t pid, int signal)
{
	char path[32], text[4096];
	const char *line;
	ssize_t len;
	int fd;
	uint64_t set = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	line = strstr(text, "\nShdPnd:\t");
	for (line = line ? line + 9 : ""; (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
	     line++)
		set = set << 4 | (*line <= '9' ? *line - '0' : *line - 'a' + 10);
	return set >> (signal - 1) & 1;
}

bool witness__saw(struct witness *witness, int signal)
{
	bool saw = false;

	for (int i = 0; i < LOOKS && witness->pid && !saw; i++) {
		if (i)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
		saw = is_pending(witness->pid, signal);
	}
	if (saw)
		witness__renew(witness);
	return saw;
}

void witness__renew(struct witness *witness)
{
	if (!witness->pid)
		return;
	witness__stop(witness);
	witness__start(witness);
}

void witness__stop(struct witness *witness)
{
	if (!witness->pid)
		return;
	kill(witness->pid, SIGKILL);
	while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
		;
	witness->pid = 0;
}
