# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""names.py [hostile]: functions of all kinds of names, each with the same share of CPU time.

Right profile, 1/8 each, all as valid UTF-8: plain, café, имя, 漢字, 𐐨 (beyond the 16-bit plane), Box.go (go before
3.11), outer.<locals>.inner (inner), <lambda>; and with hostile instead a name with an emoji, one with a lone surrogate, one with a terminal
escape, one with a newline and a semicolon, one with HTML, an empty one and one of 5000 characters: nothing breaks the
output or the terminal.
"""
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def plain():
    sum(range(60000))


def café():
    sum(range(60000))


def имя():
    sum(range(60000))


def 漢字():
    sum(range(60000))


def 𐐨():
    sum(range(60000))


class Box:
    def go(self):
        sum(range(60000))


def outer():
    def inner():
        sum(range(60000))
    return inner


def renamed(name):
    def body():
        sum(range(60000))
    changed = {"co_name": name}
    if hasattr(body.__code__, "co_qualname"):
        changed["co_qualname"] = name
    body.__code__ = body.__code__.replace(**changed)
    return body


functions = [plain, café, имя, 漢字, 𐐨, Box().go, outer(), lambda: sum(range(60000))]
if sys.argv[1:] == ["hostile"]:
    functions = [renamed(name) for name in ("rocket\U0001f680", "lone\udcff", "red\x1b[31m\x07", "a;b\nc 7\t\x00d",
                                            "<script>alert('x')</script>&\"", "", "long" * 1250)]
print("ready", flush=True)
while True:
    for f in functions:
        f()
