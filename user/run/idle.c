/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See idle.h.
 */
#include "run/idle.h"

#include "base/util.h"

#include <string.h>

/* A function without its qualification, the end of its file's name, and how near to the innermost it has to
 * be. */
static const struct {
	const char *function, *file;
	size_t within;
} PLACES[] = {
	{"_worker", "/concurrent/futures/thread.py", 1},
	{"get", "/queue.py", 2},
	{"get", "/multiprocessing/queues.py", 4},
	{"_handle_workers", "/multiprocessing/pool.py", 5},
	{"_handle_tasks", "/multiprocessing/pool.py", 5},
	{"_handle_results", "/multiprocessing/pool.py", 5},
	{"_run_once", "/asyncio/base_events.py", 2},
	{"run", "/asyncio/runners.py", 1}, /* loops that are not written in Python */
	{"serve_forever", "/socketserver.py", 2},
	{"accept", "/socket.py", 1},
	{"run", "/gevent/hub.py", 1},
	{"get_events", "/trio/_core/_io_epoll.py", 1},
	{"doPoll", "/twisted/internet/epollreactor.py", 1},
	{"wait", "/gunicorn/workers/sync.py", 1},
	{"sleep", "/gunicorn/arbiter.py", 1},
};

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && !memcmp(text + len - end_len, end, end_len);
}

static bool is_at(const struct strtab *strings, const struct idle_frame *frame, size_t place)
{
	const char *name = strtab__get(strings, frame->function), *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, PLACES[place].function) &&
	       ends_with(strtab__get(strings, frame->file), strtab__len(strings, frame->file),
			 PLACES[place].file);
}

bool idle__is(const struct strtab *strings, const struct idle_frame *frames, size_t count)
{
	for (size_t place = 0; place < ARRAY_SIZE(PLACES); place++)
		for (size_t i = 0; i < count && i < PLACES[place].within; i++)
			if (is_at(strings, &frames[i], place))
				return true;
	return false;
}

bool idle__may_be(enum wait_reason reason)
{
	return reason == WAIT_LOCK || reason == WAIT_IO || reason == WAIT_SLEEP;
}
