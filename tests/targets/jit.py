# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A loop, a loop that calls a function, and a function that is called seldom (run it with PYTHON_JIT=1 and with 0).

Says "jit 1" if it runs with a JIT. Then hot, caller and what that calls are compiled by it, cold and run are not: run's
loop goes round a few times a second. Right profile: hot, caller and cold share the time; below helper, other
and key stands the line that calls them.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def hot(n):
    t = 0
    for i in range(n):
        t += i & 63
        t ^= i & 7
        t &= 0xff
    return t


def helper(x):
    x = x * 3 & 0xff
    x ^= 5
    x = x + 1 & 0xff
    x ^= 3
    return x


def other(x):
    x = x * 5 & 0xff
    x ^= 9
    return x


def key(x):
    x = x & 0xff
    x ^= 7
    return x


def caller(n):
    t = 0
    for i in range(n):
        t &= 0xff
        t ^= helper(i)  # CALLS helper
        t += 1
        t ^= other(i)  # CALLS other
        t &= 0xff
        t += max((1, 2), key=key)  # CALLS key
    return t


def cold(n):
    return sum(range(n))


def run():
    while True:
        hot(600000)
        caller(50000)
        cold(2000000)


jit = getattr(sys, "_jit", None)
print("jit", int(bool(jit) and jit.is_enabled()))
hot(50000)
caller(20000)
print("ready", flush=True)
run()
