# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Forks a child into a new pid namespace (root), where it is process 1 and its thread id is 1 to itself.

Prints "child PID", the pid outside. The child ends with its parent, which only waits.

Right profile of the child's pid: <module>;spin > 99 %, thread matched, one warning at most.
"""
import ctypes
import os
import signal
import time

limit = int(os.environ.get("PBP_LIMIT", "120"))
signal.alarm(limit)
CLONE_NEWPID = 0x20000000


def spin(end):
    while time.monotonic() < end:
        sum(range(20000))
    os._exit(0)


libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWPID) != 0:
    raise OSError(ctypes.get_errno(), "unshare")
pid = os.fork()
if pid == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: process 1 ignores an alarm
    spin(time.monotonic() + limit)
print("child %d" % pid, flush=True)
print("ready", flush=True)
os.wait()
