#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What trace_view.sh needs to look at pages, to make logs and to ask servers.

view.py page PAGE [RUNS]     decodes the page, checks what must hold in any
view.py same LOG PAGE HEDDLE the columns are the rows of the log
view.py log KIND FILE        writes a log by hand: odd empty one cancelled lost
view.py full HEDDLE LOG      a page on a full disk
view.py serve HEDDLE LOG     asks a server for everything, rightly and wrongly
view.py live HEDDLE LOG      follows a log that grows
"""
import array
import base64
import http.client
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

TYPES = {"u8": "B", "u16": "H", "u32": "I", "i32": "i", "f32": "f", "f64": "d"}
NONE = 0xffffffff


# --- pages -------------------------------------------------------------------

def decode(raw, entry):
    out = array.array(TYPES[entry["type"]])
    n, size = entry["n"], out.itemsize
    assert len(raw) == n * size, (len(raw), n, size)
    if entry["coding"] != "raw":
        planes = bytearray(n * size)
        for j in range(size):
            planes[j::size] = raw[j * n:(j + 1) * n]
        raw = bytes(planes)
    if entry["coding"] == "dplanes":
        stored, last, values = array.array("I"), 0, array.array("I")
        stored.frombytes(raw)
        for s in stored:
            last = (last + ((s >> 1) ^ -(s & 1))) & 0xffffffff
            values.append(last)
        raw = values.tobytes()
    out.frombytes(raw)
    return out


def read_page(path):
    text = open(path, encoding="utf-8").read()
    packs = []
    for m in re.finditer(r'<script type="application/json" data-pack="(\d+)">'
                         r'(.*?)</script>', text, re.S):
        assert int(m[1]) == len(packs) and "<" not in m[2]
        packs.append({"dir": json.loads(m[2])})
    for m in re.finditer(r'<script type="application/x-heddle" data-pack="(\d+)'
                         r'" data-array="(\w+)">(.*?)</script>', text, re.S):
        pack, name = packs[int(m[1])], m[2]
        z = zlib.decompressobj(-15)
        raw = z.decompress(base64.b64decode(m[3], validate=True)) + z.flush()
        assert z.eof and not z.unused_data, name
        pack[name] = decode(raw, pack["dir"]["arrays"][name])
    for p in packs:
        assert set(p["dir"]["arrays"]) == set(p) - {"dir"}
    # Nothing but the page's own code and the data.
    assert len(re.findall("<script", text)) == 1 + sum(len(p) for p in packs)
    assert not re.search(r"\b(src|href)=[\"']?(?!data:|[\"']|#)", text), "refers"
    assert not re.search(r"^\s*(import|export)\b", text, re.M), "not bundled"
    return packs


def check_pack(p):
    d = p["dir"]
    n, runs = d["tasks"], d["runs"]
    causes = [c["name"] for c in d["causes"]]
    work = 0
    for lane in d["lanes"]:
        total = sum(lane["idle"][c] for c in causes)
        assert total == (d["makespan_ns"] if lane["is_worker"] else 0), lane
        starts = p["run_start"][lane["first"]:lane["first"] + lane["n"]] \
            if lane["n"] else []
        assert list(starts) == sorted(starts)
        gaps = range(lane["gap_first"], lane["gap_first"] + lane["gap_n"])
        for i, j in zip(gaps, gaps[1:]):
            assert p["gap_start"][i] + p["gap_dur"][i] <= p["gap_start"][j]
        for i in gaps:
            work += p["gap_dur"][i]
    whole = d["nworkers"] * d["makespan_ns"]
    assert sum(d["total"][c] for c in causes) == whole
    if d["unit_ns"] == 1:
        assert work == whole - d["total"]["work"] - d["total"]["waste"]
    assert sum(d["blame"].values()) == d["makespan_ns"]
    assert sum(l["n"] for l in d["lanes"]) == runs
    assert d["makespan_ns"] // d["unit_ns"] < 2 ** 31
    assert (d["system_ns"] > 0) == (d["system_tasks"] > 0)
    for i in range(runs):
        assert p["run_task"][i] < n and p["run_kernel"][i] < len(d["kernels"])
        assert p["run_start"][i] + p["run_dur"][i] <= \
            d["makespan_ns"] // d["unit_ns"]
    for i, r in enumerate(p.get("task_run", [])):
        assert r == NONE or p["run_task"][r] == i
    for off, what in (("edge_off", "edge_pred"), ("op_off", "op_handle")):
        if off in p:
            assert len(p[off]) == n + 1 and p[off][0] == 0
            assert p[off][n] == len(p[what])
            assert list(p[off]) == sorted(p[off])
    assert all(t < n for t in p.get("edge_pred", []))
    assert all(h < d["handles"] for h in p.get("op_handle", []))
    assert all(t < n for t in p.get("path_task", []))
    for node in list(p.get("xfer_src", [])) + list(p.get("xfer_dst", [])):
        assert node < len(d["nodes"])
    for name, most in (("xfer_handle", d["handles"]), ("xfer_task", n)):
        assert all(i < most or i == NONE for i in p.get(name, []))
    text = bytes(p.get("text", b""))
    for name in ("task_name", "handle_name", "mark_text"):
        for at in p.get(name, []):
            assert at == NONE or at == 0 or text[at - 1] == 0
    check_energy(d)
    for c in d["curves"]:
        t, v = p[c["array_t"]], p[c["array_v"]]
        assert len(t) == len(v) <= 65536 and list(t) == sorted(t)
        assert not len(v) or abs(max(v) - c["max"]) <= 1e-6 * abs(c["max"])


def check_energy(d):
    """What was measured lies in the run; kernels and idle power add up."""
    e = d["energy"]
    if e is None:
        return
    names = [m["name"] for m in e["domains"]]
    power = [c["name"] for c in d["curves"] if c["kind"] == "power"]
    assert power == ["power of " + n for n in names], (power, names)
    for m in e["domains"]:
        assert m["seconds"] <= d["makespan_ns"] / 1e9 * (1 + 1e-9)
        assert m["joules"] <= m["peak_watts"] * m["seconds"] * (1 + 1e-9)
    m = e["model"]
    if m is None:
        return
    near = lambda a, b: abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    assert near(m["joules"], m["idle"] + m["active"] + m["move"])
    assert near(m["active"], sum(k["joules"] or 0 for k in m["kernels"]))
    assert near(m["joules"], sum(x["joules"] for x in m["domains"]))


def energy(path):
    """The model is what the counters follow: both agree."""
    d = page(path)[0]["dir"]
    e = d["energy"]
    assert [m["name"] for m in e["domains"]] == ["package-0", "board"]
    assert [m["device"] for m in e["domains"]] == ["cpu", ""]
    # watts, as the samples of a short run leave out some of its ends
    measured = sum(m["joules"] / m["seconds"] for m in e["domains"])
    model = e["model"]["joules"] / (d["makespan_ns"] / 1e9)
    assert abs(measured / model - 1) < 0.25, (measured, model)
    assert e["model"]["unknown_tasks"] == 0 and d["energy_why"] is None


def serve_energy(heddle, logfile, model):
    s = Server(heddle, logfile, "--energy-model", model)
    d = json.loads(s.get("/pack/0/dir")[1])
    assert d["energy"]["domains"] and d["energy"]["model"]["file"] == model
    check_energy(d)
    s.stop(signal.SIGTERM)


def page(path, runs="1"):
    packs = read_page(path)
    assert len(packs) == int(runs), len(packs)
    for p in packs:
        assert p["dir"]["packs"] == len(packs)
        check_pack(p)
    return packs


def same(log, path, heddle):
    """The columns are the rows of `trace dump`, one by one."""
    p = page(path)[0]
    d, unit = p["dir"], p["dir"]["unit_ns"]
    out = subprocess.run([heddle, "trace", "dump", log, "--json"], check=True,
                         capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]

    def when(ns):
        return NONE if ns is None else (ns - d["first_ns"]) // unit
    want, got = [], []
    for r in rows:
        if r["record"] == "task" and r["lane"] is not None:
            want.append((r["id"], r["lane"], r["kernel"], when(r["start_ns"]),
                         when(r["end_ns"]), when(r["submit_ns"])))
    for lane in d["lanes"]:
        for i in range(lane["first"], lane["first"] + lane["n"]):
            t, start = p["run_task"][i], p["run_start"][i]
            got.append((p["task_id"][t], lane["name"],
                        d["kernels"][p["run_kernel"][i]]["name"], start,
                        start + p["run_dur"][i], p["task_submit"][t]))
    assert sorted(want) == sorted(got), (sorted(want)[:2], sorted(got)[:2])
    want = sorted((r["task"], r["after"]) for r in rows
                  if r["record"] == "dependency")
    got = sorted((p["task_id"][t], p["task_id"][p["edge_pred"][k]])
                 for t in range(d["tasks"])
                 for k in range(p["edge_off"][t], p["edge_off"][t + 1]))
    assert want == got
    assert len(p["op_handle"]) == sum(r["record"] == "access" for r in rows)


# --- logs by hand ------------------------------------------------------------

def leb(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def zig(v):
    return leb((v << 1) ^ (v >> 63) & (2 ** 64 - 1))


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return leb(len(s)) + s


def checksum(b):
    h = 0x9e3779b97f4a7c15 ^ len(b)
    b += bytes(-len(b) % 8)
    for (w,) in struct.iter_unpack("<Q", b):
        h ^= w
        h = (h << 29 | h >> 35) & (2 ** 64 - 1)
        h = h * 0xbf58476d1ce4e5b9 & (2 ** 64 - 1)
    return h ^ h >> 32


class Log:
    def __init__(self):
        h = b"\x89HDLOG\r\n" + struct.pack("<HHIIIdQQQQ", 1, 0, 72, 0, 0, 1.0,
                                           0, 0, 0, 0)
        self.bytes = h + struct.pack("<Q", checksum(h))
        self.seq = 0

    def chunk(self, kind, payload, lane=0, records=0):
        h = b"HCHK" + struct.pack("<BBHIIIIQQQQ", kind, kind == 1, 0, lane,
                                  len(payload), records, self.seq, 0, 0, 0,
                                  checksum(payload))
        self.seq += 1
        self.bytes += h + struct.pack("<Q", checksum(h)) + payload

    def defs(self, *items):
        self.chunk(2, b"".join(bytes([tag]) + leb(len(v)) + v
                               for tag, v in items))

    def tasks(self, lane, rows):
        """(id, kernel, flags, start, duration), each coded in full."""
        out, t, last = struct.pack("<Q", 0), 0, 0
        for i, kernel, flags, start, dur in rows:
            out += b"\x80" + leb(kernel) + b"\0" + leb(flags) + zig(i - last) + \
                zig(start - t) + leb(dur)
            t, last = start + dur, i
        self.chunk(1, out, lane, len(rows))

    def end(self):
        self.chunk(4, struct.pack("<QQQ", 0, 0, 0) + b"HDLEND\r\n")


def lane(i, kind, name):
    return (3, leb(i) + leb(kind) + leb(0) + leb(0) + text(name))


EVIL = b'</script><script>alert(1)</script>"\'\\<!--&amp;\x01\x7f\xff\xc3('


def log(kind, path):
    x = Log()
    evil = EVIL if kind == "odd" else b"work"
    x.defs((2, leb(1) + text(evil) + leb(0)), lane(0, 0, evil),
           (1, leb(1) + text(evil)), (4, leb(1) + leb(1) + leb(8) + leb(8)
                                      + leb(0) + text(evil) + leb(0)),
           (5, leb(0) + leb(0) + leb(0) + text(evil)),
           (7, text(evil) + text(evil)))
    if kind == "odd":
        x.tasks(0, [(1, 1, 0, 1000, 500), (2, 1, 0, 2000, 5)])
        x.chunk(1, struct.pack("<Q", 0) + b"\x08\x01" + zig(1) + leb(1)
                + b"\x60" + zig(1) + leb(0) + zig(1), 0, 2)
    if kind == "one":
        x.tasks(0, [(7, 1, 0, 1000, 500)])
    if kind == "cancelled":
        x.tasks(0, [(1, 1, 0, 1000, 500), (2, 1, 1, 1600, 100)]
                + [(i, 1, 2, 1800, 0) for i in range(3, 9)])
        # Submitted, never run.
        x.chunk(1, struct.pack("<Q", 0) + b"\x02\x00" + zig(20) + leb(1)
                + zig(900) + zig(0) + zig(0), 0, 1)
    if kind == "lost":
        # A device that failed one execution; the task ran on a worker then.
        x.defs(lane(1, 2, "cuda0.0"))
        x.tasks(1, [(1, 1, 0, 1000, 500), (2, 1, 1, 1600, 100)])
        x.tasks(0, [(2, 1, 0, 2000, 900)])
    x.end()
    open(path, "wb").write(x.bytes)


# --- a full disk -------------------------------------------------------------

def full(heddle, logfile):
    def limits():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    r = subprocess.run([heddle, "trace", "view", logfile, "-o", "full.html"],
                       preexec_fn=limits, capture_output=True, text=True)
    assert r.returncode == 1, r
    assert r.stderr.startswith("heddle: the file 'full.html' cannot be"), r
    assert not os.path.exists("full.html")


# --- servers -----------------------------------------------------------------

class Server:
    def __init__(self, heddle, *args):
        self.p = subprocess.Popen([heddle, "trace", "serve", *args, "--json"],
                                  stdout=subprocess.PIPE, text=True)
        line = self.p.stdout.readline()
        assert line, "no address"
        self.port = json.loads(line)["port"]
        assert json.loads(line)["url"] == f"http://127.0.0.1:{self.port}/"

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def get(self, path, c=None):
        c = c or self.connect()
        c.request("GET", path)
        r = c.getresponse()
        return r.status, r.read(), dict(r.getheaders())

    def raw(self, data):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        s.sendall(data)
        out = b""
        while True:
            got = s.recv(65536)
            if not got:
                s.close()
                return out
            out += got

    def stop(self, sig):
        self.p.send_signal(sig)
        assert self.p.wait(20) == 0, self.p.returncode


def serve(heddle, logfile):
    s = Server(heddle, logfile, logfile)
    status, body, head = s.get("/")
    assert status == 200 and b"<html" in body and head["Cache-Control"]
    assert b"application/x-heddle\" data" not in body
    packs = []
    for k in (0, 1):
        c = s.connect()  # one connection for all
        status, body, head = s.get(f"/pack/{k}/dir", c)
        assert status == 200 and head["Content-Type"] == "application/json"
        p = {"dir": json.loads(body)}
        for name, entry in p["dir"]["arrays"].items():
            status, body, head = s.get(f"/pack/{k}/{name}?g=1", c)
            assert status == 200 and int(head["Content-Length"]) == len(body)
            p[name] = decode(body, entry)
        check_pack(p)
        packs.append(p)
    assert packs[0]["run_start"] == packs[1]["run_start"]
    inline = page("run.html")[0]
    for name in inline:
        assert name == "dir" or inline[name] == packs[0][name], name

    for path, want in (("/nothing", 404), ("/pack/0/nothing", 404),
                       ("/pack/2/dir", 404), ("/pack/0", 404),
                       ("/../../etc/passwd", 404), ("/pack/0/../dir", 404),
                       ("/pack/0/run_start?g=9", 409), ("/favicon.ico", 204)):
        assert s.get(path)[0] == want, path
    for method in ("POST", "HEAD", "PUT", "DELETE", "OPTIONS"):
        c = s.connect()
        c.request(method, "/", body="x" * 100000 if method == "POST" else None)
        r = c.getresponse()
        assert r.status == 405 and r.getheader("Allow") == "GET", method
    host = b"Host: localhost\r\n"
    for data, want in ((b"nonsense\r\n\r\n", b"400"),
                       (b"GET / HTTP/1.1\r\n\r\n", b"400"),
                       (b"GET / HTTP/3\r\n" + host + b"\r\n", b"505"),
                       (b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", b"403"),
                       (b"GET /" + b"a" * 9000, b"431"),
                       (b"\0" * 100 + b"\r\n\r\n", b"400"),
                       (b"GET / HTTP/1.0\r\n" + host + b"\r\n", b"200")):
        out = s.raw(data)
        assert out.startswith(b"HTTP/1.1 " + want), (data[:40], out[:60])

    # Two requests in one packet; one in many.
    two = b"GET /favicon.ico HTTP/1.1\r\n" + host + b"\r\n"
    out = s.raw(two + b"GET /x HTTP/1.1\r\nConnection: close\r\n" + host +
                b"\r\n")
    assert out.count(b"HTTP/1.1 204") == 1 and out.count(b"HTTP/1.1 404") == 1
    k = socket.create_connection(("127.0.0.1", s.port), timeout=20)
    for byte in two:
        k.sendall(bytes([byte]))
    assert k.recv(100).startswith(b"HTTP/1.1 204")

    # Readers that sleep, and connections that say nothing, stop nobody.
    lazy = []
    for _ in range(60):
        k = socket.create_connection(("127.0.0.1", s.port), timeout=20)
        lazy.append(k)
    for k in lazy[:10]:
        k.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            k.sendall(b"GET / HTTP/1.1\r\n" + host + b"\r\n")
        except OSError:
            pass  # it had to make room
    bad = []

    def ask():
        for _ in range(5):
            try:
                if len(s.get("/pack/0/run_start")[1]) != \
                        4 * len(packs[0]["run_start"]):
                    bad.append("short")
            except (OSError, http.client.HTTPException) as e:
                bad.append(repr(e))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad, bad
    # Nobody but this machine; a taken port is an error.
    r = subprocess.run([heddle, "trace", "serve", logfile, "--port",
                        str(s.port)], capture_output=True, text=True)
    assert r.returncode == 1 and "cannot be used" in r.stderr, r
    s.stop(signal.SIGTERM)
    for k in lazy:
        k.close()
    s = Server(heddle, logfile)
    assert s.get("/pack/1/dir")[0] == 404
    s.stop(signal.SIGINT)


def live(heddle, logfile):
    data = open(logfile, "rb").read()
    half = 600  # before any record
    open("grow.log", "wb").write(data[:half])
    s = Server(heddle, "grow.log", "--live")
    d = json.loads(s.get("/pack/0/dir")[1])
    assert d["live"] and d["partial"] and d["generation"] == 1
    old = d
    with open("grow.log", "ab") as f:
        f.write(data[half:])
    until = time.time() + 30
    while d["generation"] == 1 and time.time() < until:
        time.sleep(0.1)
        d = json.loads(s.get("/pack/0/dir")[1])
    assert d["generation"] == 2 and d["runs"] > old["runs"], d["runs"]
    assert d["partial"] == ""
    assert s.get("/pack/0/run_start?g=1")[0] == 409
    assert len(s.get("/pack/0/run_start?g=2")[1]) == 4 * d["runs"]
    os.unlink("grow.log")  # what is there stays
    time.sleep(1.5)
    assert s.get("/pack/0/dir")[0] == 200
    s.stop(signal.SIGTERM)


if __name__ == "__main__":
    verbs = {"page": page, "same": same, "log": log, "full": full,
             "serve": serve, "live": live, "energy": energy,
             "serve_energy": serve_energy}
    verbs[sys.argv[1]](*sys.argv[2:])
