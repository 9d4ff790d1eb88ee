# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""duty.py [PERCENT] (default 50): busy for PERCENT of the time, by its own CPU clock, asleep for the rest.

Right profile: <module>;run;busy at PERCENT of one CPU; two of these side by side compare as their percentages do.
"""
import os
import signal
import sys
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
share = (float(sys.argv[1]) if len(sys.argv) > 1 else 50) / 100


def busy(until):
    while time.thread_time() < until:
        sum(range(2000))


def run():
    start = time.monotonic()
    while True:
        busy((time.monotonic() - start) * share)
        time.sleep(0.01)


print("ready", flush=True)
run()
