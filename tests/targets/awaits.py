# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""awaits.py [DEPTH] (default 900): a chain of awaits that deep, with the work at its end, started anew all the time.

Right profile: asyncio's own frames and main, then level up to DEPTH times in one piece; the walk is bounded.
"""
import asyncio
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
depth = int(sys.argv[1]) if len(sys.argv) > 1 else 900
sys.setrecursionlimit(depth + 1000)


async def level(n):
    if n > 1:
        await level(n - 1)
    else:
        for _ in range(50):
            sum(range(20000))
            await asyncio.sleep(0)


async def main():
    print("ready", flush=True)
    while True:
        await level(depth)


asyncio.run(main())
