# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""deepends.py [DEPTH] (default 700): two callers take turns; what tells them apart is at both ends of a deep stack.

Right profile: <module>;A, then f DEPTH times, then tagA in part of the stacks, and <module>;B, f, tagB: about 50 % each.
No stack holds A and tagB, or B and tagA: then the two ends are of different moments.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 700
sys.setrecursionlimit(depth + 200)


def tagA():
    sum(range(900))


def tagB():
    sum(range(900))


def f(n, leaf):
    if n > 1:
        f(n - 1, leaf)
    else:
        leaf()


def A():
    f(depth, tagA)


def B():
    f(depth, tagB)


print("ready", flush=True)
while True:
    A()
    B()
