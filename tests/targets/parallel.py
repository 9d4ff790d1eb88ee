# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""parallel.py: two threads, left and right, that do the same work; for a free-threaded Python.

Right profile: left and right about 50 % each. Without a GIL both run at once: about 200 % of a CPU where there are two.
"""
import os
import signal
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def work():
    total = 0
    for i in range(1000):
        total += i & 3
    return total


def left():
    while True:
        work()


def right():
    while True:
        work()


threads = [threading.Thread(target=left, name="left"), threading.Thread(target=right, name="right")]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
