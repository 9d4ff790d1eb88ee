# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that stay where they are, in C code without the GIL, each below another kind of call.

Before "ready", Python's own view of them: a line "stack NAME:LINE;NAME:LINE;..." for each, outermost first.
Right profile: these stacks and hardly any other, with these lines, on every version.
"""
import functools
import hashlib
import os
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def crunch(*_):
    # One line, so that it is the same whenever it is looked at.
    while True: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2000000)  # noqa: E701


def several_lines():
    return max(
        1,

        crunch(
            "a call that begins on one line",
            "and ends on another",
        ),
        2,
    )


def generator():
    try:
        yield 1
        yield (
            crunch()
        )
    finally:
        pass


def through_generator():
    for _ in generator():
        pass


def through_c():
    sorted([3, 1, 2],
           key=lambda _:
           crunch())


class Box:
    @staticmethod
    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args):

            return function(*args)
        return wrapper

    def __enter__(self):
        return self

    def __exit__(self, *_):
        crunch()

    def method(self):
        with self:
            x = [i for i in range(3)]
            x.append(

                sum(x))


@Box.decorator
def recursive(n):
    if n:
        return recursive(
            n - 1)
    else:
        return {
            "a": 1,
            "b": crunch(),
        }


def text():
    exec("\n\n\ndef f():\n  return (1,\n    crunch())\n\nf()\n")


def begin(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


threads = [begin(f) for f in (several_lines, through_generator, through_c, Box().method, lambda: recursive(40), text)]


def stack_of(frame):
    names = []
    while frame:
        code = frame.f_code
        names.append("%s:%d" % (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    return ";".join(reversed(names))


def stacks():
    frames = sys._current_frames()
    return [stack_of(frames[thread.ident]) for thread in threads]


while not all("crunch" in stack for stack in stacks()):
    time.sleep(0.01)
for stack in stacks():
    print("stack " + stack)
print("ready", flush=True)
for thread in threads:
    thread.join()
