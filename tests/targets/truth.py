# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""truth.py [calls|threads]: what the matrix is about, in shares of CPU time that the program measures itself.

calls (the default): slices of 0.5 to 1.5 ms of all kinds of calls, dealt out in decks in random order, so that no timer
can fall into step with them.
threads: four threads that want the GIL, beside two that run no Python code: one that Python does not know, and one that it
has a thread state for.

On SIGTERM it says what is true by the threads' own clocks since the last SIGUSR1, and ends. calls: lines "truth TARGET PERCENT STACK", where a
part of the stack is NAME, NAME:LINE for that line only, or NAME*9 for one to nine of it. threads: "truth threads PERCENT
TID FUNCTION" for each of the four, in percent of them, and "truth native PERCENT TID -" for the others, in percent of all.

Right profile: these shares, on the stacks of calls and on the beginnings of them; nothing else.
"""
import ctypes
import hashlib
import mmap
import os
import random
import signal
import struct
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
block = memoryview(bytes(1 << 25))

# ---- shares: the same bytecode three times ----


def a(n):
    x = 0
    for i in range(n):
        x += i & 7


def b(n):
    x = 0
    for i in range(n):
        x += i & 7


def c(n):
    x = 0
    for i in range(n):
        x += i & 7


# ---- lines: blank ones must not mislead ----


def lines(n, second):
    x = 0

    if second:

        x += sum(range(n))  # SECOND

    else:

        x += sum(range(n))  # FIRST

    return x


# ---- recursion ----


def down(n):
    return down(n - 1) + down(n - 1) if n else sum(range(150))


def recursion(n):
    for _ in range(n):
        down(7)


# ---- generators: one of two drivers ----


def g():
    while True:
        sum(range((yield)))


def light(n):
    generator.send(n)


def heavy(n):
    generator.send(n)


generator = g()
next(generator)

# ---- C callbacks, and work with the GIL released ----


def key(v):
    return sum(range(300)) + v


def callbacks(n):
    sorted(range(n), key=key)


def released(n):
    hashlib.sha256(block[:n])


# ---- names ----


def café(n):
    sum(range(n))


def имя(n):
    sum(range(n))


def 漢字(n):
    sum(range(n))


def 𐐨(n):
    sum(range(n))


class Box:
    def go(self, n):
        sum(range(n))


def outer():
    def inner(n):
        sum(range(n))
    return inner


def name_of(function):
    code = function.__code__
    return getattr(code, "co_qualname", code.co_name)


def line_of(mark):
    with open(__file__, encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if line.endswith("  # %s\n" % mark)][0]


class Slice:
    def __init__(self, target, weight, function, *more, at="", below=""):
        self.function, self.more, self.weight, self.used = function, more, weight, 0
        self.target, self.stack = target, "<module>;run;" + name_of(function) + at + below
        self.per_ms = self.measure()

    def measure(self):
        n, used = 4, 0
        while used < 3e6:
            n *= 2
            start = time.thread_time_ns()
            self.function(n, *self.more)
            used = time.thread_time_ns() - start
        return n * 1e6 / used


def slices():
    return [
        Slice("shares", 7, a),
        Slice("shares", 2, b),
        Slice("shares", 1, c),
        Slice("lines", 1, lines, False, at=":%d" % line_of("FIRST")),
        Slice("lines", 2, lines, True, at=":%d" % line_of("SECOND")),
        Slice("recursion", 3, recursion, below=";down*8"),
        Slice("generators", 1, light, below=";g"),
        Slice("generators", 3, heavy, below=";g"),
        Slice("callbacks", 3, callbacks, below=";key"),
        Slice("released", 3, released),
    ] + [Slice("names", 1, function)
         for function in (café, имя, 漢字, 𐐨, Box().go, outer(), lambda n: sum(range(n)))]


stopped, again = False, False


def stop(signum, frame):
    global stopped
    stopped = True


def begin_again(signum, frame):
    global again
    again = True


def run(all_slices):
    global again
    deck = [piece for piece in all_slices for _ in range(piece.weight)]
    clock = time.thread_time_ns
    while not stopped:
        if again:
            again = False
            for piece in all_slices:
                piece.used = 0
        random.shuffle(deck)
        ms = random.uniform(0.5, 1.5)
        for piece in deck:
            start = clock()
            piece.function(int(ms * piece.per_ms) + 1, *piece.more)
            piece.used += clock() - start


def calls():
    all_slices = slices()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGUSR1, begin_again)
    return all_slices


# ---- threads ----


def one():
    while True:
        sum(range(200))


def two():
    while True:
        sum(range(200))


def three():
    while True:
        sum(range(200))


def four():
    while True:
        sum(range(200))


def native_code(*calls):
    """A thread's function: *argument = gettid(); the calls; a jump to itself."""
    text = b"\x50\xb8\xba\x00\x00\x00\x0f\x05\x89\x07"  # push, which aligns the stack; mov eax; syscall; mov [rdi], eax
    for function in calls:
        address = ctypes.cast(function, ctypes.c_void_p).value
        text += b"\x48\xb8" + struct.pack("<Q", address) + b"\xff\xd0"  # mov rax, address; call rax
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(text + b"\xeb\xfe")
    return code


def start_native(code):
    """A thread of that code: its pthread_t and its id."""
    thread, native_id = ctypes.c_ulong(), ctypes.c_int()
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if ctypes.CDLL(None).pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(address), ctypes.byref(native_id)):
        raise OSError("pthread_create")
    while not native_id.value:
        time.sleep(0.001)
    os.setpriority(os.PRIO_PROCESS, native_id.value, 10)  # the others take turns and are to get on
    return thread.value, native_id.value


def clocks(idents):
    return [time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in idents]


def threads():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
    sys.setswitchinterval(0.001)  # many turns, so that a little more of them makes no difference
    known = [threading.Thread(target=function, daemon=True) for function in (one, two, three, four)]
    codes = [native_code(), native_code(ctypes.pythonapi.PyGILState_Ensure, ctypes.pythonapi.PyEval_SaveThread)]
    natives = [start_native(code) for code in codes]
    for thread in known:
        thread.start()
    idents = [thread.ident for thread in known] + [ident for ident, _ in natives]
    start = clocks(idents)
    print("ready", flush=True)
    while signal.sigwait([signal.SIGTERM, signal.SIGUSR1]) == signal.SIGUSR1:
        start = clocks(idents)
    used = [now - then for now, then in zip(clocks(idents), start)]
    for thread, function, seconds in zip(known, (one, two, three, four), used):
        print("truth threads %.3f %d %s" % (100 * seconds / sum(used[:4]), thread.native_id, function.__name__))
    for (_, native_id), seconds in zip(natives, used[4:]):
        print("truth native %.3f %d -" % (100 * seconds / sum(used), native_id))
    print("end", flush=True)
    os._exit(0)


if sys.argv[1:] == ["threads"]:
    threads()
pieces = calls()
print("ready", flush=True)
run(pieces)
total = sum(piece.used for piece in pieces)
for piece in pieces:
    print("truth %s %.3f %s" % (piece.target, 100 * piece.used / total, piece.stack))
print("end", flush=True)
