# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""crowd.py THREADS [BUSY]: that many threads asleep, one that is busy for some of its time (BUSY, 0.5), and the main one.

Right profile by the wall clock: <module>;start;wait the whole time of the main thread, Thread.run;doze that of each of the
THREADS, Thread.run;work that of one more, BUSY of it on the CPU if there is one for it.
"""
import os
import random
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
threading.stack_size(128 * 1024)
count = int(sys.argv[1])
busy = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
asleep = threading.Barrier(count + 2)


def doze():
    asleep.wait()
    time.sleep(1e6)


def work():
    asleep.wait()
    while True:
        length = random.uniform(0.002, 0.006)
        end = time.monotonic() + length * busy
        while time.monotonic() < end:
            pass
        time.sleep(length * (1 - busy))


def start():
    for _ in range(count):
        threading.Thread(target=doze, daemon=True).start()
    threading.Thread(target=work, daemon=True).start()
    asleep.wait()
    print("ready", flush=True)
    wait()


def wait():
    time.sleep(1e6)


start()
