# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads the files of a profile back, each with what reads it elsewhere, and compares what they say:

    readers.py FOLDER NAME [FORMAT...]

of NAME.html, .heatmap.html, .collapsed, .pstats, .json, .pb.gz, .jsonl, .gecko.json (default:
all). pstats loads its file itself; a
page's profile and the other JSON are read by json, and the file of pprof by its published schema and, where
there is one, `go tool pprof`. Prints "FORMAT SAMPLES NANOSECONDS" for each, so that runs by several Pythons
can be compared; exit 1 if something is wrong. Runs on Python 3.8 and later.
"""

import collections
import gzip
import io
import json
import marshal
import pstats
import re
import shutil
import subprocess
import sys

Read = collections.namedtuple("Read", "samples ns selves metadata")
# selves: {(function, file): samples in which it was executing}, None where that is not told; metadata: None where there is no place for it


def is_timed(metadata):
    """Is it of time, rather than of samples?"""
    return metadata["mode"] in ("wall", "offcpu", "gil")


def unit_ns(metadata):
    """What readers count as one."""
    return 1000 if is_timed(metadata) else metadata["period_ns"]


def fail(*words):
    print(*words)
    sys.exit(1)


def need(condition, *words):
    if not condition:
        fail(*words)


def read_collapsed(path):
    selves = collections.Counter()
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            match = re.fullmatch(r"(.+) (\d+)\n", line)
            need(match, path, "has the line", repr(line))
            leaf = match[1].split(";")[-1]
            place = re.fullmatch(r"(.*) \((.*?)(?::~?\d+)?\)", leaf)
            names = (place[1], place[2]) if place else (leaf, "")
            selves[tuple(name.replace("\\x3b", ";") for name in names)] += int(match[2])
    return Read(sum(selves.values()), None, selves, None)


def read_pstats(path):
    stats = pstats.Stats(path, stream=io.StringIO())
    with open(path, "rb") as file:
        marshal.load(file)
        metadata = json.loads(marshal.load(file))
        need(not file.read(1), path, "goes on")
    selves, ns = collections.Counter(), 0.0
    for (file, line, function), (own, total, own_s, total_s, callers) in stats.stats.items():
        need(own <= total and own_s <= total_s, path, "has more of itself than in all:", function)
        need(
            abs(total_s - total * unit_ns(metadata) / 1e9) < 1.5e-6,
            path,
            "seconds and samples differ:",
            function,
        )
        need(is_timed(metadata) or total <= metadata["samples"], path, "has a function in more samples than there are:", function)
        for caller, (calls, own_calls, _, _) in callers.items():
            need(caller in stats.stats, path, "has a caller that is no function:", caller)
            need(own_calls <= calls <= total, path, "has a caller in more samples than its callee", caller)
        selves[function, "" if file == "~" else file] += own
        ns += own_s * 1e9
    need(stats.prim_calls == sum(selves.values()), path, "primitive calls:", stats.prim_calls)
    stats.sort_stats("cumulative").print_stats()
    stats.print_callers()
    stats.print_callees()
    stats.stream.getvalue().encode("utf-8")
    return Read(stats.prim_calls, round(ns), selves, metadata)


def read_speedscope(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    need(data["$schema"] == "https://www.speedscope.app/file-format-schema.json", path, "$schema")
    (profile,) = data["profiles"]
    need(
        profile["type"] == "sampled" and profile["unit"] == "nanoseconds",
        path,
        "is",
        profile["type"],
        profile["unit"],
    )
    need(len(profile["samples"]) == len(profile["weights"]), path, "has not a weight for each sample")
    need(profile["endValue"] == sum(profile["weights"]), path, "ends at", profile["endValue"])
    frames, period = data["shared"]["frames"], unit_ns(data["pybpfprof"])
    selves = collections.Counter()
    for stack, weight in zip(profile["samples"], profile["weights"]):
        leaf = frames[stack[-1]]
        selves[leaf["name"].replace(" [line approximate]", ""), leaf.get("file", "")] += round(weight / period)
    return Read(sum(selves.values()), sum(profile["weights"]), selves, data["pybpfprof"])


def read_jsonl(path):
    frames, selves, stacks, ns = [], collections.Counter(), 0, 0
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    need(lines[0]["type"] == "meta" and lines[0]["schema"] == 1, path, "begins with", lines[0])
    unit = "microseconds" if is_timed(lines[0]["metadata"]) else "samples"
    for line in lines[1:-1]:
        if line["type"] == "frame":
            need(line["id"] == len(frames), path, "has a frame out of order:", line["id"])
            frames.append(line)
        else:
            need(line["type"] == "stack", path, "has a", line["type"])
            leaf = frames[line["frames"][-1]]
            selves[leaf["function"], leaf.get("file", "")] += line[unit]
            ns += line["ns"]
            stacks += 1
    metadata, end = lines[0]["metadata"], lines[-1]
    samples = metadata["samples"] if is_timed(metadata) else sum(selves.values())
    need(
        end == {"type": "end", "samples": samples, "stacks": stacks, "frames": len(frames)},
        path,
        "ends with",
        end,
    )
    return Read(sum(selves.values()), ns, selves, metadata)


def read_page(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    data = json.loads(re.search('<script type="application/json" id="profile">(.*?)</script>', page, re.S)[1])
    texts, functions, frames, nodes = data["texts"], data["functions"], data["frames"], data["nodes"]
    need(
        len(nodes["frame"]) == len(nodes["back"]) == len(nodes["self"]), path, "has nodes of several lengths"
    )
    selves = collections.Counter()
    for number, (frame, back, own) in enumerate(zip(nodes["frame"], nodes["back"], nodes["self"]), 1):
        need(1 <= back <= number, path, "has a parent", back, "before", number)
        function = frames["function"][frame]
        file = texts[functions["file"][function]] if functions["kind"][function] == 0 else ""
        selves[texts[functions["name"][function]] or "[unnamed]", file] += round(own / data["unit"]["weight"])
    ns = sum(nodes["self"]) * data["unit"]["ns"] // data["unit"]["weight"]
    return Read(sum(selves.values()), ns, selves, data["metadata"])


def read_heatmap(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    data = json.loads(re.search('<script type="application/json" id="profile">(.*?)</script>', page, re.S)[1])
    total = sum(own for _, own in data["notes"]) + sum(file["self"] for file in data["files"])
    for file in data["files"]:
        numbers = [file["lines"][i : i + 4] for i in range(0, len(file["lines"]), 4)]
        need(sum(line[1] for line in numbers) == file["self"], path, "has lines that do not add up:", file["name"])
        need([abs(line[0]) for line in numbers] == sorted({abs(line[0]) for line in numbers}), path, "lines:", numbers)
        need(all(line[1] <= line[2] <= file["total"] for line in numbers), path, "has more in a line than in all")
        need(all(line[3] < len(data["functions"]) for line in numbers), path, "has a function that is not there")
        need(sum(len(piece[1]) for piece in file["code"]) <= file["count"], path, "has more code than there is")
    need(total == data["total"], path, "has", total, "in all and not", data["total"])
    weight, ns = data["unit"]["weight"], data["unit"]["ns"]
    return Read(round(total / weight), total * ns // weight, None, data["metadata"])


def read_gecko(path):
    """By github.com/firefox-devtools/profiler: src/types/profile.ts as of version 61 (CHANGELOG-formats.md)."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    meta, shared, threads = data["meta"], data["shared"], data["threads"]
    need(meta["preprocessedProfileVersion"] == 61 and data["libs"] == [], path, "version")
    categories = meta["categories"]
    need(categories[0]["color"] == "grey" and all(c["subcategories"] == ["Other"] for c in categories), path, categories)
    need({c["color"] for c in categories} <= {"grey", "yellow", "red", "purple", "blue", "orange"}, path, categories)
    strings = shared["stringArray"]
    need(all(isinstance(text, str) for text in strings) and len(set(strings)) == len(strings), path, "strings")
    columns = {
        "stackTable": "frame prefix",
        "frameTable": "address inlineDepth category subcategory func nativeSymbol innerWindowID line column",
        "funcTable": "name isJS relevantForJS resource source lineNumber columnNumber",
        "resourceTable": "lib name host type",
        "nativeSymbols": "libIndex address name functionSize",
        "sources": "id filename startLine startColumn sourceMapURL",
    }
    for name, keys in columns.items():
        need(set(shared[name]) == {"length", *keys.split()}, path, name, "has", *shared[name])
        for key in keys.split():
            need(len(shared[name][key]) == shared[name]["length"], path, name, key, "is not as long as it says")
    stacks, frames, functions, sources = (shared[n] for n in ("stackTable", "frameTable", "funcTable", "sources"))

    def in_range(table, key, length, null=False):
        for value in table[key]:
            need((value is None and null) or (type(value) is int and 0 <= value < length), path, key, value)

    in_range(stacks, "frame", frames["length"])
    need(all(p is None or 0 <= p < i for i, p in enumerate(stacks["prefix"])), path, "has a prefix behind its stack")
    in_range(frames, "category", len(categories))
    in_range(frames, "func", functions["length"])
    in_range(functions, "name", len(strings))
    in_range(functions, "source", sources["length"], null=True)
    in_range(sources, "filename", len(strings))
    for key in "initialVisibleThreads", "initialSelectedThreads":
        in_range(meta, key, len(threads))
    for frame, function in enumerate(frames["func"]):
        category = {"[GIL]": 2, "[sleep]": 4, "[lock]": 4}.get(strings[functions["name"][function]])
        need(category in (None, frames["category"][frame]), path, "has a wait of category", frames["category"][frame])
    unit = meta["pybpfprof"]["period_ns"]
    selves, total_ns, is_time, ids = collections.Counter(), 0, False, set()
    for thread in threads:
        samples = thread["samples"]
        need(isinstance(thread["pid"], str) and isinstance(thread["tid"], int), path, thread["pid"], thread["tid"])
        need(thread["isMainThread"] in (True, False) and isinstance(thread["name"], str), path, thread["name"])
        need(not thread["isMainThread"] or thread["pid"] not in ids, path, "two main threads of", thread["pid"])
        ids |= {thread["pid"]} if thread["isMainThread"] else set()
        for key in "stack", "time", "weight", "threadCPUDelta":
            need(len(samples[key]) == samples["length"] > 0, path, key, "is not as long as it says")
        in_range(samples, "stack", stacks["length"], null=True)
        need(samples["time"] == sorted(samples["time"]) and samples["time"][0] >= 0, path, "goes back in time")
        need(samples["time"][0] == thread["registerTime"], path, "registerTime")
        need(samples["weightType"] in ("samples", "tracing-ms"), path, samples["weightType"])
        is_time = samples["weightType"] == "tracing-ms"
        mode = meta["pybpfprof"]["mode"]
        for stack, weight, cpu_ns in zip(samples["stack"], samples["weight"], samples["threadCPUDelta"]):
            function = None if stack is None else frames["func"][stacks["frame"][stack]]
            source = functions["source"][function] if function is not None else None
            name = strings[functions["name"][function]] if function is not None else "[no stack]"
            selves[name, strings[sources["filename"][source]] if source is not None else ""] += weight
            on_cpu = mode not in ("offcpu", "gil") or (mode == "gil" and name in ("[holds the GIL]", "[pruned]"))
            need(on_cpu or not cpu_ns, path, "has CPU time in", name)
            total_ns += weight * 1e6 if is_time else weight * unit
        markers = thread["markers"]
        need(all(markers[key] == [] for key in markers if key != "length") and markers["length"] == 0, path, "markers")
    need(is_time == is_timed(meta["pybpfprof"]), path, "weights are not as the mode says")
    if is_time:
        return Read(round(total_ns / 1000), round(total_ns), None, meta["pybpfprof"])
    return Read(sum(selves.values()), round(total_ns), selves, meta["pybpfprof"])


