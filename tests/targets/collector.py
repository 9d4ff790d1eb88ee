# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Work that is mostly garbage collection, beside a little that is not.

Right profile: <module>;collect > 80 %, told as garbage collection where the profiler shows that state; <module>;churn
for the rest.
"""
import gc
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
keep = [[i] for i in range(300000)]


def collect():
    gc.collect()


def churn():
    sum(range(20000))


print("ready", flush=True)
while True:
    collect()
    churn()
