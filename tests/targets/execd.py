# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""execd.py [eval|replace|same|fresh]: code objects that are made, freed and made again.

eval (the default): <module>, then <module> of the file <string>, then hot.
replace: one function that takes 100 names in turn, gen_0 to gen_99, about 1 % each.
same: alpha and omega of same.py about 50 % each, though address, file and first line of their code are often the same.
fresh: a new function u1, u2, ... each time, of gen1.py, gen2.py, ...; the profiler's memory stays bounded.
"""
import gc
import itertools
import os
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
mode = sys.argv[1] if len(sys.argv) > 1 else "eval"


def hot():
    return sum(range(5000))


def base():
    for _ in range(3000):
        sum(range(60))


def replace():
    for i in itertools.count():
        name = "gen_%d" % (i % 100)
        changed = {"co_name": name}
        if hasattr(base.__code__, "co_qualname"):
            changed["co_qualname"] = name
        base.__code__ = base.__code__.replace(**changed)
        base()


def same():
    while True:
        for name in ("alpha", "omega"):
            names = {}
            exec(compile("def %s():\n    for _ in range(4000): sum(range(60))\n" % name, "same.py", "exec"), names)
            names[name]()
            names.clear()
            gc.collect()


def fresh():
    for i in itertools.count(1):
        names = {}
        text = "def u%d():\n    for _ in range(200): sum(range(60))\n" % i
        exec(compile(text, "gen%d.py" % i, "exec"), names)
        names["u%d" % i]()


print("ready", flush=True)
if mode == "eval":
    while True:
        eval("hot()")
{"replace": replace, "same": same, "fresh": fresh}[mode]()
