# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""chains.py [DEPTH]: two call chains that take turns on the same frame memory, 3 to DEPTH (default 10) calls deep.

Right profile: x and y about 50 % each; no stack holds both; every stack is <module> and then one name repeated.
"""
import os
import random
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 10


def x(n):
    return x(n - 1) if n else sum(range(60))


def y(n):
    return y(n - 1) if n else sum(range(60))


print("ready", flush=True)
while True:
    (x if random.random() < 0.5 else y)(random.randint(3, depth) - 1)
