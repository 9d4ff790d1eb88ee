# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A loop that the JIT of 3.14 and 3.15 compiles (run it with PYTHON_JIT=1 and with 0).

Right profile: <module>;run;hot > 98 %, the same stacks with and without the JIT, lines within hot.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def hot(n):
    t = 0
    for i in range(n):
        t += i * i
        t ^= i
        t &= 0xffff
    return t


def run():
    while True:
        hot(10**5)


print("ready", flush=True)
run()
