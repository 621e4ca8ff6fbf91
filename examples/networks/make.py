#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes flowers.onnx, the network of examples/17_network.c: make.py [FILE]

Four numbers of a flower become the probabilities of three kinds, through one hidden
layer. The weights are chosen by hand, not trained. An ONNX file is a message of
protobuf; the functions below write the few fields that a small network needs, so that
no package is needed. Other scripts take them from here.
"""
import os
import struct
import sys


def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def chunk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def port(name, dims):
    """An input or output of f32; a dimension is a number or a name."""
    shape = b"".join(chunk(1, chunk(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, 1) + chunk(2, shape)))


def weights(name, dims, values):
    return (b"".join(number(1, d) for d in dims) + number(2, 1) + chunk(8, name) +
            chunk(9, struct.pack(f"<{len(values)}f", *values)))


def node(op, inputs, output):
    return (b"".join(chunk(1, i) for i in inputs) + chunk(2, output) + chunk(3, output) +
            chunk(4, op))


def model(name, nodes, constants, inputs, outputs, opset=17):
    graph = (b"".join(chunk(1, n) for n in nodes) + chunk(2, name) +
             b"".join(chunk(5, c) for c in constants) + b"".join(chunk(11, i) for i in inputs) +
             b"".join(chunk(12, o) for o in outputs))
    return number(1, 8) + chunk(7, graph) + chunk(8, number(2, opset))


def flowers():
    hidden = [0.5, -1.0, 0.2, 0.1, -0.4, 0.3, 0.8, -0.6, 0.9, 0.0, -1.2, 0.7, 0.4, 0.6, -0.5, 1.1]
    last = [1.0, -0.5, -0.8, -1.1, 0.9, 0.3, 0.2, 0.4, -0.9, -0.7, 0.1, 1.2]
    return model(
        "flowers",
        [node("MatMul", ["flower", "w1"], "sums"), node("Add", ["sums", "b1"], "shifted"),
         node("Relu", ["shifted"], "hidden"), node("MatMul", ["hidden", "w2"], "scores"),
         node("Softmax", ["scores"], "kind")],
        [weights("w1", [4, 4], hidden), weights("b1", [4], [0.1, 0.0, -0.2, 0.3]),
         weights("w2", [4, 3], last)],
        [port("flower", ["flowers", 4])], [port("kind", ["flowers", 3])])


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "flowers.onnx"), "wb") as f:
        f.write(flowers())
