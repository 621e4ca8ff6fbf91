#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every call of tritonclient.http that a server of networks has an answer for.

serve_triton.py HEDDLE ROOT
"""
import json
import subprocess
import sys

import numpy
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

sys.path.insert(0, sys.argv[2] + "/examples/networks")
sys.dont_write_bytecode = True
import make as onnx  # noqa: E402


def check(ok, what):
    if not ok:
        print(f"FAILED: {what}")
        sys.exit(1)


def refused(what, status, call):
    try:
        call()
    except InferenceServerException as e:
        check(e.status() == status and e.message(), f"{what}: {e.status()} {e}")
        return
    check(False, f"{what}: no exception")


def describes(c):
    check(c.is_server_live() and c.is_server_ready(), "live, ready")
    check(c.is_model_ready("add") and c.is_model_ready("add", "1"), "the model is ready")
    check(not c.is_model_ready("none"), "no such model is ready")
    about = c.get_server_metadata()
    check(about["name"] == "heddle" and "binary_tensor_data" in about["extensions"], f"{about}")
    model = c.get_model_metadata("add")
    check(model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], f"{model}")
    check(c.get_model_config("add")["max_batch_size"] == 8, "config")
    check([m["name"] for m in c.get_model_repository_index()] == ["add"], "index")


def x_of(rows, binary):
    x = numpy.arange(4 * rows, dtype=numpy.float32).reshape(rows, 4)
    i = client.InferInput("x", [rows, 4], "FP32")
    i.set_data_from_numpy(x, binary_data=binary)
    return x, i


def infers(c):
    for binary_in in (True, False):
        for binary_out in (True, False, None):
            x, i = x_of(2, binary_in)
            o = None if binary_out is None else [
                client.InferRequestedOutput("y", binary_data=binary_out)]
            r = c.infer("add", [i], outputs=o, request_id="7", priority=1, timeout=10000000)
            check((r.as_numpy("y") == x + 1).all(), f"infer {binary_in} {binary_out}")
            check(r.get_response()["id"] == "7", "the id comes back")
    jobs = [(x_of(1 + k % 3, True), k) for k in range(40)]
    for (x, i), k in jobs:
        jobs[k] = x, c.async_infer("add", [i])
    for x, job in jobs:
        check((job.get_result().as_numpy("y") == x + 1).all(), "many at once")


def refusals(c):
    _, i = x_of(1, True)
    refused("no such model", "404", lambda: c.infer("none", [i]))
    refused("no such output", "400", lambda: c.infer(
        "add", [i], outputs=[client.InferRequestedOutput("z")]))
    wrong = client.InferInput("x", [1, 3], "FP32")
    wrong.set_data_from_numpy(numpy.zeros((1, 3), numpy.float32))
    refused("the wrong size", "400", lambda: c.infer("add", [wrong]))
    refused("compressed", "415",
            lambda: c.infer("add", [i], request_compression_algorithm="gzip"))


def counts(c):
    one = c.get_inference_statistics("add")["model_stats"]
    check(c.get_inference_statistics()["model_stats"] == one, "statistics of all")
    check(one[0]["inference_stats"]["success"]["count"] == 46, f"statistics: {one}")
    c.unload_model("add")
    _, i = x_of(1, True)
    refused("unloaded", "503", lambda: c.infer("add", [i]))
    c.load_model("add")
    check(c.is_model_ready("add"), "loaded again")


def main():
    with open("add.onnx", "wb") as f:
        f.write(onnx.model("add", [onnx.node("Add", ["x", "one"], "y")],
                           [onnx.weights("one", [1], [1.0])], [onnx.port("x", ["rows", 4])],
                           [onnx.port("y", ["rows", 4])]))
    server = subprocess.Popen([sys.argv[1], "serve", "add.onnx", "--port", "0", "--json"],
                              stdout=subprocess.PIPE, text=True)
    try:
        port = json.loads(server.stdout.readline())["port"]
        c = client.InferenceServerClient(f"127.0.0.1:{port}", concurrency=8)
        for part in (describes, infers, refusals, counts):
            part(c)
        c.close()
        server.terminate()
        check(server.wait(timeout=60) == 0, "SIGTERM")
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
