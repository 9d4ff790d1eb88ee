/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A handler notes a signal and wakes the loop. Signals are not blocked for a signalfd: a target can make a
 * read of its memory wait for as long as it likes (userfaultfd, FUSE), and only a signal that would end the
 * program ends such a wait. So the first one takes its handler away, and the second one kills.
 */
#include "run/signals.h"

#include "os/witness.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Static, since a handler has no argument to find it by. */
static struct {
	int wake_fd;
	volatile sig_atomic_t stop, snapshot;
	volatile sig_atomic_t command; /* pid */
	struct witness witness;	       /* with a command only */
} signals = {.wake_fd = -1};

static void note_signal(int signal)
{
	uint64_t one = 1;
	int saved = errno;

	if (signal == SIGUSR1)
		signals.snapshot = 1;
	else
		signals.stop = signal;
	if (write(signals.wake_fd, &one, sizeof(one)) < 0)
		signals.stop = signal; /* cannot be: the loop then sees it at its next turn */
	errno = saved;
}

/* One that came a second time meanwhile came to all, too, as far as anybody can tell. */
static void drop_pending(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	sigtimedwait(&set, NULL, &(struct timespec){0});
}

/*
 * Has it left our process group? As the leader of one of its own, which it is without us, it could not have.
 */
static bool has_left(void)
{
	pid_t group = getpgid(signals.command);

	return group > 0 && group != getpgrp();
}

/*
 * What a terminal sends, it sends to the command, too; so does who signals the whole process group, or
 * cgroup. The wait that this takes is for here, not for the loop, which a target may have brought to a halt.
 */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	bool of_terminal = info->si_code > 0, of_all = of_terminal;
	int saved = errno;

	if (signals.command && of_terminal)
		witness__renew(&signals.witness);
	else if (signals.command && (of_all = witness__saw(&signals.witness, signal)))
		drop_pending(signal);
	if (signals.command && (!of_all || has_left()))
		kill(signals.command, signal);
	errno = saved;
}

static void catch_for_command(void)
{
	static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
		sigaddset(&action.sa_mask, passed_on[i]);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
		sigaction(passed_on[i], &action, NULL);
}

static void catch_signal(int signal, int flags)
{
	struct sigaction action = {.sa_handler = note_signal, .sa_flags = flags};

	sigaction(signal, &action, NULL);
}

/*
 * nohup stays in force. An ignored INT does not: that is how shells start every background job of a script,
 * which is ended by it nevertheless, as other profilers are.
 */
static bool is_ignored(int signal)
{
	struct sigaction old;

	return !sigaction(signal, NULL, &old) && old.sa_handler == SIG_IGN;
}

int signals__open(pid_t command)
{
	signals.stop = signals.snapshot = 0;
	signals.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signals.wake_fd < 0)
		return -errno;
	catch_signal(SIGUSR1, SA_RESTART);
	signals.command = command;
	if (command) {
		witness__start(&signals.witness); /* without it, all is passed on that no terminal sent */
		catch_for_command();
		return signals.wake_fd;
	}
	catch_signal(SIGINT, SA_RESETHAND);
	catch_signal(SIGTERM, SA_RESETHAND);
	if (!is_ignored(SIGHUP))
		catch_signal(SIGHUP, SA_RESETHAND);
	return signals.wake_fd;
}

int signals__take(bool *snapshot)
{
	uint64_t count;

	if (read(signals.wake_fd, &count, sizeof(count)) < 0)
		count = 0; /* what was noted counts, not how often */
	*snapshot = signals.snapshot;
	signals.snapshot = 0;
	return signals.stop;
}

void signals__forget_command(void)
{
	signals.command = 0;
	witness__stop(&signals.witness);
}

void signals__close(void)
{
	if (signals.wake_fd >= 0)
		close(signals.wake_fd);
	signals.wake_fd = -1;
	signals.command = 0;
	witness__stop(&signals.witness);
}
