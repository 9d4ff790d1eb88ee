# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""deepends.py [DEPTH [WRAPPERS]] (default 700 and 0): two callers take turns; what tells them apart is at both ends of a deep stack.

Right profile: <module>;A, then f DEPTH times, then tagA in part of the stacks, and <module>;B, f, tagB: about 50 % each.
WRAPPERS different functions lie between <module> and A or B. No stack holds A and tagB, or B and tagA: then the two ends are of different moments.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 700
wrappers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
sys.setrecursionlimit(depth + wrappers + 200)


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


def wrap(number, inner):
    names = {"inner": inner}
    exec("def wrapper%d(): inner()" % number, names)
    return names["wrapper%d" % number]


def wrapped(function):
    for number in range(wrappers):
        function = wrap(number, function)
    return function


first, second = wrapped(A), wrapped(B)
print("ready", flush=True)
while True:
    first()
    second()
