# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One busy stack that never changes.

Right profile: <module>;outer;middle;spin in more than 99 % of samples, on the one line of spin's loop.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def spin():
    while True: sum(range(200))  # HOT


def middle():
    spin()


def outer():
    middle()


print("ready", flush=True)
outer()
