# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""callback.py [LEVELS] (default 50): Python called from C called from Python, so many times.

Right profile: <module>, then step and step.<locals>.<lambda> (<lambda> before 3.11) in turn down to LEVELS levels, in every
deep sample; no placeholder frames.
"""
import functools
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
levels = int(sys.argv[1]) if len(sys.argv) > 1 else 50


def step(n):
    return functools.reduce(lambda a, _: step(n - 1) if n else sum(range(300)), [0, 0])


print("ready", flush=True)
while True:
    step(levels)
