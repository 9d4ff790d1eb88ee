# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits in vfork for a child that never calls exec: the kernel lets it do nothing else (state D).

The child borrows its parent's memory and stack meanwhile, so the two are only fit to be looked at and killed.
No samples; a dump shows <module>;wait_in_vfork.
"""
import ctypes
import os
import signal
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def wait_in_vfork():
    if ctypes.CDLL(None).vfork() == 0:
        print("ready", flush=True)
        time.sleep(1000)


wait_in_vfork()
