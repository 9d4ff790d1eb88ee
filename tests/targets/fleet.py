# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fleet.py [N] [fork|exec] [MS]: N (default 200) workers, forked or (exec) each a Python of its own, that run for MS
milliseconds (default 2) of every 400, or without a pause (0). They end with their parent, which only waits.

Right profile: N processes with `work`, in equal shares.
"""
import os
import signal
import subprocess
import sys
import time

limit = int(os.environ.get("PBP_LIMIT", "120"))
signal.alarm(limit)


def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(200))


def worker(parent, seconds):
    while os.getppid() == parent:
        work(seconds or 0.1)
        if seconds:
            time.sleep(0.4 - seconds)
    os._exit(0)


if sys.argv[1:2] == ["--worker"]:
    parent, seconds, pipe = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    os.write(pipe, b".")
    os.close(pipe)
    worker(parent, seconds)

count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
how = sys.argv[2] if len(sys.argv) > 2 else "fork"
seconds = (float(sys.argv[3]) if len(sys.argv) > 3 else 2) / 1000
parent = os.getpid()
reader, writer = os.pipe()
for _ in range(count):
    if how == "exec":
        subprocess.Popen([sys.executable, os.path.abspath(__file__), "--worker", str(parent), str(seconds), str(writer)],
                         pass_fds=[writer])
    elif os.fork() == 0:
        os.write(writer, b".")
        worker(parent, seconds)
for _ in range(count):
    os.read(reader, 1)
print("ready", flush=True)
while True:
    signal.pause()
