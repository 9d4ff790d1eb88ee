# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""deepbeside.py [DEPTH]: a thread DEPTH (default 5000) calls deep beside three ordinary ones, all of them busy.

Right profile: four threads with about a quarter each; every stack of the deep one is whole: DEPTH times down, then leaf.
"""
import os
import signal
import sys
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
sys.setrecursionlimit(depth + 1000)
threading.stack_size(512 << 20)


def leaf():
    while True:
        sum(range(200))


def down(n):
    if n > 1:
        down(n - 1)
    else:
        leaf()


def ordinary():
    while True:
        sum(range(200))


threads = [threading.Thread(target=down, args=(depth,))]
threads[0].start()
threading.stack_size(0)
threads += [threading.Thread(target=ordinary) for _ in range(3)]
for thread in threads[1:]:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
