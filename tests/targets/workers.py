# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that wait for work, and one that waits for something else.

A pool of two, a thread that takes from a queue, an event loop, and the main thread, which sleeps.

Right profile by the wall clock without idle ones: <module>;wait and nothing else; with them five times as much.
"""
import asyncio
import concurrent.futures
import os
import queue
import signal
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
things = queue.Queue()
pool = concurrent.futures.ThreadPoolExecutor(2)


def serve():
    loop = asyncio.new_event_loop()
    loop.call_soon(started.release)
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
time.sleep(0.1)
print("ready", flush=True)
wait()
