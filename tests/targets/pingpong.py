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


def take(turns, count):
    """CPU seconds of a round."""
    t = used()
    for _ in range(count):
        ask()
        work(turns)
    return (used() - t) / count


def pace(rate):
    """The turns that a round needs for that. A CPU that has been idle gets faster meanwhile, so it goes on for a second."""
    turns = 0
    end = time.monotonic() + 1
    while time.monotonic() < end:
        t = used()
        work(100000)
        turn = (used() - t) / 100000
        turns = max(0, turns + int((2 / rate - take(turns, 1000)) / turn / 2))
    return turns


def run(turns):
    while True:
        t, cpu = time.monotonic(), used()
        for _ in range(rounds):
            ask()
            work(turns)
        print("round %.6f %.6f" % (time.monotonic() - t, used() - cpu), flush=True)


turns = pace(rate) if rate else 0
print("ready", flush=True)
run(turns)
