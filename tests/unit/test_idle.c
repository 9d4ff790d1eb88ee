/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a wait is called, and which of them are for work.
 */
#include "os/wait.h"
#include "run/idle.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>

static struct strtab *strings;

static void start(void)
{
	cr_assert_eq(strtab__new(&strings), 0);
}

static void stop(void)
{
	strtab__free(strings);
}

TestSuite(idle, .init = start, .fini = stop);

static struct idle_frame frame(const char *function, const char *file)
{
	return (struct idle_frame){strtab__add(strings, function, strlen(function)),
				   strtab__add(strings, file, strlen(file))};
}

static bool waits_for_work(const struct idle_frame *frames, size_t count)
{
	return idle__of(strings, frames, count) == IDLE_ALWAYS;
}

Test(idle, waits_for_work)
{
	struct idle_frame pool[] = {frame("_worker", "/usr/lib/python3.13/concurrent/futures/thread.py")};
	struct idle_frame loop[] = {
		frame("EpollSelector.select", "/usr/lib/python3.13/selectors.py"),
		frame("BaseEventLoop._run_once", "/usr/lib/python3.13/asyncio/base_events.py")};
	struct idle_frame queue[] = {frame("Condition.wait", "/lib/python3.12/threading.py"),
				     frame("Queue.get", "/lib/python3.12/queue.py"),
				     frame("work", "/srv/app.py")};

	struct idle_frame manager[] = {
		frame("_PollLikeSelector.select", "/usr/lib/python3.13/selectors.py"),
		frame("wait", "/usr/lib/python3.13/multiprocessing/connection.py"),
		frame("_ExecutorManagerThread.wait_result_broken_or_wakeup",
		      "/usr/lib/python3.13/concurrent/futures/process.py"),
		frame("_ExecutorManagerThread.run", "/usr/lib/python3.13/concurrent/futures/process.py")};
	struct idle_frame feeder[] = {
		frame("Condition.wait", "/src/cpython/Lib/threading.py"),
		frame("Queue._feed", "/src/cpython/Lib/multiprocessing/queues.py")};
	struct idle_frame results[] = {
		frame("Connection._recv", "/usr/lib/python3.8/multiprocessing/connection.py"),
		frame("Connection._recv_bytes", "/usr/lib/python3.8/multiprocessing/connection.py"),
		frame("_ConnectionBase.recv", "/usr/lib/python3.8/multiprocessing/connection.py"),
		frame("Pool._handle_results", "/usr/lib/python3.8/multiprocessing/pool.py")};

	cr_expect(waits_for_work(pool, 1));
	cr_expect(waits_for_work(manager, 4));
	cr_expect(waits_for_work(feeder, 2));
	cr_expect(waits_for_work(results, 4));
	cr_expect(waits_for_work(loop, 2));
	cr_expect(waits_for_work(queue, 3));
}

/* The same names elsewhere, and what a pool's thread calls when it has work. */
Test(idle, is_kept_waiting)
{
	struct idle_frame other[] = {frame("_worker", "/srv/thread.py")};
	struct idle_frame works[] = {frame("load", "/srv/app.py"),
				     frame("_worker", "/usr/lib/python3.13/concurrent/futures/thread.py")};
	struct idle_frame names[] = {frame("get", "/srv/myqueue.py"), frame("budget", "/usr/lib/queue.py")};
	struct idle_frame own[] = {frame("Jobs.get", "/srv/python/queue.py")};
	struct idle_frame called[] = {
		frame("Handle._run", "/usr/lib/python3.13/asyncio/events.py"),
		frame("BaseEventLoop._run_once", "/usr/lib/python3.13/asyncio/base_events.py")};

	cr_expect_not(waits_for_work(other, 1));
	cr_expect_not(waits_for_work(works, 2));
	cr_expect_not(waits_for_work(names, 2));
	cr_expect_not(waits_for_work(works, 0));
	cr_expect_not(waits_for_work(own, 1), "a file of the program's own");
	cr_expect_not(waits_for_work(called, 2), "a function in C that the loop has called");
	cr_expect(idle__is(IDLE_ALWAYS, WAIT_LOCK) && idle__is(IDLE_ALWAYS, WAIT_IO) &&
		  idle__is(IDLE_ALWAYS, WAIT_SLEEP));
	cr_expect_not(idle__is(IDLE_ALWAYS, WAIT_GIL) || idle__is(IDLE_ALWAYS, WAIT_READY) ||
		      idle__is(IDLE_ALWAYS, WAIT_NONE) || idle__is(IDLE_NOT, WAIT_LOCK));
}

/* A ThreadPool's worker waits for its task in C, in the function that calls it. */
Test(idle, waits_for_a_lock)
{
	struct idle_frame worker[] = {frame("worker", "/usr/lib/python3.14/multiprocessing/pool.py"),
				      frame("Thread.run", "/usr/lib/python3.14/threading.py")};

	cr_expect_eq(idle__of(strings, worker, 2), IDLE_IF_LOCK);
	cr_expect(idle__is(IDLE_IF_LOCK, WAIT_LOCK));
	cr_expect_not(idle__is(IDLE_IF_LOCK, WAIT_SLEEP) || idle__is(IDLE_IF_LOCK, WAIT_IO));
}

static void expect_text(int64_t syscall, const char *want)
{
	enum wait_reason reason = wait_reason_of(syscall, 3);
	char text[64];

	wait_text(reason, wait_told(reason, syscall), text, sizeof(text));
	cr_expect_str_eq(text, want);
}

Test(wait, names)
{
	expect_text(SYS_clock_nanosleep, "[sleep]");
	expect_text(SYS_rt_sigtimedwait, "[sleep]");
	expect_text(SYS_futex, "[lock]");
	expect_text(SYS_flock, "[lock]");
	expect_text(SYS_fcntl, "[lock]");
	expect_text(SYS_pselect6, "[I/O: pselect6]");
	cr_expect_eq(wait_reason_of(SYS_pselect6, 0), WAIT_SLEEP);
	cr_expect_eq(wait_reason_of(SYS_select, 0), WAIT_SLEEP);
	expect_text(SYS_epoll_wait, "[I/O: epoll_wait]");
	expect_text(SYS_preadv2, "[I/O: preadv2]");
	expect_text(SYS_wait4, "[child process]");
	expect_text(SYS_vfork, "[child process]");
	expect_text(SYS_madvise, "[system call: madvise]");
	expect_text(1000, "[system call: 1000]");
	expect_text(100000, "[system call: unknown]");
	cr_expect_eq(wait_told(WAIT_OTHER, 100000), wait_told(WAIT_OTHER, 1 << 30),
		     "no more frames than calls");
	cr_expect_eq(wait_told(WAIT_SLEEP, SYS_nanosleep), 0);
	expect_text(-1, "[in the kernel]");
	expect_text(-2, "[off the CPU]");
}
