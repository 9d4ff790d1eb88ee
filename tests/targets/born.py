# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""born.py [turns|worker] [MILLISECONDS]: threads that are started while the profile is taken.

turns (the default): the main thread and a new thread take turns, MILLISECONDS (default 3) of CPU time each. Right profile: job
and main_part about 50 % each, however short the threads live.
worker: after one second a thread is started that shares the GIL with the main thread. Right profile: worker and
main_part about 50 % each from then on.
"""
import os
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
mode = sys.argv[1] if len(sys.argv) > 1 else "turns"
seconds = float(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0.003


def burn(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        sum(range(100))


def job():
    burn(seconds)


def worker():
    while True:
        burn(seconds)


def main_part():
    burn(seconds)


print("ready", flush=True)
if mode == "worker":
    time.sleep(1)
    threading.Thread(target=worker, daemon=True).start()
while True:
    if mode == "turns":
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
    main_part()
