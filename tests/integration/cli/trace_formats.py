#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Strict readers of what `heddle trace export` writes.

Usage: trace_formats.py FORMAT FILE [NAME=COUNT...]

Fails with a sentence when the file breaks a rule of its format, or when one of
the counts (tasks, deps, moves, marks, states, counters) is not as given.
"""

import json
import re
import shlex
import struct
import sys
from collections import Counter, defaultdict
from pathlib import Path


def need(ok, *what):
    if not ok:
        sys.exit("wrong: " + " ".join(str(w) for w in what))


# ---- chrome


def chrome(path):
    events = json.loads(path.read_text())["traceEvents"]
    count = Counter()
    tracks = defaultdict(list)
    flows = defaultdict(dict)
    threads = {e["tid"] for e in events if e["name"] == "thread_name"}
    for e in events:
        if e["ph"] == "M":
            continue
        need(e["tid"] in threads, "no thread", e["tid"])
        if e["ph"] == "X":
            need(e["dur"] >= 0, "negative length")
            tracks[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
            kind = {"task": "tasks", "state": "states", "transfer": "moves"}
            count[kind[e["cat"]]] += 1
        elif e["ph"] in "sf":
            need(e["ph"] not in flows[e["id"]], "flow twice")
            flows[e["id"]][e["ph"]] = e["ts"]
        elif e["ph"] == "C":
            count["counters"] += 1
        else:
            need(e["ph"] in "bei", "phase", e["ph"])
            count["marks"] += 1
    for flow in flows.values():
        need(set(flow) == {"s", "f"}, "half a flow")
    count["deps"] = len(flows)
    for spans in tracks.values():
        nested(spans, 1e-3)
    return count


def nested(spans, eps=0):
    """Of two spans one is inside the other, or they do not touch."""
    stack = []
    for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1] <= start + eps:
            stack.pop()
        need(not stack or end <= stack[-1] + eps, "spans overlap at", start)
        stack.append(end)


# ---- paje


class Paje:
    def __init__(self):
        self.defs = {}  # number: (name, fields)
        self.types = {"0": ("container", None)}
        self.values = {}
        self.containers = {"0": "0"}  # alias: type
        self.gone = set()
        self.last = defaultdict(float)
        self.now = 0.0
        self.depth = Counter()
        self.links = {}
        self.count = Counter()

    def define_type(self, kind, e):
        need(e["Type"] in self.types, "unknown type", e["Type"])
        need(self.types[e["Type"]][0] == "container", "not in a container")
        need(e["Alias"] not in self.types, "defined twice", e["Alias"])
        self.types[e["Alias"]] = (kind, e["Type"], e)

    def at(self, kind, e, container="Container"):
        """The container of an event of a type, which must fit."""
        need(e["Type"] in self.types, "unknown type", e["Type"])
        need(self.types[e["Type"]][0] == kind, e["Type"], "is not a", kind)
        c = e[container]
        need(c in self.containers and c not in self.gone, "no container", c)
        need(self.containers[c] == self.types[e["Type"]][1], c, "has no", e["Type"])
        return c

    def value(self, e):
        if "Value" in e and e["Value"] in self.values:
            need(self.values[e["Value"]] == e["Type"], "value of another type")
            return
        need(self.types[e["Type"]][0] == "event", "unknown value", e["Value"])

    def link(self, e, is_start):
        self.at("link", e)  # its value is a word of its own
        side = "StartContainer" if is_start else "EndContainer"
        key = (e["Type"], e["Key"])
        need(e[side] in self.containers, "no container", e[side])
        want = self.types[e["Type"]][2][side + "Type"]
        need(self.containers[e[side]] == want, e[side], "is not of", want)
        if is_start:
            need(key not in self.links, "link begins twice", key)
            self.links[key] = (float(e["Time"]), e["Value"])
            self.count["moves" if e["Type"] == "LX" else "deps"] += 1
        else:
            need(key in self.links, "link ends before it begins", key)
            start, value = self.links.pop(key)
            need(start <= float(e["Time"]) and value == e["Value"], "link", key)

    def state(self, e, is_push):
        c = self.at("state", e)
        key = (c, e["Type"])
        if is_push:
            self.value(e)
            self.depth[key] += 1
            self.count["tasks" if e["Type"] == "ST" else "states"] += 1
        else:
            self.depth[key] -= 1
            need(self.depth[key] >= 0, "pop of nothing in", c)

    def event(self, name, e):
        if "Time" in e:
            t = float(e["Time"])
            need(t >= self.now >= 0, "time goes back at", t)
            self.now = t
            c = e.get("Container", "")
            need(t >= self.last[c], "time goes back in", c)
            self.last[c] = t
        kinds = {"Container": "container", "State": "state", "Event": "event",
                 "Link": "link", "Variable": "variable"}
        m = re.fullmatch("PajeDefine(.*)Type", name)
        if m:
            self.define_type(kinds[m[1]], e)
        elif name == "PajeDefineEntityValue":
            need(e["Type"] in self.types, "unknown type", e["Type"])
            need(e["Alias"] not in self.values, "defined twice", e["Alias"])
            self.values[e["Alias"]] = e["Type"]
            rgb = [float(x) for x in e["Color"].split()]
            need(len(rgb) == 3 and all(0 <= x <= 1 for x in rgb), "colour", rgb)
        elif name == "PajeCreateContainer":
            c = self.at("container", e)
            need(c is not None and e["Alias"] not in self.containers, "again")
            self.containers[e["Alias"]] = e["Type"]
        elif name == "PajeDestroyContainer":
            need(self.containers.get(e["Name"]) == e["Type"], "destroy", e)
            need(e["Name"] not in self.gone, "destroyed twice", e["Name"])
            self.gone.add(e["Name"])
        elif name in ("PajePushState", "PajePopState"):
            self.state(e, name == "PajePushState")
        elif name in ("PajeStartLink", "PajeEndLink"):
            self.link(e, name == "PajeStartLink")
        elif name == "PajeSetVariable":
            self.at("variable", e)
            need(float(e["Value"]) >= 0, "negative", e)
            self.count["counters"] += 1
        elif name == "PajeNewEvent":
            self.at("event", e)
            self.count["marks"] += 1
        else:
            need(False, "unknown event", name)

    def read(self, text):
        open_def = None
        for line in text.splitlines():
            w = shlex.split(line)
            if w[0] == "%EventDef":
                need(open_def is None and w[2] not in self.defs, line)
                open_def = w[2]
                self.defs[open_def] = (w[1], [])
            elif w[0] == "%EndEventDef":
                open_def = None
            elif w[0] == "%":
                need(w[2] in ("string", "date", "color", "double"), line)
                self.defs[open_def][1].append(w[1])
            else:
                need(open_def is None and w[0] in self.defs, line)
                name, fields = self.defs[w[0]]
                need(len(w) == len(fields) + 1, "fields of", line)
                self.event(name, dict(zip(fields, w[1:])))
        need(not self.links, "links without end", self.links)
        need(not any(self.depth.values()), "states without end")
        need(self.gone | {"0"} == set(self.containers), "containers left")
        return self.count


# ---- perfetto


def varint(b, i):
    v = shift = 0
    while True:
        need(i < len(b) and shift < 64, "cut number")
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def message(b):
    """List of (field, value); bytes stay bytes."""
    out = []
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        if tag & 7 == 0:
            v, i = varint(b, i)
        elif tag & 7 == 1:
            need(i + 8 <= len(b), "cut fixed64")
            v = struct.unpack_from("<Q", b, i)[0]
            i += 8
        else:
            need(tag & 7 == 2, "wire type", tag & 7)
            n, i = varint(b, i)
            need(i + n <= len(b), "cut bytes")
            v = b[i : i + n]
            i += n
        out.append((tag >> 3, v))
    return out


class Perfetto:
    def __init__(self):
        self.names = {}
        self.args = {}
        self.tracks = {}  # uuid: (parent, is a counter)
        self.depth = Counter()
        self.last = defaultdict(int)
        self.flow = {}
        self.flow_end = {}
        self.count = Counter()

    def intern(self, b):
        for field, v in message(b):
            need(field in (2, 3), "interned", field)
            d = dict(message(v))
            table = self.names if field == 2 else self.args
            need(d[1] not in table and d[1] > 0, "interned twice", d[1])
            table[d[1]] = d[2].decode()

    def track(self, b):
        d = dict(message(b))
        need(d[1] not in self.tracks, "track twice", d[1])
        need(5 not in d or d[5] in self.tracks, "no parent", d.get(5))
        d[2].decode()
        self.tracks[d[1]] = (d.get(5), 8 in d)

    def event(self, b, t):
        fields = message(b)
        d = dict(fields)
        kind, track = d[9], d[11]
        need(track in self.tracks, "no track", track)
        need(self.tracks[track][1] == (kind == 4), "counter or not", track)
        args = {}
        for field, v in fields:
            if field == 4:
                a = dict(message(v))
                need(a[1] in self.args, "no name", a[1])
                args[self.args[a[1]]] = a
            elif field in (47, 48):
                table = self.flow if field == 47 else self.flow_end
                need(v not in table, "flow twice", v)
                table[v] = t
        if kind != 3:
            need(t >= self.last[track], "time goes back on", track)
            self.last[track] = t
        if kind == 1:
            need(d[10] in self.names, "no name", d[10])
            self.depth[track] += 1
            what = "moves" if "bytes" in args else "tasks" if args else "states"
            self.count[what] += 1
        elif kind == 2:
            self.depth[track] -= 1
            need(self.depth[track] >= 0, "end without begin on", track)
        elif kind == 3:
            d[23].decode()
            self.count["marks"] += 1
        else:
            need(kind == 4 and 30 in d, "no value")
            self.count["counters"] += 1

    def read(self, data):
        for i, (field, packet) in enumerate(message(data)):
            need(field == 1, "not a packet", field)
            d = dict(message(packet))
            need(d[10] == 1 and d[13] == (2 if i else 1), "flags", i)
            need(len({11, 12, 60} & set(d)) == 1, "packet", i)
            if 12 in d:
                self.intern(d[12])
            elif 60 in d:
                self.track(d[60])
            else:
                need(d[8] < 1 << 63, "time", d[8])
                self.event(d[11], d[8])
        need(not any(self.depth.values()), "begin without end")
        need(set(self.flow) == set(self.flow_end), "half a flow")
        self.count["deps"] = len(self.flow)
        return self.count


# ---- paraver


def paraver(path):
    count = Counter()
    lines = path.read_text().splitlines()
    m = re.fullmatch(
        r"#Paraver \(\d\d/\d\d/\d\d at \d\d:\d\d\):(\d+)_ns:1\((\d+)\):1:1\((\d+):1\)",
        lines[0])
    need(m and m[2] == m[3], "header", lines[0])
    end, threads = int(m[1]), int(m[2])
    pcf = path.with_suffix(".pcf").read_text()
    types = {}
    for block in pcf.split("\n\n"):
        rows = block.splitlines()
        if rows and rows[0] == "EVENT_TYPE":
            values = {int(r.split()[0]) for r in rows[3:]}
            types[int(rows[1].split()[1])] = values
    states = {int(r.split()[0]) for r in
              pcf.split("STATES\n")[1].split("\n\n")[0].splitlines()}
    row = path.with_suffix(".row").read_text()
    for level in ("CPU", "THREAD"):
        names = row.split(f"LEVEL {level} SIZE {threads}\n")[1]
        need(len(names.split("\n\n")[0].splitlines()) == threads, "row", level)
    now = 0
    busy = defaultdict(int)
    for line in lines[1:]:
        f = [int(x) for x in line.split(":")]
        need(f[2:4] == [1, 1] and f[1] == f[4] and 1 <= f[1] <= threads, line)
        need(now <= f[5] <= end, "time of", line)
        now = f[5]
        if f[0] == 1:
            need(len(f) == 8 and f[5] < f[6] <= end and f[7] in states, line)
            need(busy[f[1]] <= f[5], "states overlap", line)
            busy[f[1]] = f[6]
        elif f[0] == 2:
            need(len(f) % 2 == 0 and len(f) >= 8, line)
            for kind, value in zip(f[6::2], f[7::2]):
                need(kind in types, "type of", line)
                need(not types[kind] or value in types[kind], "value", line)
                count["tasks"] += kind == 60000001 and value > 0
                count["marks"] += kind == 60000006
        else:
            need(f[0] == 3 and len(f) == 15 and f[11] >= f[5], line)
            count["deps"] += 1
    return count


# ---- starpu


def starpu(path):
    ids, deps, count = set(), [], Counter()
    for record in path.read_text().split("\n\n"):
        if not record.strip():
            continue
        r = dict(line.split(":", 1) for line in record.splitlines())
        r = {k: v.strip() for k, v in r.items()}
        need(r["JobId"] not in ids, "twice", r["JobId"])
        ids.add(r["JobId"])
        deps += r.get("DependsOn", "").split()
        need(r["Model"] and r["Name"] and int(r["Priority"]) is not None, record)
        if "StartTime" in r:
            need(float(r["StartTime"]) <= float(r["EndTime"]), record)
            need(int(r["WorkerId"]) >= 0 and int(r["MemoryNode"]) >= 0, record)
        lists = {len(r.get(k, "").split()) for k in ("Handles", "Modes", "Sizes")}
        need(len(lists) == 1, "lists of", record)
    need(set(deps) <= ids, "depends on unknown tasks")
    count["tasks"] = len(ids)
    count["deps"] = len(deps)
    return count


def main():
    path = Path(sys.argv[2])
    count = {
        "chrome": chrome,
        "paje": lambda p: Paje().read(p.read_text()),
        "perfetto": lambda p: Perfetto().read(p.read_bytes()),
        "paraver": paraver,
        "starpu": starpu,
    }[sys.argv[1]](path)
    for want in sys.argv[3:]:
        name, n = want.split("=")
        need(count[name] == int(n), f"{count[name]} {name}, not {n}")


main()
