/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See child.h.
 */
#include "child.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 80
#define MAX_FOLDERS  32

static struct child *children[MAX_CHILDREN];
static struct child_config configs[MAX_CHILDREN];
static size_t children_cnt;
static char *folders[MAX_FOLDERS];
static size_t folders_cnt;

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

void pause_for(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (seconds - (time_t)seconds) * 1e9};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

/* --- files --- */

char *read_text(const char *path)
{
	char *text = calloc(1, 1);
	size_t len = 0, size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : 1;

	while (got > 0) {
		size = size ? 2 * size : 1 << 14;
		text = realloc(text, size + 1);
		while ((got = read(fd, text + len, size - len)) > 0)
			len += got;
		if (len < size)
			break;
		got = 1;
	}
	text[len] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert(file, "cannot write %s: %s", path, strerror(errno));
	fputs(text, file);
	fclose(file);
}

void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat stat;
	ssize_t got = -1;

	if (in >= 0 && !fstat(in, &stat))
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, stat.st_mode & 0777);
	while (out >= 0 && (got = sendfile(out, in, NULL, 1 << 24)) > 0)
		;
	cr_assert(!got, "cannot copy %s to %s: %s", from, to, strerror(errno));
	close(in);
	close(out);
}

const char *scratch_folder(const char *root)
{
	char *path;

	cr_assert(folders_cnt < MAX_FOLDERS);
	if (asprintf(&path, "%s/tmp/pybpfprof-live-XXXXXX", root) < 0 || !mkdtemp(path))
		cr_assert_fail("cannot make a folder in %s/tmp: %s", root, strerror(errno));
	chmod(path, 0755); /* targets of other users read it */
	return folders[folders_cnt++] = path;
}

/* --- children --- */

static const char *output_folder(void)
{
	static const char *folder;

	return folder ?: (folder = scratch_folder(""));
}

static void become(const struct child *child, const struct child_config *config, pid_t parent)
{
	int in = open("/dev/null", O_RDONLY);
	int out = config->out_fd ?: open(config->out ?: child->out, O_WRONLY | O_CREAT, 0644);
	int err = open(child->err, O_WRONLY | O_CREAT, 0644);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	if (config->group)
		setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int signum = 1; signum < 32; signum++)
		signal(signum, SIG_DFL);
	for (size_t i = 0; i < ARRAY_SIZE(config->env) && config->env[i]; i++)
		putenv(strdup(config->env[i]));
	if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	closefrom(3);
	execvp(config->argv[0], (char *const *)config->argv);
	dprintf(2, "cannot start %s: %s\n", config->argv[0], strerror(errno));
	_exit(127);
}

struct child *child__start(const struct child_config *config)
{
	struct child *child = calloc(1, sizeof(*child));
	pid_t parent = getpid();

	cr_assert(children_cnt < MAX_CHILDREN, "too many children for one test");
	snprintf(child->out, sizeof(child->out), "%s/%zu.out", output_folder(), children_cnt);
	snprintf(child->err, sizeof(child->err), "%s/%zu.err", output_folder(), children_cnt);
	fflush(NULL);
	child->pid = fork();
	cr_assert(child->pid >= 0, "fork: %s", strerror(errno));
	if (!child->pid)
		become(child, config, parent);
	configs[children_cnt] = *config;
	children[children_cnt++] = child;
	return child;
}

bool child__wait(struct child *child, double seconds)
{
	double end = seconds_now() + seconds;
	struct pollfd poll_fd = {.fd = -1, .events = POLLIN};

	while (!child->over) {
		double left = end - seconds_now();

		if (waitpid(child->pid, &child->status, WNOHANG) == child->pid) {
			child->over = true;
			break;
		}
		if (left <= 0)
			break;
		if (poll_fd.fd < 0)
			poll_fd.fd = syscall(SYS_pidfd_open, child->pid, 0);
		poll(&poll_fd, 1, poll_fd.fd < 0 ? 5 : left * 1e3 + 1);
	}
	if (poll_fd.fd >= 0)
		close(poll_fd.fd);
	return child->over;
}

int child__code(const struct child *child)
{
	return WIFEXITED(child->status) ? WEXITSTATUS(child->status) : 128 + WTERMSIG(child->status);
}

const char *child__out(const struct child *child)
{
	return read_text(child->out);
}

const char *child__err(const struct child *child)
{
	return read_text(child->err);
}

const char *child__wait_line(struct child *child, const char *start, double seconds)
{
	double end = seconds_now() + seconds;

	for (;;) {
		bool over = child__wait(child, 0);
		char *text = read_text(child->out);

		for (char *line, *rest = text; (line = strsep(&rest, "\n")) && rest;)
			if (!strncmp(line, start, strlen(start)))
				return line + strlen(start);
		free(text);
		if (over || seconds_now() > end)
			return NULL;
		pause_for(0.005);
	}
}

bool child__wait_message(struct child *child, const char *text, double seconds)
{
	double end = seconds_now() + seconds;

	for (;;) {
		bool over = child__wait(child, 0);
		char *err = read_text(child->err);
		bool found = strstr(err, text);

		free(err);
		if (found || over || seconds_now() > end)
			return found;
		pause_for(0.005);
	}
}

char process_state(pid_t pid)
{
	char path[64], *text, *state;
	char found = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = read_text(path);
	state = strstr(text, "\nState:\t");
	if (state)
		found = state[8];
	free(text);
	return found;
}

/* How often it has given up its CPU of itself, 0 if it is gone. */
static unsigned long switches_of(pid_t pid)
{
	static const char NAME[] = "\nvoluntary_ctxt_switches:";
	char path[64], *text, *at;
	unsigned long count;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = read_text(path);
	at = strstr(text, NAME);
	count = at ? strtoul(at + strlen(NAME), NULL, 10) : 0;
	free(text);
	return count;
}

void await_quiet(pid_t pid)
{
	double end = seconds_now() + 10;
	unsigned long before, after = switches_of(pid);
	bool asleep;

	do {
		before = after;
		asleep = process_state(pid) == 'S';
		pause_for(0.1);
		after = switches_of(pid);
	} while ((!asleep || before != after) && seconds_now() < end);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	return remove(path) && errno != ENOENT;
}

void clean_up(void)
{
	for (size_t i = 0; i < children_cnt; i++) {
		if (configs[i].group)
			kill(-children[i]->pid, SIGKILL);
		if (!children[i]->over)
			kill(children[i]->pid, SIGKILL);
	}
	for (size_t i = 0; i < children_cnt; i++)
		child__wait(children[i], 5);
	for (size_t i = 0; i < folders_cnt; i++)
		nftw(folders[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	children_cnt = folders_cnt = 0;
}
