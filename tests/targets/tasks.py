# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tasks.py [gather|thread]: asyncio.

gather (the default): two tasks take turns; asyncio's own frames, then mid;leaf in one task and leaf in the other, about
50 % each; no frame twice in one stack.
thread: work handed to a thread pool all the time; the profiler can attach at any moment.
"""
import asyncio
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))


async def leaf():
    while True:
        sum(range(9000))
        await asyncio.sleep(0)


async def mid():
    await leaf()


async def main():
    print("ready", flush=True)
    if sys.argv[1:] == ["thread"]:
        loop = asyncio.get_running_loop()
        while True:
            await loop.run_in_executor(None, sum, range(100))
    await asyncio.gather(mid(), leaf())


asyncio.run(main())
