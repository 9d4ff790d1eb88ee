# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pingpong.py [ROUNDS [RATE]]: two processes, each with one thread, that hand a byte to and fro through pipes as fast as they
can, or with as much work in between as makes about RATE switches a second where both run on one CPU.

Each round is two switches. After every ROUNDS (20000) of them "round SECONDS CPU-SECONDS" is printed, by the wall clock and
what both have used.

Right profile off the CPU of the first: <module>;run;ask [I/O: read] nearly all of the time, never a total larger than the
time of the run.
"""
import os
import signal
import sys
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
rate = int(sys.argv[2]) if len(sys.argv) > 2 else 0
there, back = os.pipe(), os.pipe()
other = os.fork()
if other == 0:
    os.close(there[1])
    os.close(back[0])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    while os.read(there[0], 1):
        os.write(back[1], b".")
    os._exit(0)
os.close(there[0])
os.close(back[1])


def ask():
    os.write(there[1], b".")
    os.read(back[0], 1)


def work(turns):
    for _ in range(turns):
        pass


def used():
    return time.process_time() + time.clock_gettime(~other << 3 | 2)  # clock_getcpuclockid(3)


def measure(f, count, *args):
    best = 1e9
    for _ in range(20):
        t = used()
        for _ in range(count):
            f(*args)
        best = min(best, (used() - t) / count)
    return best


def run(turns):
    while True:
        t, cpu = time.monotonic(), used()
        for _ in range(rounds):
            ask()
            work(turns)
        print("round %.6f %.6f" % (time.monotonic() - t, used() - cpu), flush=True)


turns = 0
if rate:
    turns = max(0, int((2 / rate - measure(ask, 1000)) / (measure(work, 10, 10000) / 10000)))
print("ready", flush=True)
run(turns)
