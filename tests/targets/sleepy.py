# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sleepy.py [N] (default 3): N threads that sleep, poll or wait for a queue in turn; the main thread is busy.

Right profile: only <module>;busy on the CPU; by the wall clock every thread for the whole time.
"""
import os
import queue
import select
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def in_sleep():
    time.sleep(1e6)


def in_poll():
    select.epoll().poll(1e6)


def in_queue():
    queue.Queue().get()


def busy():
    while True:
        sum(range(200))


for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    threading.Thread(target=(in_sleep, in_poll, in_queue)[i % 3], daemon=True).start()
print("ready", flush=True)
busy()
