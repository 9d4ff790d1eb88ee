# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""execs.py [SECONDS] [PYTHON]: busy for SECONDS (default 2) or until SIGUSR1, then becomes another process image of PYTHON
(default: the same Python) by exec, with the same pid, prints "after" and is busy again.

Right profile: <module>;before until the exec, <module>;after from then on.
"""
import os
import signal
import sys
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(True))


def before(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not told:
        sum(range(2000))


def after():
    while True:
        sum(range(200))


if sys.argv[1:] == ["--after"]:
    print("after", flush=True)
    after()
print("ready", flush=True)
before(float(sys.argv[1]) if len(sys.argv) > 1 else 2)
python = sys.argv[2] if len(sys.argv) > 2 else sys.executable
os.execv(python, [python, os.path.abspath(__file__), "--after"])
