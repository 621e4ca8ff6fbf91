#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes echo.onnx, the decoder of examples/18_decoder.c: make_echo.py [FILE]

A transformer of two layers of attention, with the ports of a GPT-2 that keeps its past. The
weights are chosen by hand so that it continues what repeats: a head of the first layer looks at
the token before each token; the head of the second layer looks for the last place whose token
before is the present one, and copies the token that stands there. So after 7 3 9 5 7 comes 3.

A row of numbers has 16 places for the token, 16 for the token before, and one for each of 64
positions.
"""
import os
import struct
import sys

from make import chunk, model, node, number, weights

WORDS, MOST = 16, 64
BEFORE, AT, WIDTH = WORDS, 2 * WORDS, 2 * WORDS + MOST
SHARP = 40.0  # a softmax of scores so far apart is all or nothing


def varints(field, values):
    return b"".join(number(field, v & 2 ** 64 - 1) for v in values)


def with_ints(name, data, **attributes):
    """A node with attributes that are numbers or lists of numbers."""
    for key, v in attributes.items():
        kind = number(20, 7) + varints(8, v) if isinstance(v, list) else number(20, 2) + number(
            3, v & 2 ** 64 - 1)
        data += chunk(5, chunk(1, key) + kind)
    return data


def port(name, kind, dims):
    shape = b"".join(chunk(1, chunk(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return chunk(1, name) + chunk(2, chunk(1, number(1, kind) + chunk(2, shape)))


def integers(name, values, is_scalar=False):
    dims = b"" if is_scalar else number(1, len(values))
    return dims + number(2, 7) + chunk(8, name) + chunk(
        9, struct.pack(f"<{len(values)}q", *values))


def matrix(name, rows, columns, entries):
    values = [0.0] * (rows * columns)
    for (i, k), v in entries.items():
        values[i * columns + k] = v
    return weights(name, [rows, columns], values)


class Echo:
    def __init__(self):
        self.nodes, self.constants = [], []

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(with_ints(output, node(op, inputs, output), **attributes))
        return output

    def head(self, x, name, size):
        """x W as batch x heads x tokens x size, with one head."""
        self.constants.append(integers(name + ".shape", [0, -1, 1, size]))
        y = self.add("MatMul", [x, name], name + ".rows")
        y = self.add("Reshape", [y, name + ".shape"], name + ".split")
        return self.add("Transpose", [y], name + ".head", perm=[0, 2, 1, 3])

    def attention(self, x, layer, q, k, v):
        """q, k: size and entries of their matrices; v: entries, of WORDS columns."""
        for name, size, entries in (("q", *q), ("k", *k), ("v", WORDS, v)):
            self.constants.append(matrix(f"{layer}.{name}", WIDTH, size, entries))
        query = self.head(x, f"{layer}.q", q[0])
        keys, values = (self.add(
            "Concat", [f"past_key_values.{layer}.{kind}", self.head(x, f"{layer}.{kind[0]}", size)],
            f"present.{layer}.{kind}", axis=2) for kind, size in (("key", k[0]), ("value", WORDS)))
        turned = self.add("Transpose", [keys], f"{layer}.turned", perm=[0, 1, 3, 2])
        score = self.add("MatMul", [query, turned], f"{layer}.score")
        score = self.add("Where", ["seen", score, "hidden"], f"{layer}.masked")
        share = self.add("Softmax", [score], f"{layer}.share", axis=-1)
        y = self.add("MatMul", [share, values], f"{layer}.mixed")
        y = self.add("Transpose", [y], f"{layer}.joined", perm=[0, 2, 1, 3])
        self.constants.append(integers(f"{layer}.shape", [0, -1, WORDS]))
        return self.add("Reshape", [y, f"{layer}.shape"], f"{layer}.out")

    def mask(self):
        """seen: batch x 1 x tokens x all tokens, true where a token may look."""
        self.constants += [integers("0", [0], True), integers("1", [1], True),
                           integers("2", [2], True), integers("axis0", [0]),
                           integers("axis1", [1]), integers("axes12", [1, 2]),
                           weights("hidden", [1], [-1e9])]
        past = self.add("Gather", [self.add("Shape", ["past_key_values.0.key"], "past.shape"), "2"],
                        "past", axis=0)
        new = self.add("Gather", [self.add("Shape", ["input_ids"], "ids.shape"), "1"], "new",
                       axis=0)
        total = self.add("Add", [past, new], "total")
        queries = self.add("Unsqueeze", [self.add("Range", [past, total, "1"], "q"), "axis1"],
                           "queries")
        keys = self.add("Unsqueeze", [self.add("Range", ["0", total, "1"], "k"), "axis0"], "keys")
        causal = self.add("LessOrEqual", [keys, queries], "causal")
        there = self.add("Unsqueeze", [self.add("Cast", ["attention_mask"], "bits", to=9),
                                       "axes12"], "there")
        self.add("And", [causal, there], "seen")

    def bytes(self):
        one = {(i, i): 1.0 for i in range(WORDS)}
        self.constants += [
            matrix("words", WORDS, WIDTH, one),
            matrix("places", MOST, WIDTH, {(i, AT + i): 1.0 for i in range(MOST)}),
            matrix("put", WORDS, WIDTH, {(i, BEFORE + i): 1.0 for i in range(WORDS)}),
            matrix("wide", WORDS, WORDS, {(i, i): SHARP / 4 for i in range(WORDS)})]
        self.mask()
        x = self.add("Add", [self.add("Gather", ["words", "input_ids"], "tokens", axis=0),
                             self.add("Gather", ["places", "position_ids"], "position", axis=0)],
                     "x0")
        # A token asks for the position before its own.
        y = self.attention(x, 0, (MOST, {(AT + i, i - 1): SHARP for i in range(1, MOST)}),
                           (MOST, {(AT + i, i): 1.0 for i in range(MOST)}), one)
        x = self.add("Add", [x, self.add("MatMul", [y, "put"], "before")], "x1")
        # It asks for its own token among those before; the later place counts more, the first
        # place has none before. The last of the WORDS + 1 numbers of a key is its place.
        ask = {(i, i): SHARP for i in range(WORDS)}
        ask.update({(i, WORDS): SHARP for i in range(WORDS)})
        key = {(BEFORE + i, i): 1.0 for i in range(WORDS)}
        key.update({(AT + i, WORDS): i / MOST if i > 0 else -2.0 for i in range(MOST)})
        y = self.attention(x, 1, (WORDS + 1, ask), (WORDS + 1, key), one)
        self.add("MatMul", [y, "wide"], "logits")
        total = "past_sequence_length + sequence_length"
        sizes = [(f"{i}.{kind}", size) for i, k in ((0, MOST), (1, WORDS + 1))
                 for kind, size in (("key", k), ("value", WORDS))]
        ids = ["batch_size", "sequence_length"]
        return model(
            "echo", self.nodes, self.constants,
            [port("input_ids", 7, ids), port("attention_mask", 7, ["batch_size", total]),
             port("position_ids", 7, ids)] +
            [port("past_key_values." + n, 1, ["batch_size", 1, "past_sequence_length", s])
             for n, s in sizes],
            [port("logits", 1, ids + [WORDS])] +
            [port("present." + n, 1, ["batch_size", 1, total, s]) for n, s in sizes])


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "echo.onnx"), "wb") as f:
        f.write(Echo().bytes())
