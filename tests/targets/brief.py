# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""brief.py [UNITS] (default 300): a process that ends by itself after a moment; start many of these in a row.

Right profile: most samples resolved to <module>;brief while it lived, the rest accounted for as exited; no error storm.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
units = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def brief():
    for _ in range(units):
        sum(range(3000))


print("ready", flush=True)
brief()
