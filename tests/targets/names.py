# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions of names that are hard to print, each with the same share of CPU time.

Right profile, 1/7 each, all as valid UTF-8: a name with an emoji, one with a lone surrogate, one with a terminal escape, one
with a newline and a semicolon, one with HTML, an empty one and one of 5000 characters: nothing breaks the output or the
terminal.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def renamed(name):
    def body():
        sum(range(60000))
    changed = {"co_name": name}
    if hasattr(body.__code__, "co_qualname"):
        changed["co_qualname"] = name
    body.__code__ = body.__code__.replace(**changed)
    return body


functions = [renamed(name) for name in ("rocket\U0001f680", "lone\udcff", "red\x1b[31m\x07", "a;b\nc 7\t\x00d",
                                        "<script>alert('x')</script>&\"", "", "long" * 1250)]
print("ready", flush=True)
while True:
    for f in functions:
        f()
