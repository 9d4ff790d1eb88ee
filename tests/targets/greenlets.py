# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two greenlets that switch to each other, one from a deep stack, doing one and two units of work at a time. Prints "absent"
where there is no greenlet module.

Right profile: first;first_turn and second, then down ten times, then second_turn, with work at their ends: 1/3 and 2/3. As
for Python itself, a greenlet's stack begins with its own function: those who started it are not among its callers.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
try:
    from greenlet import greenlet
except ImportError:
    greenlet = None


def work():
    sum(range(20000))


def first_turn():
    while True:
        work()
        two.switch()


def first():
    first_turn()


def second_turn():
    while True:
        work()
        work()
        one.switch()


def down(n):
    if n:
        down(n - 1)
    else:
        second_turn()


def second():
    down(9)


def main():
    one.switch()


if greenlet:
    one, two = greenlet(first), greenlet(second)
    print("ready", flush=True)
    main()
print("absent")
print("ready", flush=True)
