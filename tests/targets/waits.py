# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""waits.py [ROUNDS] [SECONDS]: four ways to be off the CPU, each for SECONDS (0.2) in a function of its own, in turn.

After ROUNDS, or on SIGTERM, the time that each has taken by the target's own clock is printed:
"waits NAP LOCK POLL RECEIVE" in seconds.

Right profile off the CPU: <module>;run;nap [sleep], <module>;run;take [lock], <module>;run;watch [I/O: epoll_wait],
<module>;run;receive [I/O: recvfrom], each as long as is printed, with the time that it was ready to run before it did.
"""
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10**9
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.2
lock = threading.Lock()
lock.acquire()
poll = select.epoll()
reader, writer = socket.socketpair()
reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))


def stop(signum, frame):
    global rounds
    rounds = 0


def nap():
    time.sleep(seconds)  # NAP


def take():
    lock.acquire(timeout=seconds)  # TAKE


def watch():
    poll.poll(seconds)  # WATCH


def receive():
    try:
        reader.recv(1)  # RECEIVE
    except BlockingIOError:
        pass


def run():
    ways = (nap, take, watch, receive)
    taken = dict.fromkeys(ways, 0)
    done = 0
    while done < rounds:
        done += 1
        for way in ways:
            t = time.monotonic()
            way()
            taken[way] += time.monotonic() - t
    return [taken[way] for way in ways]


signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
print("waits %.6f %.6f %.6f %.6f" % tuple(run()), flush=True)
