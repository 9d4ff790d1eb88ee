# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""churn.py [THREADS] (default 8): short calls in many threads, the hardest stacks to read from outside.

Right profile: loop, then churn 0 to 8 times, after threading's three bootstrap frames; no other function of this file;
no crash of the profiler at 10 kHz.
"""
import os
import signal
import sys
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def churn(d):
    return churn(d - 1) if d else 0


def loop():
    while True:
        churn(7)


threads = [threading.Thread(target=loop) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 8)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
