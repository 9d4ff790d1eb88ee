# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shapes.py [still]: threads that stay where they are, each below many kinds of calls and of lines.

By default each is busy in C code without the GIL; still: each waits for a lock.
Before "ready", Python's own view of them: a line "stack NAME:LINE;NAME:LINE;..." for each, outermost first.
Right profile: these stacks and hardly any other, with these lines, on every version; and so says dump.
"""
import ast
import functools
import hashlib
import os
import random
import signal
import sys
import threading
import time

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
lock = threading.Lock()
lock.acquire()
busy = functools.partial(hashlib.sha256, bytes(1 << 26))
stay = lock.acquire if sys.argv[1:] == ["still"] else busy


def crunch(*_):
    # One line, so that it is the same whenever it is looked at.
    while True: stay()  # noqa: E701


# ---- places: each calls what is inside of it ----


def several_lines(inside, *_):
    return max(
        1,

        inside(
            "a call that begins on one line",
            "and ends on another",
        ),
        2,
    )


def calls_in_calls(inside, *_):
    return max(
        abs(
            -1),
        min(
            3,
            *[4,
              inside(

              )],
            **{"default":
               5},
        ),
    )


def generator(inside, *_):
    def steps():
        try:
            yield 1
            yield (
                inside()
            )
        finally:
            pass

    for _ in steps():
        pass


def generators_in_a_row(inside, *_):
    def first():
        yield from (
            second()
        )

    def second():
        yield 0
        value = (yield
                 from (inside(x)
                       for x in [1]))
        return value

    return [x
            for x in first()]


def callback(inside, *_):
    sorted([3, 1, 2],
           key=lambda _:
           inside())


def lambdas(inside, *_):
    return (lambda x, y=(
            2): (
                x +
                (lambda:
                 inside() or 0)()))(1)


def comprehensions(inside, *_):
    return [
        {
            key: value
            for value in
            (1,
             inside())
        }
        for key in
        range(1)
    ]


def set_comprehension(inside, *_):
    return {x for x in range(3)
            if x == 1
            and
            inside()}


class Box:
    def __init__(self, inside=None):
        self.inside = inside

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return self.inside and self.inside()

    def __getattr__(self, name):
        return self.inside(
            name)

    def __add__(self, other):
        return self.inside()

    @property
    def value(self):

        return self.inside()


def with_block(inside, *_):
    with Box() as first, \
            Box() as second:
        assert first is not second
        with second:

            inside()


def end_of_with(inside, *_):
    with Box(), \
            Box(inside), \
            Box():
        x = [i for i in range(3)]
        x.append(

            sum(x))


def end_of_with_by_exception(inside, *_):
    with Box(
            inside):
        x = 1

        raise ValueError(
            x)


def operators(inside, *_):
    return (1,
            Box(inside)
            + 2)


def attributes(inside, *_):
    return (Box(inside)
            .value
            .there)


def missing_attribute(inside, *_):
    return Box(inside). \
        missing


def handlers(inside, *_):
    try:
        try:
            raise ValueError
        except ValueError:

            int(
                "x")
        else:
            pass
    except (KeyError,
            ValueError):
        x = 1
        try:
            x += inside()
        finally:
            x = 2


def finally_block(inside, *_):
    for _ in range(2):
        try:
            continue
        finally:
            if _:

                inside()


def finally_of_exception(inside, *_):
    try:

        raise ValueError
    finally:
        inside(
            1,
            2)


def conditions(inside, *_):
    x = 3
    if x == 1:
        return 1
    elif x == 2:
        return 2
    elif (x == 3
          and not
          inside()):
        return 3
    else:
        return 4


def loops(inside, *_):
    while (
            [] or
            not (inside())
    ):
        pass


def texts(inside, *_):
    return (f"some"
            f"{inside()}"
            f"more")


def slices(inside, *_):
    x = [1, 2, 3]
    x[
        0
    ], x[
        inside()
    ] = 1, 2


def decorated(inside, *_):
    @inside
    @functools.lru_cache(
        None)
    def function(a,
                 b=1):
        pass

    return function


def wrapper_of(inside, *_):
    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args):

            return function(*args)
        return wrapper

    @decorator
    def recursive(n):
        if n:
            return recursive(
                n - 1)
        else:
            return {
                "a": 1,
                "b": inside(),
            }

    recursive(8)


def defaults(inside, *_):
    def function(
            a=1,
            b=inside(),
            c=3):
        pass

    return function


def class_body(inside, *_):
    class Body(
            Box):
        x = 1

        y = [inside(),
             x]

    return Body


def coroutine(inside, *_):
    async def outer():
        async with AsyncBox():
            return await deeper(
                1)

    async def deeper(x):
        return (x,
                [inside() async for _ in numbers()])

    async def numbers():
        yield 1

    class AsyncBox:
        async def __aenter__(self):
            pass

        async def __aexit__(self, *_):
            pass

    outer().send(None)


# ---- places that are made: far apart, backwards, in any order ----


def made(text, name, **changed):
    names = {}
    exec(compile(text, name + ".py", "exec"), names)
    function = names[name]
    function.__code__ = function.__code__.replace(**changed) if changed else function.__code__
    return function


def in_any_order():
    """Statements whose lines have nothing to do with their order."""
    tree = ast.parse("def in_any_order(inside, *_):\n" + "    x = 1\n" * 40 + "    inside()\n" + "    x = 2\n" * 9)
    dice = random.Random(1)
    for statement in tree.body[0].body:
        line = dice.randint(2, 70000)
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line
    names = {}
    exec(compile(tree, "in_any_order.py", "exec"), names)
    return names["in_any_order"]


def text(inside, *_):
    exec("\n\n\ndef f():\n  return (1,\n    inside())\n\nf()\n", {"inside": inside})


made_places = [
    made("def long_body(inside, *_):\n" + "    x = 1\n" * 300 + "    inside()\n", "long_body"),
    made("def long_lines(inside, *_):\n" + "".join("    x = [%s]\n" % ("1, " * n) for n in range(90)) + "    inside()\n",
         "long_lines"),
    made("def far(inside, *_):\n    x = 1\n" + "\n" * 400 + "    inside()\n", "far"),
    made("def very_far(inside, *_):\n    x = 1\n" + "\n" * 40000 + "    inside()\n", "very_far"),
    made("def back(inside, *_):\n    x = 1\n    inside(\n" + "\n" * 100 + "    x)\n", "back"),
    made("def far_back(inside, *_):\n    x = 1\n    inside(x,\n" + "\n" * 700 + "    x)\n", "far_back"),
    made("def later(inside, *_):\n    x = 1\n\n    inside()\n", "later", co_firstlineno=1000000),
    made("def on_one_line(inside, *_): x = 1; inside(); x = 2\n", "on_one_line"),
    in_any_order(),
]
if sys.version_info >= (3, 10):
    made_places.append(made("def cases(inside, *_):\n    match [1, 2]:\n        case [1, x] if (\n            x == 2 and\n"
                            "            inside()):\n            return x\n", "cases"))
if sys.version_info >= (3, 11):
    made_places.append(made("def groups(inside, *_):\n    try:\n        raise ExceptionGroup('', [ValueError()])\n"
                            "    except* KeyError:\n        pass\n    except* ValueError:\n\n        inside()\n", "groups"))

# ---- threads ----


def chain(*places):
    return functools.reduce(lambda inside, place: functools.partial(place, inside), reversed(places), crunch)


def begin(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


written = [several_lines, calls_in_calls, generator, generators_in_a_row, callback, lambdas, comprehensions,
           set_comprehension, with_block, end_of_with, end_of_with_by_exception, operators, attributes, missing_attribute,
           handlers, finally_block, finally_of_exception, conditions, loops, texts, slices, decorated, wrapper_of, defaults,
           class_body, coroutine]
shuffled = written + made_places + [text]
random.Random(2).shuffle(shuffled)
threads = [begin(f) for f in (chain(*written[:9]), chain(*written[9:18]), chain(*written[18:]), chain(text, *made_places),
                              chain(*shuffled[:18]), chain(*shuffled[18:]))]


def stack_of(frame):
    names = []
    while frame:
        code = frame.f_code
        names.append("%s:%d" % (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    return ";".join(reversed(names))


def stacks():
    frames = sys._current_frames()
    return [stack_of(frames[thread.ident]) for thread in threads]


while not all("crunch" in stack for stack in stacks()):
    time.sleep(0.01)
time.sleep(0.1)
for stack in stacks():
    print("stack " + stack)
print("ready", flush=True)
for thread in threads:
    thread.join()
