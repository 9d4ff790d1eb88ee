# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A function whose line table is empty.

Right profile: <module>;f near 100 %, f without a line (before 3.10: with its first line), no error.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def f():  # FIRST
    while True:
        sum(range(200))


table = "co_linetable" if hasattr(f.__code__, "co_linetable") else "co_lnotab"
f.__code__ = f.__code__.replace(**{table: b""})
print("ready", flush=True)
f()
