# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""deep.py [DEPTH] (default 2000): a thread spins at the end of DEPTH recursive calls; the stack does not change.

Right profile: threading's three bootstrap frames, then down DEPTH times, then leaf, at every sample. Beyond the
profiler's limit: a visible [truncated], and the leaf end kept.
"""
import os
import signal
import sys
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
sys.setrecursionlimit(depth + 200)


def leaf():
    print("ready", flush=True)
    while True:
        sum(range(200))


def down(n):
    if n > 1:
        return down(n - 1)
    return leaf()


threading.stack_size(512 << 20)
thread = threading.Thread(target=down, args=(depth,))
thread.start()
thread.join()
