# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Objects that are made all the time; the work is in their __init__, called by the interpreter through a shim.

Right profile: <module>;make;Box.__init__ > 98 %; no frame of the shim.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


class Box:
    def __init__(self, n):
        self.n = sum(range(n))


def make():
    for _ in range(100):
        Box(9000)


print("ready", flush=True)
while True:
    make()
