# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""storm.py [SECONDS] [RATE]: a worker that is always busy, and beside it (3 s later, for SECONDS, default 20) RATE
processes a second (default 100) that are forked and end at once, every other one after an exec. Prints "quiet" when that
is over. On TERM it ends, and the worker prints "used CPU-SECONDS" since the start.

Right profile: `steady` with all of the CPU time that it used.
"""
import os
import signal
import sys
import time

limit = int(os.environ.get("PBP_LIMIT", "120"))
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
rate = float(sys.argv[2]) if len(sys.argv) > 2 else 100


def steady(parent):
    signal.alarm(limit)
    start = time.process_time()
    while os.getppid() == parent:
        sum(range(20000))
    print("used %.6f" % (time.process_time() - start), flush=True)
    os._exit(0)


signal.alarm(limit)
parent = os.getpid()
if os.fork() == 0:
    steady(parent)
print("ready", flush=True)
time.sleep(3)
start = time.monotonic()
for i in range(int(seconds * rate)):
    pid = os.fork()
    if pid == 0:
        if i % 2:
            os.execv("/bin/true", ["true"])
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(max(0, start + (i + 1) / rate - time.monotonic()))
print("quiet", flush=True)
while True:
    signal.pause()
