# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process that does nothing.

Right profile: no samples on the CPU, said in words; <module>;wait all of the time by the wall clock.
"""
import os
import signal
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def wait():
    time.sleep(1e6)  # WAIT


print("ready", flush=True)
wait()
