# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shares.py [SECONDS]: three functions with known shares of CPU time.

The work is dealt out in decks of ten equal slices, 7 for a, 2 for b, 1 for c, in random order and of 1 to 3 ms, so that
no timer can fall into step with it. The loops are the same bytecode. After SECONDS, or on SIGTERM or SIGINT, the shares
by the thread's own CPU clock are printed: "shares A B C" in percent.

Right profile: <module>;run;a 70 %, <module>;run;b 20 %, <module>;run;c 10 %, each within 3 points of the printed shares.
"""
import os
import random
import signal
import sys
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 1e9)


def stop(signum, frame):
    global end
    end = 0


def a(n):
    x = 0
    for i in range(n):
        x += i & 7


def b(n):
    x = 0
    for i in range(n):
        x += i & 7


def c(n):
    x = 0
    for i in range(n):
        x += i & 7


def rounds_per_ms():
    for f in (a, b, c):
        f(200000)  # let the interpreter specialise all three
    t = time.thread_time()
    a(200000)
    return 200000 / ((time.thread_time() - t) * 1e3)


def run():
    used = {a: 0, b: 0, c: 0}
    deck = [a] * 7 + [b] * 2 + [c]
    clock = time.thread_time_ns if hasattr(time, "thread_time_ns") else lambda: int(time.thread_time() * 1e9)
    while time.monotonic() < end:
        random.shuffle(deck)
        n = int(per_ms * random.uniform(1, 3))
        for f in deck:
            t = clock()
            f(n)
            used[f] += clock() - t
    return used


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
per_ms = rounds_per_ms()
print("ready", flush=True)
used = run()
total = sum(used.values()) or 1
print("shares %.2f %.2f %.2f" % tuple(100 * used[f] / total for f in (a, b, c)), flush=True)
