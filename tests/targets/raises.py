# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Half of the work is done inside an exception handler.

Right profile: <module>;run;in_handler and <module>;run;outside about 50 % each, the first told as handling an exception
where the profiler shows that state.
"""
import os
import signal

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def in_handler():
    sum(range(60000))


def outside():
    sum(range(60000))


def run():
    while True:
        try:
            raise ValueError
        except ValueError:
            in_handler()
        outside()


print("ready", flush=True)
run()
