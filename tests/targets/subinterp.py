# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""subinterp.py [idle|both|nested|late] [shared]: a thread runs inner() in a second interpreter; the main one sleeps or runs outer().

Right profile of idle (the default): inner at about 100 %. Of both: inner and outer, sharing one CPU where the
interpreters share a GIL. (Before 3.12 they do, and the main thread may starve.) Of nested, where the main thread
enters the second interpreter itself: <module>;enter;second;[interpreter 1];<module>;inner at about 100 %. Of late,
which is made when the profile has begun, too, from then on. From 3.12 on the second one has a GIL of its own, if not shared.
"""
import os
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
mode = sys.argv[1] if len(sys.argv) > 1 else "idle"

text = """
import time
def inner():
    n = 0
    while True:
        sum(range(200))
        n += 1
        if n % 2000 == 0:
            time.sleep(0.0001)
inner()
"""


def outer():
    while True:
        sum(range(200))


def create():
    if "shared" not in sys.argv or sys.version_info < (3, 12):
        return interpreters.create()
    return interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)


def second(first=""):
    interpreters.run_string(create(), first + text)


def enter(first):
    second(first)


if mode == "nested":
    enter('print("ready", flush=True)')
if mode == "late":
    print("ready", flush=True)
    time.sleep(0.7)
    enter("")
threading.Thread(target=second, daemon=True).start()
time.sleep(0.5)
print("ready", flush=True)
if mode == "both":
    outer()
time.sleep(1e6)