def fields(message):
    """Of a protobuf message: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            need(tag & 7 == 2, "a field of kind", tag & 7)
            length = varint()
            need(at + length <= len(message), "a field that is cut off")
            yield tag >> 3, message[at : at + length]
            at += length


def packed(data):
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    return numbers


def read_pprof(path):
    """By github.com/google/pprof/proto/profile.proto."""
    with gzip.open(path) as file:
        profile = list(fields(file.read()))
    texts = [value.decode("utf-8") for number, value in profile if number == 6]
    need(texts[0] == "", path, "strings begin with", texts[0])
    types = [tuple(texts[value] for _, value in fields(item)) for number, item in profile if number == 1]
    functions = {}
    for function in (dict(fields(item)) for number, item in profile if number == 5):
        functions[function[1]] = texts[function[2]], texts[function.get(4, 0)]
    locations = {}
    for location in (dict(fields(item)) for number, item in profile if number == 4):
        need(location[2] == 1, path, "has a location in mapping", location[2])
        locations[location[1]] = functions[dict(fields(location[4]))[1]]
    selves, ns, labels = collections.Counter(), 0, set()
    for sample in (list(fields(item)) for number, item in profile if number == 2):
        values = packed(dict(sample)[2])
        leaf = locations[packed(dict(sample)[1])[0]]
        need(len(values) == len(types), path, "has", len(values), "values of", types)
        if types[0][0] == "wall" and "[pruned]" not in leaf[0]:
            need(values[0] == values[1] + values[2] and 0 in values[1:], path, "is on the CPU and off it:", values)
        own = values[1] if types[0][1] == "count" else values[0]
        selves[leaf] += values[0] if types[0][1] == "count" else round(values[0] / 1000)
        ns += own
        labels |= {
            tuple(texts[value] for _, value in fields(label)) for number, label in sample if number == 3
        }
    single = dict(profile)
    metadata = json.loads(texts[single[13]])
    names = {
        "cpu": "samples cpu",
        "exception": "samples cpu",
        "wall": "wall cpu off-cpu",
        "offcpu": "off-cpu",
        "gil": "gil",
    }[metadata["mode"]].split()
    want = [(name, "count" if name == "samples" else "nanoseconds") for name in names]
    need(types == want, path, "has values of", types)
    need(single[12] == metadata["period_ns"], path, "period", single[12])
    need(texts[single[14]] == ("cpu" if "samples" in names else names[0]), path, "shows", texts[single[14]])
    if "process " in str(metadata.get("command")):
        need(labels, path, "has no labels")
    read_by_pprof(path, ns, functions.values())
    return Read(sum(selves.values()), ns, selves, metadata)


def read_by_pprof(path, ns, functions):
    if not shutil.which("go"):
        return
    raw = subprocess.run(
        ["go", "tool", "pprof", "-raw", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    need(raw.returncode == 0, "go tool pprof:", raw.stderr)
    shown = re.search(r"^Samples:\n(.*)$", raw.stdout, re.M)[1].split()
    default = next(i for i, name in enumerate(shown) if name.endswith("[dflt]"))
    values = re.findall(r"^((?: +\d+)+): [\d ]+$", raw.stdout, re.M)
    read = sum(int(value.split()[default]) for value in values)
    need(read == ns, path, "go tool pprof has", read, "ns and not", ns)
    for function, file in functions:
        need(" M=1 %s %s:" % (function, file) in raw.stdout, path, "go tool pprof has no", function[:100])


READERS = {
    "html": read_page,
    "heatmap.html": read_heatmap,
    "collapsed": read_collapsed,
    "pstats": read_pstats,
    "json": read_speedscope,
    "pb.gz": read_pprof,
    "jsonl": read_jsonl,
    "gecko.json": read_gecko,
}
_, folder, name, *formats = sys.argv
first = None
for suffix in formats or READERS:
    read = READERS[suffix]("%s/%s.%s" % (folder, name, suffix))
    print(suffix, read.samples, read.ns if read.ns is not None else "-")
    first = first or read
    # Each stack of time is rounded to a microsecond.
    slack = max(20, 1e-4 * first.samples) if first.metadata and is_timed(first.metadata) else 0
    need(
        abs(read.samples - first.samples) <= slack, suffix, "has", read.samples, "samples, and others", first.samples
    )
    need(
        read.ns is None or first.ns is None or abs(read.ns - first.ns) < 1e-6 * first.ns + 1,
        suffix,
        "has",
        read.ns,
        "ns, and others",
        first.ns,
    )
    if read.metadata:
        need(
            is_timed(read.metadata) or read.metadata["samples"] == read.samples,
            suffix,
            "says that it has",
            read.metadata["samples"],
        )
        known = first.metadata or read.metadata
        for key in known:
            need(key.startswith("pruned") or read.metadata.get(key) == known[key], suffix, "differs in", key)
    if read.selves is None:  # by lines, whatever function they are of
        continue
    # For pstats "~" is no file.
    selves = collections.Counter()
    for (function, file), weight in read.selves.items():
        selves[function, "" if file == "~" else file] += weight
    read = read._replace(selves=selves)
    first = read if suffix == (formats or list(READERS))[0] else first
    # Each leaves out what does not fit into it; of many stacks the sums are all that is equal.
    if ("[pruned]", "") not in read.selves | first.selves:
        different = {
            key for key in read.selves | first.selves if abs(read.selves[key] - first.selves[key]) > slack
        }
        need(
            not different,
            suffix,
            "differs in",
            [(key, read.selves[key], first.selves[key]) for key in different][:5],
        )
