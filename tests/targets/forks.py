# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""forks.py [N] [SECONDS]: N (default 2) forked workers, N more after SECONDS (default: none); the parent only waits.

Prints "child PID" for each. A child ends with its parent.

Right profile: <module>;fork_one;child in every child, with equal shares, those forked after the start too.
"""
import os
import signal
import sys
import time

limit = int(os.environ.get("PBP_LIMIT", "120"))
signal.alarm(limit)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
later = float(sys.argv[2]) if len(sys.argv) > 2 else None


def child(parent):
    signal.alarm(limit)
    while os.getppid() == parent:
        sum(range(20000))
    os._exit(0)


def fork_one():
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        child(parent)
    print("child %d" % pid, flush=True)


for _ in range(count):
    fork_one()
print("ready", flush=True)
if later is not None:
    time.sleep(later)
    for _ in range(count):
        fork_one()
os.wait()
