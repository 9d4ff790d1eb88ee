# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two functions, one after the other: early, and from SIGUSR1 on late. When that is so it prints "late SECONDS", the time.

Right profile: before that time all is early, after it all is late.
"""
import os
import signal
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
is_late = False


def turn(number, frame):
    global is_late
    is_late = True


def work():
    return sum(range(200))


def early():
    while not is_late:
        work()


def late():
    while True:
        work()


signal.signal(signal.SIGUSR1, turn)
print("ready", flush=True)
early()
print("late %.6f" % time.time(), flush=True)
late()
