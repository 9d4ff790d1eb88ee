# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the blank lines must not mislead: nearly every sample is on the line marked HOT, on every version.

Right profile: <module>;h at the HOT line, not at the def line nor one or two beside it.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def h():
    x = 0

    while True:

        x += sum(range(5000))  # HOT


print("ready", flush=True)
h()
