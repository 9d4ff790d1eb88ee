/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See idle.h.
 */
#include "run/idle.h"

#include "base/util.h"

#include <ctype.h>
#include <string.h>

/*
 * A function without its qualification, the end of its file's name, and how many others may lie between it and the
 * wait: those of WITH only, that is, not what it calls when there is work.
 */
static const struct {
	const char *function, *file;
	size_t below;
} PLACES[] = {
	{"_worker", "/concurrent/futures/thread.py", 0},
	{"wait_result_broken_or_wakeup", "/concurrent/futures/process.py", 2},
	{"_queue_management_worker", "/concurrent/futures/process.py", 2}, /* to 3.8 */
	{"get", "/queue.py", 1},
	{"get", "/multiprocessing/queues.py", 3},
	{"_feed", "/multiprocessing/queues.py", 1},
	{"_handle_workers", "/multiprocessing/pool.py", 4},
	{"_handle_tasks", "/multiprocessing/pool.py", 4},
	{"_handle_results", "/multiprocessing/pool.py", 4},
	{"serve_forever", "/multiprocessing/managers.py", 2},
	{"_run_once", "/asyncio/base_events.py", 2},
	{"run", "/asyncio/runners.py", 0}, /* loops that are not written in Python */
	{"serve_forever", "/socketserver.py", 1},
	{"handle_request", "/socketserver.py", 1},
	{"accept", "/socket.py", 0},
	{"poll", "/asyncore.py", 0},
	{"poll2", "/asyncore.py", 0},
	{"run", "/gevent/hub.py", 0},
	{"do_poll", "/eventlet/hubs/poll.py", 0},
	{"get_events", "/trio/_core/_io_epoll.py", 0},
	{"doPoll", "/twisted/internet/epollreactor.py", 0},
	{"poll", "/waitress/wasyncore.py", 0},
	{"poll2", "/waitress/wasyncore.py", 0},
	{"handler_thread", "/waitress/task.py", 1},
	{"wait", "/gunicorn/workers/sync.py", 0},
	{"run", "/gunicorn/workers/gthread.py", 1},
	{"sleep", "/gunicorn/arbiter.py", 0},
};

/* What is waited with. */
static const char *const WITH[] = {"/threading.py",
				   "/selectors.py",
				   "/queue.py",
				   "/multiprocessing/connection.py",
				   "/multiprocessing/pool.py",
				   "/multiprocessing/queues.py",
				   "/multiprocessing/synchronize.py"};

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && !memcmp(text + len - end_len, end, end_len);
}

/* ".../python3.14/queue.py": a file of that name may be anyone's. */
static bool is_of_library(const char *text, size_t len)
{
	const char *end = text + len, *start = end;

	while (start > text && start[-1] != '/')
		start--;
	return ends_with(start, end - start, "Lib") ||
	       (end - start > 7 && !memcmp(start, "python", 6) && isdigit((unsigned char)start[6]));
}

static bool is_file(const struct strtab *strings, const struct idle_frame *frame, const char *end)
{
	const char *file = strtab__get(strings, frame->file);
	size_t len = strtab__len(strings, frame->file);

	if (!ends_with(file, len, end))
		return false;
	return strrchr(end, '/') != end || is_of_library(file, len - strlen(end));
}

static bool is_at(const struct strtab *strings, const struct idle_frame *frame, size_t place)
{
	const char *name = strtab__get(strings, frame->function), *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, PLACES[place].function) &&
	       is_file(strings, frame, PLACES[place].file);
}

static bool is_waited_with(const struct strtab *strings, const struct idle_frame *frame)
{
	for (size_t i = 0; i < ARRAY_SIZE(WITH); i++)
		if (is_file(strings, frame, WITH[i]))
			return true;
	return false;
}

bool idle__is(const struct strtab *strings, const struct idle_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t place = 0; place < ARRAY_SIZE(PLACES); place++)
			if (i <= PLACES[place].below && is_at(strings, &frames[i], place))
				return true;
		if (!is_waited_with(strings, &frames[i]))
			return false;
	}
	return false;
}

bool idle__may_be(enum wait_reason reason)
{
	return reason == WAIT_LOCK || reason == WAIT_IO || reason == WAIT_SLEEP;
}
