# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gil.py [THREADS] (default 4): threads that all want the GIL; their names are worker-0, worker-1, ...

Right profile: spin in every thread with about equal shares, together about 100 % of one CPU; one holder at a time; the
other threads wait for the GIL.
"""
import os
import signal
import sys
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def spin():
    while True:
        sum(range(200))


threads = [threading.Thread(target=spin, name="worker-%d" % i)
           for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
