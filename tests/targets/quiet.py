# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""quiet.py MODE: a process that stands still at an interesting place, so that two readers must see the same.

threads: named threads that wait in different ways, beside the main one.
generators, coroutines: a chain of five of them, the innermost waits.
recursion: 300 calls deep.
subinterp: a thread waits inside a second interpreter, the main thread in the first.
callbacks: Python called from C called from Python, three times.
init: inside __init__ of a class that was called often, which takes a helper frame.
gc: inside a finaliser that a garbage collection runs. weakref: inside a callback of one.
handling: inside an except block. raising: an exception is under way while a finally block runs.
generator_handling: the except block is a generator's, nested: inside an except block that one calls.
gil: one thread sleeps and keeps the GIL, two wait for it.
lambdas: comprehensions, lambdas, decorators, class bodies and exec.
native: beside the main thread one that runs no Python code.
"""
import asyncio
import ctypes
import functools
import gc
import os
import signal
import sys
import threading
import time
import weakref

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
sys.setrecursionlimit(10000)


def stand():
    print("ready", flush=True)
    time.sleep(1e6)


def threads():
    lock = threading.Lock()
    lock.acquire()
    event = threading.Event()
    for name, what in (("sleeper", lambda: time.sleep(1e6)), ("locked", lock.acquire), ("waiter", event.wait),
                       ("reader", lambda: os.read(os.pipe()[0], 1))):
        threading.Thread(target=what, name=name, daemon=True).start()
    time.sleep(0.5)
    stand()


def generators():
    def chain(n):
        if n:
            yield from chain(n - 1)
        else:
            stand()
            yield 1

    for _ in (value for value in chain(5)):
        pass


def coroutines():
    async def level(n):
        if n:
            return await level(n - 1)
        stand()

    asyncio.run(level(5))


def recursion(n=300):
    if n:
        recursion(n - 1)
    else:
        stand()


def subinterp():
    import _interpreters
    text = "def inner():\n    import time\n    time.sleep(1e6)\ninner()\n"
    threading.Thread(target=lambda: _interpreters.run_string(_interpreters.create(), text), daemon=True).start()
    time.sleep(0.7)
    stand()


def callbacks():
    def key(value):
        return functools.reduce(lambda a, b: list(map(lambda _: stand(), [1])), [0, value])

    sorted([3, 2, 1], key=key)


class Often:
    def __init__(self, when):
        if when:
            stand()


def init():
    for i in range(20000):
        Often(i == 19999)


class Finalised:
    def __del__(self):
        stand()


def gc_():
    gc.disable()
    one = Finalised()
    one.one = one
    del one
    gc.collect()


def weakref_():
    class Node:
        pass

    gc.disable()
    node = Node()
    node.node = node
    kept = weakref.ref(node, lambda _: stand())
    del node
    gc.collect()
    return kept


def handling():
    try:
        raise ValueError("caught")
    except ValueError:
        stand()


def raising():
    try:
        raise ValueError("under way")
    finally:
        stand()


def generator_handling():
    def chain():
        try:
            raise ValueError("caught in a generator")
        except ValueError:
            handling()
            yield

    next(chain())


def gil():
    def work():
        while True:
            sum(range(200))

    for name in ("first", "second"):
        threading.Thread(target=work, name=name, daemon=True).start()
    time.sleep(0.3)
    libc = ctypes.PyDLL(None)
    print("ready", flush=True)
    libc.sleep(1000000)


def lambdas():
    def deco(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)
        return wrapper

    @deco
    def decorated(value):
        class Body:
            field = [(lambda x: exec("stand()", {"stand": stand}))(item) for item in [value]]

        return Body

    decorated(1)


def native():
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, libc.sleep, ctypes.c_void_p(1000000))
    stand()


mode = sys.argv[1]
globals().get(mode + "_", globals().get(mode))()
