# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A loop, a loop that calls a function, and a function that is called seldom (run it with PYTHON_JIT=1 and with 0).

Says "jit 1" if it runs with a JIT. Then hot and caller are compiled by it, cold and run are not: their loops go round a
few times a second. Right profile: hot, caller;helper and cold have about a third each; below helper stands the line of
the call.
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


def caller(n):
    t = 0
    for i in range(n):
        t &= 0xff
        t ^= helper(i)  # CALL
        t += 1
    return t


def cold(n):
    return sum(range(n))  # COLD


def run():
    while True:
        hot(800000)
        caller(300000)
        cold(3000000)


jit = getattr(sys, "_jit", None)
print("jit", int(bool(jit) and jit.is_enabled()))
hot(100000)
caller(100000)
print("ready", flush=True)
run()
