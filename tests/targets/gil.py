# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gil.py [hold|burn|interpreters|world]: who has the GIL, and who waits for it.

Right profile of --mode gil:
hold (the default): hold [holds the GIL: sleep] for 50 of 60 ms, asleep in C code that does not release it; want, which
wants to run every 2 ms, waits for it as long, and all that is due to hold, asleep.
burn: left and right hold it in turns; each waits for the other, and holding and waiting are all of its time.
interpreters (3.12 and later): as hold; inner, in an interpreter with a GIL of its own, has nothing to do with that.
world (free-threaded): left and right are stopped by the main thread's gc.collect(), over and over.
"""
import ctypes
import gc
import os
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
mode = sys.argv[1] if len(sys.argv) > 1 else "hold"
usleep = ctypes.PyDLL(None).usleep

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


def hold():
    while True:
        usleep(50000)  # HOLD
        time.sleep(0.01)


def want():
    while True:
        time.sleep(0.002)


def left():
    while True:
        sum(range(200))


def right():
    while True:
        sum(range(200))


def second():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    interpreters.run_string(interpreters.create(), text)


def collect():
    kept = [[] for _ in range(200000)]
    while kept:
        gc.collect()


for function in (left, right) if mode in ("burn", "world") else (hold, want):
    threading.Thread(target=function, daemon=True).start()
if mode == "interpreters":
    threading.Thread(target=second, daemon=True).start()
    time.sleep(0.5)
print("ready", flush=True)
if mode == "world":
    collect()
time.sleep(1e6)
