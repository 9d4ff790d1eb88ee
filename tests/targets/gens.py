# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Generators, whose frames live outside the data stack.

Right profile: only prefixes of <module>;c;b;a, from any sample of a very fast yield and resume.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def a():
    for i in range(10**12):
        yield i


def b():
    yield from a()


def c():
    yield from b()


print("ready", flush=True)
for _ in c():
    pass
