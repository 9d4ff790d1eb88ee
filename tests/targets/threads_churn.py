# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""threads_churn.py [long|empty|redblue|jobs]: threads that start and end all the time.

long (the default): the thread in long() keeps its full share of CPU while others come and go.
empty: threads that do nothing; the output parses, and momentarily empty stacks are counted, not invented.
redblue: one thread at a time, named red or blue after its function; name and stack agree in every sample.
jobs: every thread has a new name, job-N; the profiler's memory stays bounded.
"""
import itertools
import os
import signal
import sys
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
mode = sys.argv[1] if len(sys.argv) > 1 else "long"


def long():
    while True:
        sum(range(200))


def nothing():
    pass


def red():
    sum(range(30000))


def blue():
    sum(range(30000))


def job():
    sum(range(9000))


def run_one(target, name=None):
    try:
        thread = threading.Thread(target=target, name=name)
        thread.start()
        thread.join()
    except RuntimeError:  # no more threads at the moment
        pass


if mode == "long":
    threading.Thread(target=long, name="long").start()
print("ready", flush=True)
for i in itertools.count():
    if mode == "redblue":
        run_one(red, "red")
        run_one(blue, "blue")
    elif mode == "jobs":
        run_one(job, "job-%d" % i)
    else:
        run_one(nothing)
