#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A server with two networks: replies, refusals, many clients at once, SIGTERM.

serve.py HEDDLE ROOT. The networks are y = x + 1 over rows of four numbers, and the same for
one row alone.
"""
import http.client
import json
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, sys.argv[2] + "/examples/networks")
sys.dont_write_bytecode = True
import make as onnx  # noqa: E402


def add_one(dims):
    """y = x + 1."""
    return onnx.model("add", [onnx.node("Add", ["x", "one"], "y")],
                      [onnx.weights("one", [1], [1.0])], [onnx.port("x", dims)],
                      [onnx.port("y", dims)])


def port_i64(name, dims):
    """An input of i64."""
    shape = b"".join(onnx.chunk(1, onnx.number(1, d)) for d in dims)
    return onnx.chunk(1, name) + onnx.chunk(2, onnx.chunk(1, onnx.number(1, 7) +
                                                          onnx.chunk(2, shape)))


# --- requests ---------------------------------------------------------------------------------


class Failed(Exception):
    pass


def check(ok, what):
    if not ok:
        raise Failed(what)


def ask(port_number, method, path, body=None, headers=None):
    c = http.client.HTTPConnection("127.0.0.1", port_number, timeout=60)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, r.getheaders(), data


def infer(port_number, name, rows):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [len(rows), 4], "data": rows}]}
    status, _, data = ask(port_number, "POST", f"/v2/models/{name}/infer", json.dumps(body))
    return status, json.loads(data)


def replies(p):
    check(ask(p, "GET", "/v2/health/ready")[0] == 200, "ready")
    status, _, data = ask(p, "GET", "/v2/models/add")
    meta = json.loads(data)
    check(status == 200 and meta["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 4]}], f"metadata: {meta}")
    config = json.loads(ask(p, "GET", "/v2/models/add/config")[2])
    check(config["max_batch_size"] == 8, f"config: {config}")
    config = json.loads(ask(p, "GET", "/v2/models/one/config")[2])
    check(config["max_batch_size"] == 0, f"config of one row: {config}")
    status, reply = infer(p, "add", [[1, 2, 3, 4], [5, 6, 7, 8]])
    check(status == 200 and reply["outputs"][0]["data"] == [2, 3, 4, 5, 6, 7, 8, 9],
          f"numbers: {reply}")
    status, reply = infer(p, "one", [[1, 2, 3, 4]])
    check(status == 200 and reply["outputs"][0]["data"] == [2, 3, 4, 5], f"one row: {reply}")
    head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4],
                                   "parameters": {"binary_data_size": 16}}],
                       "parameters": {"binary_data_output": True}}).encode()
    status, fields, data = ask(p, "POST", "/v2/models/add/infer",
                               head + struct.pack("<4f", 1, 2, 3, 4),
                               {"Inference-Header-Content-Length": str(len(head))})
    at = int(dict(fields)["Inference-Header-Content-Length"])
    check(status == 200 and struct.unpack("<4f", data[at:]) == (2, 3, 4, 5), "binary data")


def refusals(p):
    status, reply = infer(p, "one", [[1, 2, 3, 4], [5, 6, 7, 8]])
    check(status == 400 and "dimension 0 of input 'x' is 2" in reply["error"], f"rows: {reply}")
    status, reply = infer(p, "none", [[1, 2, 3, 4]])
    check(status == 404, "no such model")
    status, _, data = ask(p, "POST", "/v2/models/add/infer", b"\x00\xff{")
    check(status == 400 and b"malformed" in data, f"garbage: {data}")
    status, _, data = ask(p, "POST", "/v2/models/add/infer", b"{}")
    check(status == 400 and b"no inputs" in data, f"nothing: {data}")
    check(ask(p, "POST", "/v2/models/add/infer", b"x" * (2 << 20))[0] == 413, "a large body")


def many(p, clients, each):
    bad = []

    def client(k):
        for i in range(each):
            row = [k, i, k + i, 0.5]
            status, reply = infer(p, "add", [row])
            if status != 200 or reply["outputs"][0]["data"] != [v + 1 for v in row]:
                bad.append((row, reply))

    threads = [threading.Thread(target=client, args=(k,)) for k in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not bad, f"many clients: {bad[:1]}")
    stats = json.loads(ask(p, "GET", "/v2/models/add/stats")[2])["model_stats"][0]
    check(stats["inference_count"] >= clients * each, f"counts: {stats}")
    text = ask(p, "GET", "/metrics")[2].decode()
    check('nv_inference_request_success{model="add",version="1"}' in text, "metrics")


def goes_on(p, heddle):
    """What cannot be served is refused in one sentence, and others are served."""
    nan = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4],
                                  "parameters": {"binary_data_size": 16}}],
                      "parameters": {"binary_data_output": True}}).encode()
    status, fields, data = ask(p, "POST", "/v2/models/add/infer",
                               nan + struct.pack("<4f", float("nan"), float("inf"), 1, 2),
                               {"Inference-Header-Content-Length": str(len(nan))})
    got = struct.unpack("<4f", data[int(dict(fields)["Inference-Header-Content-Length"]):])
    check(status == 200 and got[0] != got[0] and got[1:] == (float("inf"), 2, 3), f"NaN: {got}")
    wrong = {"name": {"name": "z"}, "type": {"datatype": "FP64"}, "rank": {"shape": [4]},
             "size": {"shape": [1, 5]}, "data": {"data": [1, 2, 3]}, "text": {"data": ["a"]},
             "sign": {"shape": [-1, 4]}, "overflow": {"shape": [2 ** 40, 2 ** 40]}}
    for what, member in wrong.items():
        x = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]} | member
        status, _, data = ask(p, "POST", "/v2/models/add/infer", json.dumps({"inputs": [x]}))
        check(status == 400 and json.loads(data)["error"], f"wrong {what}: {status} {data}")
    status, _, data = ask(p, "POST", "/v2/models/add/infer", b"x",
                          {"Content-Encoding": "gzip"})
    check(status == 415 and b"compressed" in data, f"compressed: {status} {data}")
    many_gib = {"name": "n", "datatype": "INT64", "shape": [1], "data": [1 << 44]}
    status, _, data = ask(p, "POST", "/v2/models/large/infer", json.dumps({"inputs": [many_gib]}))
    check(status in (500, 503) and json.loads(data)["error"], f"no memory: {status} {data}")
    check(infer(p, "add", [[1, 2, 3, 4]])[0] == 200, "after what was refused")
    away = onnx.model("away", [onnx.node("Add", ["x", "one"], "y")],
                      [onnx.number(1, 1) + onnx.number(2, 1) + onnx.chunk(8, "one") +
                       onnx.chunk(13, onnx.chunk(1, "location") + onnx.chunk(2, "none.bin")) +
                       onnx.number(14, 1)], [onnx.port("x", [1])], [onnx.port("y", [1])])
    with open("away.onnx", "wb") as f:
        f.write(away)
    gone = subprocess.run([heddle, "serve", "away.onnx", "--port", "0"], timeout=60,
                          capture_output=True, text=True)
    check(gone.returncode == 1 and "none.bin" in gone.stderr and gone.stderr.count("\n") == 1,
          f"external data: {gone}")


class Callers:
    """Clients that ask again and again, each on one connection, until they are told to end; or
    until the server ends, which it may only do behind a reply that says so."""

    def __init__(self, p, n):
        self.is_over = False
        self.bad = []
        self.good = 0
        clients = [http.client.HTTPConnection("127.0.0.1", p, timeout=60) for _ in range(n)]
        self.threads = [threading.Thread(target=self.run, args=(c,)) for c in clients]
        for c in clients:
            c.connect()
        for t in self.threads:
            t.start()

    def run(self, c):
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4],
                                       "data": [1, 2, 3, 4]}]})
        while not self.is_over:
            try:
                c.request("POST", "/v2/models/add/infer", body)
                r = c.getresponse()
                if r.status != 200 or json.loads(r.read())["outputs"][0]["data"] != [2, 3, 4, 5]:
                    self.bad.append(r.status)
                self.good += 1
                if r.getheader("Connection") == "close":
                    return
            except OSError as e:
                self.bad.append(repr(e))
                return

    def end(self):
        self.is_over = True
        for t in self.threads:
            t.join()
        return self.bad


def loads_again(p):
    """A model is read again and again while it is used: no request is lost."""
    callers = Callers(p, 4)
    for _ in range(20):
        check(ask(p, "POST", "/v2/repository/models/add/load")[0] == 200, "load under load")
    bad = callers.end()
    check(not bad and callers.good > 20, f"requests lost by loading: {bad[:3]} of {callers.good}")


def main():
    heddle = sys.argv[1]
    for name, dims in (("add", ["rows", 4]), ("one", [1, 4])):
        with open(name + ".onnx", "wb") as f:
            f.write(add_one(dims))
    with open("large.onnx", "wb") as f:
        f.write(onnx.model("large", [onnx.node("ConstantOfShape", ["n"], "y")], [],
                           [port_i64("n", [1])], [onnx.port("y", ["rows"])]))
    server = subprocess.Popen(
        [heddle, "serve", "add.onnx", "one=one.onnx", "large.onnx", "--port", "0", "--max-body",
         "1", "--json"],
        stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        p = json.loads(line)["port"]
        replies(p)
        refusals(p)
        many(p, 8, 20)
        goes_on(p, heddle)
        loads_again(p)
        taken = subprocess.run([heddle, "serve", "add.onnx", "--port", str(p)], timeout=60,
                               capture_output=True, text=True)
        check(taken.returncode == 1 and "cannot listen on 127.0.0.1" in taken.stderr,
              f"a port in use: {taken}")
        check(ask(p, "POST", "/v2/repository/models/add/load")[0] == 200, "load again")
        check(infer(p, "add", [[0, 0, 0, 0]])[0] == 200, "after loading again")
        callers = Callers(p, 4)
        while callers.good < 20:
            time.sleep(0.01)
        server.send_signal(signal.SIGTERM)
        check(server.wait(timeout=60) == 0, "SIGTERM")
        bad = callers.end()
        check(not bad, f"requests lost by SIGTERM: {bad[:3]}")
    except Failed as e:
        print(f"FAILED: {e}")
        return 1
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
