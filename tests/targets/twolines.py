# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One function that is busy on two lines.

Right profile: by function one row, f, near 100 %; by line the two lines marked HOT, about 50 % each. In every format.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def f():
    while True:
        sum(range(900))  # HOT
        sum(range(900))  # HOT


print("ready", flush=True)
f()
