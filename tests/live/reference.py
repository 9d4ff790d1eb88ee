# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""reference.py PID DUMP: compares what `pybpfprof dump --json` wrote with CPython's own reader of stacks.

The reader is _remote_debugging.RemoteUnwinder of Python 3.15, which can only read the same minor version; the process has
to stand still. Prints every difference and ends with 1 if there is one. Left out of the reader's stacks: the helper frame
around a specialised __init__, which is no function of the program (it has no line).
"""
import json
import sys

from _remote_debugging import RemoteUnwinder

MODE_ALL = 3
HAS_GIL, ON_CPU, GIL_REQUESTED, HAS_EXCEPTION, MAIN_THREAD = 1, 2, 8, 16, 32


def theirs(pid):
    unwinder = RemoteUnwinder(pid, all_threads=True, mode=MODE_ALL, native=True, gc=True,
                              skip_non_matching_threads=False)
    found = {}
    for interpreter in unwinder.get_stack_trace():
        for thread in interpreter.threads:
            frames = []
            for frame in thread.frame_info:
                # What a collection calls is called from C, too, but it has the one marker only.
                if frame.funcname in ("<native>", "<GC>") and frames and frames[-1] != "<GC>":
                    frames[-1][3] = True
                if frame.funcname == "<GC>":
                    frames.append("<GC>")
                elif frame.funcname == "<native>":
                    pass
                elif (frame.funcname, frame.filename) != ("__init__", "__init__"):
                    line = frame.location.lineno if frame.location else None
                    frames.append([frame.funcname, frame.filename, line, False])
            found[interpreter.interpreter_id, thread.thread_id] = {
                "frames": frames,
                "holds": bool(thread.status & HAS_GIL),
                "waits": bool(thread.status & GIL_REQUESTED),
                "running": bool(thread.status & ON_CPU),
                "exception": bool(thread.status & HAS_EXCEPTION),
                "main": bool(thread.status & MAIN_THREAD) and interpreter.interpreter_id == 0,
            }
    return found


def ours(dump):
    found = {}
    for interpreter in dump["interpreters"]:
        for thread in interpreter["threads"]:
            frames = []
            for frame in thread["frames"]:
                if frame["started_gc"]:
                    frames.append("<GC>")
                frames.append([frame["function"], frame["file"], frame["line"], frame["from_c"]])
            found[interpreter["id"], thread["tid"]] = {
                "frames": frames,
                "holds": thread["gil"] == "holds",
                "waits": thread["gil"] == "waits",
                "running": thread["state"] == "running",
                "exception": thread["exception"] in ("raising", "handling"),
                "main": thread["main"],
            }
    return found


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        mine = ours(json.load(file))
    other = theirs(int(sys.argv[1]))
    differences = 0
    for key in sorted(mine.keys() | other.keys()):
        for field in sorted(mine.get(key, {"thread": 0}).keys() | other.get(key, {"thread": 0}).keys()):
            a, b = mine.get(key, {}).get(field), other.get(key, {}).get(field)
            if a != b:
                differences += 1
                print("interpreter %d, thread %d, %s:\n  dump   %s\n  reader %s" % (*key, field, a, b))
    frames = sum(len(thread["frames"]) for thread in mine.values())
    print("threads %d frames %d differences %d" % (len(mine), frames, differences))
    return differences > 0


sys.exit(main())
