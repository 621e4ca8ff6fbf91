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

sys.path.insert(0, sys.argv[2] + "/examples/networks")
sys.dont_write_bytecode = True
import make as onnx  # noqa: E402


def add_one(dims):
    """y = x + 1."""
    return onnx.model("add", [onnx.node("Add", ["x", "one"], "y")],
                      [onnx.weights("one", [1], [1.0])], [onnx.port("x", dims)],
                      [onnx.port("y", dims)])


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


def triton(p):
    try:
        import numpy
        import tritonclient.http as client
    except ImportError:
        print("without tritonclient: not there")
        return
    c = client.InferenceServerClient(f"127.0.0.1:{p}")
    x = numpy.arange(8, dtype=numpy.float32).reshape(2, 4)
    for binary in (True, False):
        i = client.InferInput("x", [2, 4], "FP32")
        i.set_data_from_numpy(x, binary_data=binary)
        o = client.InferRequestedOutput("y", binary_data=binary)
        y = c.infer("add", [i], outputs=[o]).as_numpy("y")
        check((y == x + 1).all(), f"tritonclient: {y}")


def main():
    heddle = sys.argv[1]
    for name, dims in (("add", ["rows", 4]), ("one", [1, 4])):
        with open(name + ".onnx", "wb") as f:
            f.write(add_one(dims))
    server = subprocess.Popen(
        [heddle, "serve", "add.onnx", "one=one.onnx", "--port", "0", "--max-body", "1", "--json"],
        stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        p = json.loads(line)["port"]
        replies(p)
        refusals(p)
        many(p, 8, 20)
        triton(p)
        taken = subprocess.run([heddle, "serve", "add.onnx", "--port", str(p)], timeout=60,
                               capture_output=True, text=True)
        check(taken.returncode == 1 and "cannot listen on 127.0.0.1" in taken.stderr,
              f"a port in use: {taken}")
        check(ask(p, "POST", "/v2/repository/models/add/load")[0] == 200, "load again")
        check(infer(p, "add", [[0, 0, 0, 0]])[0] == 200, "after loading again")
        server.send_signal(signal.SIGTERM)
        check(server.wait(timeout=60) == 0, "SIGTERM")
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
