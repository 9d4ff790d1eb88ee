# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Python process with two children that are no Python: one asleep, one busy. They end with it.

Right profile: <module>;busy of the Python process; the others skipped and counted, nothing aborted.
"""
import os
import signal
import subprocess

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def busy():
    while True:
        sum(range(200))


alive = "kill -0 %d 2>/dev/null" % os.getpid()
children = [subprocess.Popen(["sh", "-c", "while %s; do sleep 1; done" % alive]),
            subprocess.Popen(["sh", "-c", "while %s; do :; done" % alive])]
print("ready", flush=True)
busy()
