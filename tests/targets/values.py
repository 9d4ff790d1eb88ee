# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""values.py: a thread waits below a generator that has variables of all kinds."""
import collections
import enum
import os
import signal
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


class Color(enum.IntEnum):
    RED = 1


class Text(str):
    pass


class Plain:
    def __init__(self):
        self.x = 1


class Items(list):
    pass


def gen(first, *rest, key=3, **more):
    in_cell = [first]
    big = 10**60
    huge = 1 << 4000
    minus = -(1 << 70)
    zero = 0
    small = 255
    pi = 3.14159
    tiny = 5e-324
    infinite = -float("inf")
    one = 1.0
    text = "caf\u00e9 \U0001f680 \x1b[31m 'q' \\ \u202e \ud800\n"
    wide = "\u6f22\u5b57"
    long = "x" * 1000
    raw = b"\x00\xff'abc"
    nothing = None
    yes = True
    no = False
    dots = ...
    single = (1,)
    nested = (1, (2, (3, (4, 5))))
    many = list(range(100))
    empty = []
    itself = [1]
    itself.append(itself)
    table = {"a": 1, 2: [3], None: {}}
    frozen = frozenset([1])
    letters = {"s"}
    none_in = set()
    ordered = collections.OrderedDict(a=1)
    color = Color.RED
    inherited = Text("sub")
    plain = Plain()
    items = Items([1])
    cls = Plain
    builtin = int
    attributes = Plain().__dict__
    gone = 1
    del gone

    def waiter():
        from_outside = in_cell
        threading.Event().wait()

    yield 1
    waiter()


def run():
    for _ in gen(1, 2, 3, key=4, other=5):
        pass


threading.Thread(target=run, name="\u0438\u043c\u044f of a thread \x1b[0m", daemon=True).start()
time.sleep(0.5)
print("ready", flush=True)
time.sleep(1e6)
