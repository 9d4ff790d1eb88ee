# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""instep.py [FUNCTION...]: works in step with the kernel's tick.

between: from just after a tick until well before the next one. across: from before a tick until after it, nearly as
long. Without names both, in turn. On SIGTERM or SIGINT "used BETWEEN ACROSS" is printed: seconds by the thread's own CPU
clock, and "met BETWEEN ACROSS": how often a tick came while each ran; both since the last SIGUSR1, or the start.

Right profile: shares as `used`. One that is sampled at the tick has them as `met`: next to nothing of between.
"""
import os
import signal
import sys
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
TICK = int(time.clock_getres(6) * 1e9 + 0.5)  # CLOCK_MONOTONIC_COARSE
going = True


def stop(signum, frame):
    global going
    going = False


def forget(signum, frame):
    for name in TIMES:
        used[name] = met[name] = 0


def between(end):
    while time.monotonic_ns() < end:
        pass


def across(end):
    while time.monotonic_ns() < end:
        pass


# Begin and end, in hundredths of a tick.
TIMES = {"between": (between, 10, 55), "across": (across, 75, 115)}


def sleep_until(time_ns):
    left = time_ns - time.monotonic_ns()
    if left > 0:
        time.sleep(left / 1e9)


def work(name):
    function, first, last = TIMES[name]
    start = (time.monotonic_ns() // TICK + 1) * TICK
    sleep_until(start + TICK * first // 100)
    tick, cpu = time.monotonic_ns() // TICK, time.thread_time()
    function(start + TICK * last // 100)
    used[name] += time.thread_time() - cpu
    met[name] += time.monotonic_ns() // TICK != tick


def run(names):
    while going:
        for name in names:
            work(name)


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGUSR1, forget)
used = dict.fromkeys(TIMES, 0)
met = dict.fromkeys(TIMES, 0)
print("ready", flush=True)
run(sys.argv[1:] or list(TIMES))
print("used %.4f %.4f" % tuple(used.values()), "met %d %d" % tuple(met.values()), flush=True)
