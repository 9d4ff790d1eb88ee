#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Make user/py/offsets_table.c, the offsets of CPython 3.8 to 3.12, from scripts/offsets.json.

    scripts/gen-offsets.py                     write user/py/offsets_table.c
    scripts/gen-offsets.py --check             exit 1 if it is not what scripts/offsets.json gives
    scripts/gen-offsets.py --headers FOLDER    compare scripts/offsets.json with a Python's own headers, such as
                                               /usr/include/python3.11, by compiling them (cc)
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "offsets.json")
TARGET = os.path.join(HERE, os.pardir, "user", "py", "offsets_table.c")
FIELDS = os.path.join(HERE, os.pardir, "user", "py", "offsets.h")

HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Made by scripts/gen-offsets.py from scripts/offsets.json: do not edit. Offsets on x86-64, compiled from the headers
 * of each version and compared with running processes:
%s
 */
#include "py/offsets_table.h"

/* clang-format off */
const struct py_offsets py_offsets_tables[] = {
"""

# Where the types of a version are declared, beside Python.h.
INCLUDES = {
    "3.8": ["frameobject.h", "internal/pycore_pystate.h"],
    "3.9": ["frameobject.h", "internal/pycore_runtime.h", "internal/pycore_interp.h"],
    "3.10": ["frameobject.h", "internal/pycore_runtime.h", "internal/pycore_interp.h"],
    "3.11": ["internal/pycore_runtime.h", "internal/pycore_interp.h", "internal/pycore_frame.h"],
    "3.12": ["internal/pycore_runtime.h", "internal/pycore_interp.h", "internal/pycore_frame.h"],
}


def load():
    with open(SOURCE, encoding="utf-8") as file:
        facts = json.load(file)
    with open(FIELDS, encoding="utf-8") as file:
        known = re.findall(r"X\(\s*\\?\s*(\w+)\)", file.read())
    unknown = set(facts["fields"]) - set(known)
    if unknown:
        sys.exit("gen-offsets: not in struct py_offsets: %s" % " ".join(sorted(unknown)))
    return facts, known[1:]  # the first X(...) is the comment's


def render():
    facts, known = load()
    notes = ["%s: %s" % item for item in facts["checked"].items()]
    text = HEAD % "\n".join(" *   %s%s" % (note, ";" if note is not notes[-1] else ".") for note in notes)
    for version in facts["checked"]:
        text += "\t[%s - PY_TABLE_FIRST_MINOR] = {\n" % version.split(".")[1]
        for field in known:
            cell = facts["fields"].get(field, {}).get(version)
            text += "\t\t.%s = %s,\n" % (field, cell[1] if cell else "PY_ABSENT")
        text += "\t},\n"
    return text + "};\n"


def compiled(folder, version, expressions):
    """The value of each: an offset where there is a dot, else a size."""
    lines = ["#define Py_BUILD_CORE 1", "#include <Python.h>"]
    lines += ["#include <%s>" % name for name in INCLUDES[version]]
    lines += ["#include <stddef.h>", "#include <stdio.h>", "int main(void)", "{"]
    for expression in expressions:
        kind, _, member = expression.partition(".")
        value = "offsetof(%s, %s)" % (kind, member) if member else "sizeof(%s)" % kind
        lines.append('\tprintf("%%zu\\n", %s);' % value)
    with tempfile.TemporaryDirectory() as scratch:
        source, program = os.path.join(scratch, "offsets.c"), os.path.join(scratch, "offsets")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines + ["\treturn 0;", "}"]) + "\n")
        subprocess.run(["cc", "-w", "-I", folder, "-I", os.path.join(folder, "internal"), source, "-o", program], check=True)
        return [int(line) for line in subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout.split()]


def compare(folder):
    with open(os.path.join(folder, "patchlevel.h"), encoding="utf-8") as file:
        release = re.search(r'PY_VERSION\s+"((\d+\.\d+)\.[^"]*)"', file.read())
    version = release.group(2)
    fields = [(name, *cells[version]) for name, cells in load()[0]["fields"].items() if version in cells]
    values = compiled(folder, version, [field[1] for field in fields])
    wrong = 0
    for (name, expression, said), found in zip(fields, values):
        if said != found:
            print("%s: %s is %d in %s, not %d" % (name, expression, found, release.group(1), said))
            # Structs grow at their end in patch releases, which is no matter.
            wrong += "." in expression
    print("%s: %d fields compared, %d wrong" % (release.group(1), len(fields), wrong))
    return wrong != 0


def main(args):
    if args[:1] == ["--headers"] and len(args) == 2:
        return compare(args[1])
    if args not in ([], ["--check"]):
        sys.exit(__doc__)
    text = render()
    if args:
        with open(TARGET, encoding="utf-8") as file:
            if file.read() == text:
                return 0
        print("user/py/offsets_table.c is not what scripts/offsets.json gives: run scripts/gen-offsets.py")
        return 1
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
