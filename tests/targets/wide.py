# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""wide.py [FUNCTIONS] [DEPTH]: hardly a stack twice: random walks over FUNCTIONS (default 40) functions, up to DEPTH
(default 30) calls deep.

Right profile: f0 to f39 with equal shares; every format shows the same total; output and memory stay bounded, and what
was pruned is stated.
"""
import os
import random
import signal
import sys

signal.alarm(int(os.environ.get("PBP_LIMIT", "120")))
count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
depth = int(sys.argv[2]) if len(sys.argv) > 2 else 30
text = "".join("def f%d(n):\n    return random.choice(functions)(n - 1) if n > 1 else sum(range(600))\n" % i
               for i in range(count))
names = {"random": random}
exec(compile(text, "wide-generated.py", "exec"), names)
functions = names["functions"] = [names["f%d" % i] for i in range(count)]
print("ready", flush=True)
while True:
    random.choice(functions)(random.randint(1, depth))
