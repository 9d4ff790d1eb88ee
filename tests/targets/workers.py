# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that wait for work, and one that waits for something else.

A pool of two, a pool of threads (one worker, three that serve it), a thread that takes from a queue, an event loop, and the main thread, which sleeps.
"busy": the event loop has called a function in C that blocks it.

Right profile by the wall clock without idle ones: <module>;wait and nothing else; with them nine times as much. "busy": and the loop's thread.
"""
import asyncio
import concurrent.futures
import multiprocessing.pool
import os
import queue
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
things = queue.Queue()
pool = concurrent.futures.ThreadPoolExecutor(2)


def serve():
    loop = asyncio.new_event_loop()
    loop.call_soon(started.release)
    if "busy" in sys.argv:
        loop.call_soon(time.sleep, 1e6)
    loop.run_forever()


def consume():
    started.release()
    while True:
        things.get()


def wait():
    time.sleep(1e6)


started = threading.Semaphore(0)
for f in (pool.submit(started.acquire), pool.submit(started.acquire)):
    started.release()
    f.result()
started = threading.Semaphore(0)
for target in (serve, consume):
    threading.Thread(target=target, daemon=True).start()
started.acquire()
started.acquire()
threads = multiprocessing.pool.ThreadPool(1)
threads.map(abs, range(3))
time.sleep(0.1)
print("ready", flush=True)
wait()
