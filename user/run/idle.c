/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See idle.h.
 */
#include "run/idle.h"

#include "base/util.h"

#include <ctype.h>
#include <string.h>

/*
 * A function without its qualification, the end of its file's name, and how many others may lie between it
 * and the wait: those of WITH only, that is, not what it calls when there is work.
 */
static const struct {
	const char *function, *file;
	size_t below;
	enum idle idle;
} PLACES[] = {
	{"_worker", "/concurrent/futures/thread.py", 0, IDLE_ALWAYS},
	{"wait_result_broken_or_wakeup", "/concurrent/futures/process.py", 2, IDLE_ALWAYS},
	{"_queue_management_worker", "/concurrent/futures/process.py", 2, IDLE_ALWAYS}, /* to 3.8 */
	{"get", "/queue.py", 1, IDLE_ALWAYS},
	{"get", "/multiprocessing/queues.py", 3, IDLE_ALWAYS},
	{"_feed", "/multiprocessing/queues.py", 1, IDLE_ALWAYS},
	{"_handle_workers", "/multiprocessing/pool.py", 4, IDLE_ALWAYS},
	{"_handle_tasks", "/multiprocessing/pool.py", 4, IDLE_ALWAYS},
	{"_handle_results", "/multiprocessing/pool.py", 4, IDLE_ALWAYS},
	{"worker", "/multiprocessing/pool.py", 0, IDLE_IF_LOCK}, /* of a ThreadPool */
	{"serve_forever", "/multiprocessing/managers.py", 2, IDLE_ALWAYS},
	{"serve_client", "/multiprocessing/managers.py", 3, IDLE_ALWAYS},
	{"main", "/multiprocessing/forkserver.py", 1, IDLE_ALWAYS},
	{"main", "/multiprocessing/resource_tracker.py", 0, IDLE_ALWAYS},
	{"_run_once", "/asyncio/base_events.py", 2, IDLE_ALWAYS},
	{"run", "/asyncio/runners.py", 0, IDLE_ALWAYS}, /* loops that are not written in Python */
	{"serve_forever", "/socketserver.py", 1, IDLE_ALWAYS},
	{"handle_request", "/socketserver.py", 1, IDLE_ALWAYS},
	{"accept", "/socket.py", 0, IDLE_ALWAYS},
	{"poll", "/asyncore.py", 0, IDLE_ALWAYS},
	{"poll2", "/asyncore.py", 0, IDLE_ALWAYS},
	{"run", "/gevent/hub.py", 0, IDLE_ALWAYS},
	{"do_poll", "/eventlet/hubs/poll.py", 0, IDLE_ALWAYS},
	{"get_events", "/trio/_core/_io_epoll.py", 0, IDLE_ALWAYS},
	{"doPoll", "/twisted/internet/epollreactor.py", 0, IDLE_ALWAYS},
	{"poll", "/waitress/wasyncore.py", 0, IDLE_ALWAYS},
	{"poll2", "/waitress/wasyncore.py", 0, IDLE_ALWAYS},
	{"handler_thread", "/waitress/task.py", 1, IDLE_ALWAYS},
	{"wait", "/gunicorn/workers/sync.py", 0, IDLE_ALWAYS},
	{"run", "/gunicorn/workers/gthread.py", 1, IDLE_ALWAYS},
	{"sleep", "/gunicorn/arbiter.py", 0, IDLE_ALWAYS},
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
	       (end - start > 6 && !memcmp(start, "python", 6) && isdigit((unsigned char)start[6]));
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

enum idle idle__of(const struct strtab *strings, const struct idle_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t place = 0; place < ARRAY_SIZE(PLACES); place++)
			if (i <= PLACES[place].below && is_at(strings, &frames[i], place))
				return PLACES[place].idle;
		if (!is_waited_with(strings, &frames[i]))
			return IDLE_NOT;
	}
	return IDLE_NOT;
}

bool idle__is(enum idle idle, enum wait_reason reason)
{
	return (idle != IDLE_NOT && reason == WAIT_LOCK) ||
	       (idle == IDLE_ALWAYS && (reason == WAIT_IO || reason == WAIT_SLEEP));
}
