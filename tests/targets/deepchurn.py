# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""deepchurn.py [DEPTH] (default 700): goes down DEPTH calls with wide frames and comes up again, for ever.

Frames lie in several chunks of the data stack, and the chunk boundaries are crossed at every round.

Right profile: <module>, then only f, at most DEPTH + 1 times, in one piece at every sample. The leaf takes part of the
time (the deepest stack is <module> and DEPTH + 1 f).
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 700
sys.setrecursionlimit(depth + 200)


def f(n, *a):
    return f(n - 1, *a) if n else sum(range(4000))


print("ready", flush=True)
while True:
    f(depth, *range(20))
