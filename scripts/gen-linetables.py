#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Print tests/unit/linetable_cases.h: line tables that real Pythons made, and the lines they read from them.

    scripts/gen-linetables.py python3.8 'chroot /srv/debian python3.15' ... > tests/unit/linetable_cases.h

Each argument is the command of one interpreter. It gets this file on its standard input (so nothing needs to be
installed where it runs), compiles the source below, and answers with its tables. The expected lines come from its
own co_lines() (3.10+) or dis.findlinestarts(); the long function is sampled to keep the header small.
"""
import sys

SOURCE = '''
import contextlib


def decorator(*args):
    return lambda function: function


@decorator(
    1,
    2,
)
@decorator()
def decorated(a,
              b=(1,
                 2)):
    return (a +
            b[0]

            * len(
                b))


def backwards(a, b):
    return decorator(
        a,

        b.append(
            1
        ),
    )(
        a
    )


def comprehensions(items):
    x = [
        i
        for i in items
        if i
    ]
    y = {k: v
         for k, v in x
         for _ in range(
             3)}
    return (z
            for z in y)


def protected(path):
    try:
        with contextlib.suppress(
            OSError
        ), open(path) as file:
            return file.read()
    except (
        ValueError,
        TypeError,
    ) as err:
        print(err)
    else:
        pass
    finally:
        print(
            path)
    while True:
        if path:
            break
        for _ in path:
            continue
    return None


lambdas = [lambda: 1, lambda x: (
    x,
    lambda: x)]


async def coroutine(awaitable):
    async with awaitable as a:
        async for b in a:
            await b
            yield (
                b)


class Class:
    """Text
    of two lines."""
    attribute: int = 1

    def method(self):
        def inner():
            nonlocal_value = self
            return nonlocal_value
        return inner

    def columns(self):
        return self.method().__class__.__name__.__class__.__name__.__class__.__name__.__class__.__name__.__class__.__name__.__class__.__name__ + (
            "")


def empty():
    """Only a docstring."""
'''

MATCH = '''

def matching(value):
    match value:
        case [
            1,
            x,
        ]:
            return x
        case {"a": y} if (
            y
        ):
            return y
        case _:
            pass
'''


def source():
    far = "\n\ndef far():\n    a = 1\n" + "\n" * 300 + "    b = (2 +\n" + "\n" * 200 + "         a)\n    return b\n"
    # One instruction range far longer than a single table entry can tell.
    wide = "\n\ndef wide(x):\n    y = [" + ", ".join(["x"] * 400) + "]\n    return y\n"
    long = "\n\ndef long():\n" + "    x = 0\n" * 1500 + "    return x\n"
    return SOURCE + (MATCH if sys.version_info >= (3, 10) else "") + far + wide + long


def code_objects(code):
    yield code
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            yield from code_objects(const)


def lines_by_offset(code):
    """The line (0 = none) of every even offset."""
    lines = [0] * (len(code.co_code) // 2)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for i in range(start // 2, end // 2):
                lines[i] = line or 0
        return lines
    import dis

    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for i in range(len(lines)):
        line = starts.get(2 * i, line)
        lines[i] = line
    return lines


def points_of(lines):
    """Both sides of every change of the line; if these are many, the first, the last and some between."""
    points = [(2 * i, line) for i, line in enumerate(lines)
              if i in (0, len(lines) - 1) or lines[i - 1] != line or lines[i + 1] != line]
    if len(points) > 400:
        points = points[:20] + points[20:-20:len(points) // 60] + points[-20:]
    return points


def dump():
    import json

    kind = ("LINETABLE_LNOTAB" if sys.version_info < (3, 10) else
            "LINETABLE_RANGES" if sys.version_info < (3, 11) else "LINETABLE_LOCATIONS")
    cases = []
    for code in code_objects(compile(source(), "cases.py", "exec")):
        table = code.co_lnotab if kind == "LINETABLE_LNOTAB" else code.co_linetable
        cases.append({
            "kind": kind,
            "name": code.co_name,
            "first_line": code.co_firstlineno,
            "table": table.hex(),
            "points": points_of(lines_by_offset(code)),
        })
    json.dump({"version": sys.version.split()[0], "cases": cases}, sys.stdout)


def answer_of(command):
    import json
    import shlex
    import subprocess

    with open(__file__, "rb") as script:
        result = subprocess.run(shlex.split(command) + ["-", "--dump"], stdin=script, stdout=subprocess.PIPE, check=True)
    return json.loads(result.stdout)


def merged(answers):
    """Cases that several versions share, once, with the names of those versions."""
    cases = {}
    for answer in answers:
        for case in answer["cases"]:
            key = (case["kind"], case["name"], case["first_line"], case["table"], str(case["points"]))
            versions = cases.setdefault(key, (case, []))[1]
            if answer["version"] not in versions:
                versions.append(answer["version"])
    return list(cases.values())


def wrapped(text, width=100):
    return [text[i:i + width] for i in range(0, len(text), width)]


def print_case(case, versions):
    print("\t{%s, \"%s %s\", %d," % (case["kind"], case["name"], " ".join(versions), case["first_line"]))
    print("\n".join('\t "%s"' % line for line in wrapped(case["table"]) or [""]) + ",")
    points = ", ".join("{%d, %d}" % tuple(point) for point in case["points"])
    import textwrap
    print("\n".join("\t " + line for line in textwrap.wrap("(const struct linetable_point[]){%s}, %d}," % (
        points, len(case["points"])), 104, break_on_hyphens=False)))


def main():
    import datetime

    if sys.argv[1:] == ["--dump"]:
        return dump()
    answers = [answer_of(command) for command in sys.argv[1:]]
    print("/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */")
    print("/*\n * Generated by scripts/gen-linetables.py on %s; do not edit. Line tables of CPython" % datetime.date.today())
    print(" * %s\n * and the lines that these versions read from them themselves (0 = none).\n */" %
          ", ".join(answer["version"] for answer in answers))
    print("#pragma once\n\n#include \"py/linetable.h\"\n")
    print("struct linetable_point {\n\tint64_t lasti;\n\tuint32_t line;\n};\n")
    print("struct linetable_case {\n\tenum linetable_kind kind;\n\tconst char *name; /* function and versions */")
    print("\tint32_t first_line;\n\tconst char *table; /* hexadecimal */")
    print("\tconst struct linetable_point *points;\n\tsize_t points_cnt;\n};\n")
    print("/* clang-format off */\nstatic const struct linetable_case linetable_cases[] = {")
    for case, versions in merged(answers):
        print_case(case, versions)
    print("};")


if __name__ == "__main__":
    main()
