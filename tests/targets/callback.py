# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""callback.py [sorted|reduce] [LEVELS]: Python called from C called from Python.

sorted (the default): <module>;outer;key, nothing blank, no placeholder frames.
reduce: <module>, then step and step.<locals>.<lambda> (<lambda> before 3.11) in turn down to LEVELS (default 50)
levels, in every deep sample.
"""
import functools
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
mode = sys.argv[1] if len(sys.argv) > 1 else "sorted"
levels = int(sys.argv[2]) if len(sys.argv) > 2 else 50


def key(v):
    return sum(range(300)) + v


def outer():
    while True:
        sorted([3, 2, 1], key=key)


def step(n):
    return functools.reduce(lambda a, _: step(n - 1) if n else sum(range(300)), [0, 0])


print("ready", flush=True)
if mode == "sorted":
    outer()
while True:
    step(levels)
