# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gens.py [drivers|yields]: generators, whose frames live outside the data stack.

Right profile of drivers (the default): <module>;light;g about 25 % and <module>;heavy;g about 75 % of g's time, and
never light and heavy in one stack.
Right profile of yields: only prefixes of <module>;c;b;a, from any sample of a very fast yield and resume.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def g():
    while True:
        n = yield
        sum(range(n))


def light():
    it.send(20000)


def heavy():
    it.send(60000)


def a():
    for i in range(10**12):
        yield i


def b():
    yield from a()


def c():
    yield from b()


it = g()
next(it)
print("ready", flush=True)
if sys.argv[1:] == ["yields"]:
    for _ in c():
        pass
while True:
    light()
    heavy()
