# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fixedwork.py [--frames N] [--iterations N] [--rounds N] [--threads N]: the same amount of work over and over.

Each round does ITERATIONS (default 5 million, some 0.3 s) steps at the bottom of a stack of FRAMES (default 35)
frames, and prints "round NUMBER CPU-SECONDS WALL-SECONDS". --threads adds that many sleeping threads. Comparing the
CPU seconds with and without a profiler gives the slow-down of a target.

Right profile: <module>;main, then descend until FRAMES frames with work at the end; work > 99 %.
"""
import argparse
import os
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


def work(iterations):
    x = 0
    for i in range(iterations):
        x += i & 7
    return x


def descend(n, iterations):
    if n:
        return descend(n - 1, iterations)
    return work(iterations)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=35)
    parser.add_argument("--iterations", type=int, default=5000000)
    parser.add_argument("--rounds", type=int, default=1 << 30)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    sys.setrecursionlimit(args.frames + 200)
    for _ in range(args.threads):
        threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
    work(100000)
    print("ready", flush=True)
    for number in range(args.rounds):
        wall, cpu = time.perf_counter(), time.thread_time()
        descend(args.frames - 4, args.iterations)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        print("round %d %.6f %.6f" % (number, cpu, wall), flush=True)


main()
