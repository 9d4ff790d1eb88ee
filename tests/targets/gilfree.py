# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gilfree.py [THREADS] (default 3): hashes big blocks, for which the GIL is released.

Right profile: crunch takes all CPUs that the machine has (about 200 % on two), nearly all of it with the GIL free.
"""
import hashlib
import os
import signal
import sys
import threading

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
block = bytes(1 << 26)


def crunch():
    while True:
        hashlib.sha256(block)


threads = [threading.Thread(target=crunch) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
