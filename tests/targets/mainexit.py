# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mainexit.py: the main thread has exited (pthread_exit), two workers live on. To the kernel the process is a zombie.

Right profile: Thread.run;work;inner in all samples.
"""
import ctypes
import os
import signal
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def work():
    def inner():
        while True:
            sum(range(300))
    inner()


def tell():
    time.sleep(0.5)
    print("ready", flush=True)


for target in (work, work, tell):
    threading.Thread(target=target).start()
ctypes.CDLL(None).pthread_exit(None)
