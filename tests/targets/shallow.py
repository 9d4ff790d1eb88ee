# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Deep and shallow work in turn: what a deep stack left in memory must not show under a shallow one.

Right profile: <module> alone (the sum of the main loop, half of the time or more), and <module>;d repeated up to 41
times; the share of errors does not grow with time.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def d(n):
    return d(n - 1) if n else sum(range(3000))


print("ready", flush=True)
while True:
    d(40)
    sum(range(60000))
