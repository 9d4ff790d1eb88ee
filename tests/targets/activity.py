# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What threads can be at: the main thread collects garbage, alone and with a finalizer that works, and handles
exceptions, also around a generator; three other threads, with names of all kinds, work now and then. One is renamed on
SIGUSR1.

To 3.14, with a GIL, they pause while the finalizer runs: one that got the GIL then would look as if it collected.

Right profile: <module>;run and then collect with [GC] at its leaf; drop, with [GC] between it and Garbage.__del__ from
3.15 on, and at the leaf before; handle;handled and handle_around;generated while an exception is being handled; outside.
The others: Thread.run;spin, without [GC] or an exception.
"""
import gc
import os
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
gc.disable()
tells_who = sys.version_info >= (3, 15) or not getattr(sys, "_is_gil_enabled", lambda: True)()
dropping = False
keep = [[i] for i in range(60000)]


class Garbage:
    def __init__(self):
        self.me = self

    def __del__(self):
        finalize()


def finalize():
    sum(range(60000))


def collect():
    gc.collect()


def drop():
    global dropping
    dropping = not tells_who
    Garbage()
    gc.collect()
    dropping = False


def handled():
    sum(range(60000))


def handle():
    try:
        raise ValueError
    except ValueError:
        handled()


def generated():
    sum(range(60000))
    yield


def handle_around():
    try:
        raise ValueError
    except ValueError:
        for _ in generated():
            pass


def outside():
    sum(range(60000))


def run():
    while True:
        collect()
        drop()
        handle()
        handle_around()
        outside()


def spin():
    while True:
        if not dropping:
            sum(range(20000))
        time.sleep(0.003)


def rename(signum, frame):
    threads[2].name = "after"


threads = [threading.Thread(target=spin, name=name, daemon=True)
           for name in ("wörker;1 \x1b[31m\n", "long" * 2500, "before")]
for thread in threads:
    thread.start()
signal.signal(signal.SIGUSR1, rename)
print("ready", flush=True)
run()
