# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits of known length: 20 ms asleep, 10 ms for a lock, 10 ms in a poll, over and over.

Right profile off the CPU: <module>;run;nap [sleep] about 50 %, <module>;run;wait_lock [lock] (the time is spent in
acquire, which is C) about 25 %, <module>;run;wait_poll [I/O: epoll_wait] about 25 %; on the CPU next to nothing.
"""
import os
import select
import signal
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
lock = threading.Lock()
lock.acquire()
poll = select.epoll()


def nap():
    time.sleep(0.020)


def wait_lock():
    lock.acquire(timeout=0.010)


def wait_poll():
    poll.poll(0.010)


def run():
    while True:
        nap()
        wait_lock()
        wait_poll()


print("ready", flush=True)
run()
