# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fib.py [N] (default 22): plain recursion with quickly changing depth.

Right profile: <module> and 1 to N fib frames; the total of fib is near 100 % and no total or line is above 100 %.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
n = int(sys.argv[1]) if len(sys.argv) > 1 else 22


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print("ready", flush=True)
while True:
    fib(n)
