#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes network models as ONNX files, with random weights, for tests and benchmarks.

The shapes of the layers are those of the published networks, so the work is the work
of the real ones; the weights are random numbers from a fixed seed, scaled so that
activations neither vanish nor overflow. Nothing is downloaded. PyPI's `onnx` and
`numpy` are needed.

    models.py --out DIR [--tiny] [--list] [NAME ...]

Without a NAME all networks are written, and --list prints them, but not the decoders with
past keys and values, gpt2_past and llama_past, which `generate` runs. --tiny divides
widths and depths, for tests that have to be quick. The graphs look as exporters write
them: some keep batch normalisation, and GELU, RMS normalisation and attention appear in
their parts.
"""
import argparse
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Net:
    """A graph under construction. Methods append a node and return its output's name."""

    def __init__(self, name, seed=1):
        self.name = name
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def _fresh(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def const(self, array, hint="c"):
        name = self._fresh(hint)
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64), "i")

    def scalar(self, value):
        return self.const(np.array(value, np.float32), "s")

    def random(self, *shape, scale):
        data = self.rng.standard_normal(shape, np.float32) * np.float32(scale)
        return self.const(data, "w")

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [self._fresh(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0],
                                           **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, shape, dtype=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs,
                                  self.weights)
        return helper.make_model(graph, producer_name="heddle-models", ir_version=8,
                                 opset_imports=[helper.make_opsetid("", OPSET)])

    # --- layers ---------------------------------------------------------------

    def conv(self, x, cin, cout, k, stride=1, groups=1, bias=True, gain=2.0):
        fan = cin // groups * k * k
        w = self.random(cout, cin // groups, k, k, scale=(gain / fan) ** 0.5)
        args = [x, w]
        if bias:
            args.append(self.random(cout, scale=0.05))
        p = k // 2
        return self.node("Conv", *args, kernel_shape=[k, k], strides=[stride, stride],
                         pads=[p, p, p, p], group=groups, dilations=[1, 1])

    def batch_norm(self, x, c):
        gamma = self.const(1 + 0.1 * self.rng.standard_normal(c).astype(np.float32))
        beta = self.random(c, scale=0.05)
        mean = self.random(c, scale=0.05)
        var = self.const(1 + 0.2 * self.rng.random(c).astype(np.float32))
        return self.node("BatchNormalization", x, gamma, beta, mean, var, epsilon=1e-5)

    def clip(self, x, low, high):
        return self.node("Clip", x, self.scalar(low), self.scalar(high))

    def linear(self, x, cin, cout, bias=True, scale=None):
        w = self.random(cin, cout, scale=scale or cin ** -0.5)
        y = self.node("MatMul", x, w)
        return self.node("Add", y, self.random(cout, scale=0.02)) if bias else y

    def gemm(self, x, cin, cout):
        w = self.random(cout, cin, scale=cin ** -0.5)
        return self.node("Gemm", x, w, self.random(cout, scale=0.02), transB=1)

    def layer_norm(self, x, d, eps=1e-5):
        gamma = self.const(1 + 0.1 * self.rng.standard_normal(d).astype(np.float32))
        return self.node("LayerNormalization", x, gamma, self.random(d, scale=0.02),
                         axis=-1, epsilon=eps)

    def rms_norm(self, x, d):
        """In its parts, as exporters write it below opset 23."""
        mean = self.node("ReduceMean", self.node("Pow", x, self.scalar(2.0)), axes=[-1],
                         keepdims=1)
        root = self.node("Sqrt", self.node("Add", mean, self.scalar(1e-5)))
        unit = self.node("Mul", x, self.node("Reciprocal", root))
        gamma = self.const(1 + 0.1 * self.rng.standard_normal(d).astype(np.float32))
        return self.node("Mul", gamma, unit)

    def gelu(self, x):
        """By erf, in its parts."""
        inner = self.node("Erf", self.node("Div", x, self.scalar(2 ** 0.5)))
        half = self.node("Mul", x, self.node("Add", inner, self.scalar(1.0)))
        return self.node("Mul", half, self.scalar(0.5))

    def gelu_tanh(self, x):
        cube = self.node("Mul", self.node("Pow", x, self.scalar(3.0)), self.scalar(0.044715))
        inner = self.node("Mul", self.node("Add", x, cube), self.scalar((2 / np.pi) ** 0.5))
        one = self.node("Add", self.node("Tanh", inner), self.scalar(1.0))
        return self.node("Mul", self.node("Mul", x, self.scalar(0.5)), one)

    def silu(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def heads(self, x, n, d):
        y = self.node("Reshape", x, self.ints(0, -1, n, d))
        return self.node("Transpose", y, perm=[0, 2, 1, 3])

    def attention(self, q, k, v, n, d, mask=None):
        """q, k, v: batch x sequence x (n d). The parts as exporters write them."""
        q, v = self.heads(q, n, d), self.heads(v, n, d)
        k = self.node("Transpose", self.node("Reshape", k, self.ints(0, -1, n, d)),
                      perm=[0, 2, 3, 1])
        return self.attention_heads(q, k, v, n, d, mask)

    def attention_heads(self, q, k, v, n, d, mask):
        """q and v: batch x heads x sequence x d; k: batch x heads x d x sequence."""
        score = self.node("Div", self.node("MatMul", q, k), self.scalar(d ** 0.5))
        if mask is not None:
            score = self.node("Add", score, mask)
        out = self.node("MatMul", self.node("Softmax", score, axis=-1), v)
        out = self.node("Transpose", out, perm=[0, 2, 1, 3])
        return self.node("Reshape", out, self.ints(0, -1, n * d))

    def causal_mask(self, s):
        m = np.triu(np.full((s, s), -1e9, np.float32), 1)
        return self.const(m[None, None])

    def encoder(self, x, d, heads, mlp, mask=None):
        """A transformer block with the norms before its two parts."""
        h = self.layer_norm(x, d)
        a = self.attention(self.linear(h, d, d), self.linear(h, d, d), self.linear(h, d, d),
                           heads, d // heads, mask)
        x = self.node("Add", x, self.linear(a, d, d))
        h = self.gelu(self.linear(self.layer_norm(x, d), d, mlp))
        return self.node("Add", x, self.linear(h, mlp, d))


# --- convolutional networks ----------------------------------------------------


def resnet50(tiny):
    net = Net("resnet50")
    size, base, blocks = (64, 8, (1, 1, 1, 1)) if tiny else (224, 64, (3, 4, 6, 3))
    x = net.input("image", ["N", 3, size, size])
    x = net.node("Relu", net.conv(x, 3, base, 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    cin = base
    for stage, n in enumerate(blocks):
        width = base << stage
        for b in range(n):
            stride = 2 if b == 0 and stage > 0 else 1
            y = net.node("Relu", net.conv(x, cin, width, 1))
            y = net.node("Relu", net.conv(y, width, width, 3, stride))
            y = net.conv(y, width, 4 * width, 1, gain=0.2)
            if b == 0:
                x = net.conv(x, cin, 4 * width, 1, stride, gain=1.0)
            x = net.node("Relu", net.node("Add", y, x))
            cin = 4 * width
    return classifier(net, x, cin)


def classifier(net, x, channels, classes=1000):
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    x = net.gemm(x, channels, classes)
    net.output(x, "logits", ["N", classes])
    return net


def quantized(net, x, variance, signed):
    """A tensor as bytes and back: `variance` of its numbers tells the scale."""
    scale = net.scalar(4 * variance ** 0.5 / (127 if signed else 255))
    zero = net.const(np.array(128 if signed else 0, np.uint8), "z")
    return net.node("DequantizeLinear", net.node("QuantizeLinear", x, scale, zero), scale, zero)


def quantized_conv(net, x, power, cin, cout, k, stride=1, gain=2.0):
    """Weights of 8 bits with a scale for each channel. `power` is the mean square of x."""
    fan = cin * k * k
    w = net.rng.standard_normal((cout, cin, k, k), np.float32) * np.float32((gain / fan) ** 0.5)
    scale = np.abs(w).reshape(cout, -1).max(1) / 127
    w = np.rint(w / scale[:, None, None, None]).astype(np.int8)
    step = 4 * power ** 0.5 / 255
    b = np.rint(0.05 * net.rng.standard_normal(cout) / (step * scale)).astype(np.int32)
    weight = net.node("DequantizeLinear", net.const(w, "w"), net.const(scale.astype(np.float32)),
                      net.const(np.zeros(cout, np.int8), "z"), axis=0)
    bias = net.node("DequantizeLinear", net.const(b, "w"),
                    net.const((step * scale).astype(np.float32)),
                    net.const(np.zeros(cout, np.int32), "z"), axis=0)
    p = k // 2
    return net.node("Conv", x, weight, bias, kernel_shape=[k, k], strides=[stride, stride],
                    pads=[p, p, p, p], group=1, dilations=[1, 1])


def resnet50_int8(tiny):
    """The same network in 8 bits, as quantizers write it: what is between two operators becomes
    bytes and back. The scales follow from the variances that the random weights lead to."""
    net = Net("resnet50_int8")
    size, base, blocks = (64, 8, (1, 1, 1, 1)) if tiny else (224, 64, (3, 4, 6, 3))

    def relu(y, power):
        return quantized(net, net.node("Relu", y), power, False)

    x = quantized(net, net.input("image", ["N", 3, size, size]), 1.0, True)
    x = relu(quantized_conv(net, x, 1.0, 3, base, 7, 2), 2.0)
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    cin, power = base, 2.0
    for stage, n in enumerate(blocks):
        width = base << stage
        for b in range(n):
            stride = 2 if b == 0 and stage > 0 else 1
            y = relu(quantized_conv(net, x, power, cin, width, 1), 2 * power)
            y = relu(quantized_conv(net, y, power, width, width, 3, stride), 2 * power)
            y = quantized(net, quantized_conv(net, y, power, width, 4 * width, 1, gain=0.2),
                          0.2 * power, True)
            if b == 0:
                x = quantized(net, quantized_conv(net, x, power, cin, 4 * width, 1, stride,
                                                  gain=1.0), power, True)
            power *= 1.2
            x = relu(net.node("Add", y, x), power)
            cin = 4 * width
    return classifier(net, x, cin)


def mobilenetv2(tiny):
    net = Net("mobilenetv2")
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1)]
    size = 224
    if tiny:
        size, rows = 64, [(1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 1, 2)]
    x = net.input("image", ["N", 3, size, size])
    x = net.clip(net.conv(x, 3, 32, 3, 2), 0, 6)
    cin = 32
    for expand, cout, n, first in rows:
        for b in range(n):
            stride = first if b == 0 else 1
            y, mid = x, cin * expand
            if expand != 1:
                y = net.clip(net.conv(y, cin, mid, 1), 0, 6)
            y = net.clip(net.conv(y, mid, mid, 3, stride, groups=mid), 0, 6)
            y = net.conv(y, mid, cout, 1)
            x = net.node("Add", x, y) if stride == 1 and cin == cout else y
            cin = cout
    last = 64 if tiny else 1280
    x = net.clip(net.conv(x, cin, last, 1), 0, 6)
    return classifier(net, x, last)


def squeeze_excite(net, x, c, mid, gate, inner):
    s = net.node("GlobalAveragePool", x)
    s = net.conv(s, c, mid, 1)
    s = net.node("Relu", s) if inner == "relu" else net.silu(s)
    s = net.conv(s, mid, c, 1)
    s = (net.node("HardSigmoid", s, alpha=1 / 6, beta=0.5) if gate == "hard"
         else net.node("Sigmoid", s))
    return net.node("Mul", x, s)


def mobilenetv3(tiny):
    """The large one. Batch normalisation is left for the reader of the model to fold."""
    net = Net("mobilenetv3")
    # kernel, expansion, out, squeeze-and-excite, hard swish, stride
    rows = [(3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1),
            (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
            (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
            (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
            (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)]
    size = 224
    if tiny:
        size, rows = 64, [(3, 16, 16, 0, 0, 1), (5, 48, 24, 1, 1, 2), (5, 48, 24, 1, 1, 1)]

    def block(x, cin, cout, k, stride=1, groups=1):
        return net.batch_norm(net.conv(x, cin, cout, k, stride, groups, bias=False), cout)

    x = net.input("image", ["N", 3, size, size])
    x = net.node("HardSwish", block(x, 3, 16, 3, 2))
    cin = 16
    for k, mid, cout, se, hs, stride in rows:
        def act(v, hs=hs):
            return net.node("HardSwish", v) if hs else net.node("Relu", v)
        y = x
        if mid != cin:
            y = act(block(y, cin, mid, 1))
        y = act(block(y, mid, mid, k, stride, mid))
        if se:
            y = squeeze_excite(net, y, mid, max(8, mid // 4 // 8 * 8), "hard", "relu")
        y = block(y, mid, cout, 1)
        x = net.node("Add", x, y) if stride == 1 and cin == cout else y
        cin = cout
    last, hidden = (48, 64) if tiny else (960, 1280)
    x = net.node("HardSwish", block(x, cin, last, 1))
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    x = net.node("HardSwish", net.gemm(x, last, hidden))
    net.output(net.gemm(x, hidden, 1000), "logits", ["N", 1000])
    return net


def efficientnet(tiny):
    """B0."""
    net = Net("efficientnet")
    rows = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
            (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]
    size = 224
    if tiny:
        size, rows = 64, [(1, 3, 1, 16, 1), (6, 5, 2, 24, 2)]
    x = net.input("image", ["N", 3, size, size])
    x = net.silu(net.conv(x, 3, 32, 3, 2))
    cin = 32
    for expand, k, first, cout, n in rows:
        for b in range(n):
            stride = first if b == 0 else 1
            y, mid = x, cin * expand
            if expand != 1:
                y = net.silu(net.conv(y, cin, mid, 1))
            y = net.silu(net.conv(y, mid, mid, k, stride, mid))
            y = squeeze_excite(net, y, mid, max(1, cin // 4), "soft", "silu")
            y = net.conv(y, mid, cout, 1)
            x = net.node("Add", x, y) if stride == 1 and cin == cout else y
            cin = cout
    last = 64 if tiny else 1280
    return classifier(net, net.silu(net.conv(x, cin, last, 1)), last)


def unet(tiny):
    net = Net("unet")
    size, base, depth = (32, 4, 2) if tiny else (256, 32, 4)
    x = net.input("image", ["N", 3, size, size])

    def double(x, cin, cout):
        for c in (cin, cout):
            x = net.node("Relu", net.batch_norm(net.conv(x, c, cout, 3, bias=False), cout))
        return x

    skips, cin = [], 3
    for level in range(depth):
        x = double(x, cin, base << level)
        cin = base << level
        skips.append(x)
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = double(x, cin, base << depth)
    for level in reversed(range(depth)):
        cin, cout = base << (level + 1), base << level
        w = net.random(cin, cout, 2, 2, scale=cin ** -0.5)
        x = net.node("ConvTranspose", x, w, net.random(cout, scale=0.05), kernel_shape=[2, 2],
                     strides=[2, 2])
        x = double(net.node("Concat", skips[level], x, axis=1), 2 * cout, cout)
    net.output(net.conv(x, base, 2, 1), "mask", ["N", 2, size, size])
    return net


# --- transformers ----------------------------------------------------------------


def vit(tiny):
    net = Net("vit")
    size, patch, d, layers, heads = (32, 8, 32, 2, 4) if tiny else (224, 16, 768, 12, 12)
    n = (size // patch) ** 2
    x = net.input("image", ["N", 3, size, size])
    w = net.random(d, 3, patch, patch, scale=(3 * patch * patch) ** -0.5)
    x = net.node("Conv", x, w, net.random(d, scale=0.02), kernel_shape=[patch, patch],
                 strides=[patch, patch])
    x = net.node("Transpose", net.node("Reshape", x, net.ints(0, d, n)), perm=[0, 2, 1])
    # The class token, once per image of the batch.
    batch = net.node("Gather", net.node("Shape", x), net.ints(0), axis=0)
    shape = net.node("Concat", batch, net.ints(1, d), axis=0)
    token = net.node("Expand", net.random(1, 1, d, scale=0.02), shape)
    x = net.node("Concat", token, x, axis=1)
    x = net.node("Add", x, net.random(1, n + 1, d, scale=0.02))
    for _ in range(layers):
        x = net.encoder(x, d, heads, 4 * d)
    x = net.layer_norm(x, d)
    x = net.node("Gather", x, net.const(np.array(0, np.int64)), axis=1)
    net.output(net.gemm(x, d, 1000), "logits", ["N", 1000])
    return net


def bert(tiny):
    """The base one, sequences of 128. Norms come after the two parts of a block."""
    net = Net("bert")
    s, d, layers, heads, words = (16, 32, 2, 4, 100) if tiny else (128, 768, 12, 12, 30522)
    ids = net.input("input_ids", ["N", s], TensorProto.INT64)
    attend = net.input("attention_mask", ["N", s], TensorProto.INT64)
    x = net.node("Gather", net.random(words, d, scale=0.02), ids, axis=0)
    x = net.node("Add", x, net.random(1, s, d, scale=0.02))
    x = net.layer_norm(x, d, 1e-12)
    mask = net.node("Unsqueeze", attend, net.ints(1, 2))
    mask = net.node("Cast", mask, to=TensorProto.FLOAT)
    mask = net.node("Mul", net.node("Sub", net.scalar(1.0), mask), net.scalar(-1e9))
    for _ in range(layers):
        a = net.attention(net.linear(x, d, d), net.linear(x, d, d), net.linear(x, d, d), heads,
                          d // heads, mask)
        x = net.layer_norm(net.node("Add", net.linear(a, d, d), x), d, 1e-12)
        h = net.linear(net.gelu(net.linear(x, d, 4 * d)), 4 * d, d)
        x = net.layer_norm(net.node("Add", h, x), d, 1e-12)
    net.output(x, "last_hidden_state", ["N", s, d])
    return net


def gpt2(tiny):
    """The small one, 128 tokens; the head reads the words' table the other way round."""
    net = Net("gpt2")
    s, d, layers, heads, words = (16, 32, 2, 4, 100) if tiny else (128, 768, 12, 12, 50257)
    ids = net.input("input_ids", ["N", s], TensorProto.INT64)
    table = net.random(words, d, scale=0.02)
    x = net.node("Gather", table, ids, axis=0)
    x = net.node("Add", x, net.random(1, s, d, scale=0.01))
    mask = net.causal_mask(s)
    for _ in range(layers):
        h = net.linear(net.layer_norm(x, d), d, 3 * d, scale=0.02)
        q, k, v = net.node("Split", h, net.ints(d, d, d), outputs=3, axis=2)
        a = net.attention(q, k, v, heads, d // heads, mask)
        x = net.node("Add", x, net.linear(a, d, d, scale=0.02))
        h = net.gelu_tanh(net.linear(net.layer_norm(x, d), d, 4 * d, scale=0.02))
        x = net.node("Add", x, net.linear(h, 4 * d, d, scale=0.02))
    x = net.layer_norm(x, d)
    net.output(net.node("MatMul", x, net.node("Transpose", table, perm=[1, 0])), "logits",
               ["N", s, words])
    return net


def rotate(net, x, cos, sin, d):
    """Rotary positions: halves of each head as the two coordinates."""
    low = net.node("Slice", x, net.ints(0), net.ints(d // 2), net.ints(3))
    high = net.node("Slice", x, net.ints(d // 2), net.ints(2 ** 62), net.ints(3))
    turned = net.node("Concat", net.node("Neg", high), low, axis=3)
    return net.node("Add", net.node("Mul", x, cos), net.node("Mul", turned, sin))


def llama(tiny):
    """A decoder of 0.3 thousand million weights with grouped keys and values."""
    net = Net("llama")
    s, d, layers, heads, groups, mlp, words = (
        (16, 32, 2, 4, 2, 64, 100) if tiny else (128, 1024, 16, 16, 8, 2816, 32000))
    hd = d // heads
    ids = net.input("input_ids", ["N", s], TensorProto.INT64)
    x = net.node("Gather", net.random(words, d, scale=1.0), ids, axis=0)
    mask = net.causal_mask(s)
    angle = np.outer(np.arange(s), 10000.0 ** (-np.arange(0, hd, 2) / hd))
    angle = np.concatenate([angle, angle], 1)[None, None].astype(np.float32)
    cos, sin = net.const(np.cos(angle)), net.const(np.sin(angle))
    for _ in range(layers):
        h = net.rms_norm(x, d)
        q = rotate(net, net.heads(net.linear(h, d, d, False), heads, hd), cos, sin, hd)
        k = rotate(net, net.heads(net.linear(h, d, groups * hd, False), groups, hd), cos, sin, hd)
        v = net.heads(net.linear(h, d, groups * hd, False), groups, hd)
        k, v = repeat(net, k, groups, heads, hd), repeat(net, v, groups, heads, hd)
        k = net.node("Transpose", k, perm=[0, 1, 3, 2])
        a = net.attention_heads(q, k, v, heads, hd, mask)
        x = net.node("Add", x, net.linear(a, d, d, False))
        h = net.rms_norm(x, d)
        gate = net.silu(net.linear(h, d, mlp, False))
        h = net.node("Mul", gate, net.linear(h, d, mlp, False))
        x = net.node("Add", x, net.linear(h, mlp, d, False))
    x = net.linear(net.rms_norm(x, d), d, words, False)
    net.output(x, "logits", ["N", s, words])
    return net


def repeat(net, x, groups, heads, hd):
    """Each group of keys or values serves heads / groups heads."""
    if groups == heads:
        return x
    shape = net.node("Shape", x)
    batch = net.node("Slice", shape, net.ints(0), net.ints(1), net.ints(0))
    length = net.node("Slice", shape, net.ints(2), net.ints(3), net.ints(0))
    wide = net.node("Concat", batch, net.ints(groups, heads // groups), length, net.ints(hd),
                    axis=0)
    flat = net.node("Concat", batch, net.ints(heads), length, net.ints(hd), axis=0)
    x = net.node("Expand", net.node("Unsqueeze", x, net.ints(2)), wide)
    return net.node("Reshape", x, flat)


# --- decoders with past keys and values --------------------------------------------
#
# Inputs and outputs have the names and symbols that Hugging Face's exporters give them.


MIN = float(np.finfo(np.float32).min)


class Decoder(Net):
    """Ports of a decoder, and what all of its layers need."""

    def __init__(self, name, layers, groups, hd):
        super().__init__(name)
        self.groups, self.hd = groups, hd
        total = "past_sequence_length + sequence_length"
        self.ids = self.input("input_ids", ["batch_size", "sequence_length"], TensorProto.INT64)
        self.past = [[self.input(f"past_key_values.{i}.{kind}",
                                 ["batch_size", groups, "past_sequence_length", hd])
                      for kind in ("key", "value")] for i in range(layers)]
        self.attend = self.input("attention_mask", ["batch_size", total], TensorProto.INT64)
        self.positions = self.input("position_ids", ["batch_size", "sequence_length"],
                                    TensorProto.INT64)
        self.before = self.size(self.past[0][0], 2)
        self.total = self.node("Add", self.before, self.size(self.ids, 1))

    def size(self, x, axis):
        return self.node("Gather", self.node("Shape", x), self.ints(axis), axis=0)

    def append(self, layer, k, v):
        """The past of a layer, longer by the new keys and values."""
        out = []
        for kind, past, new in zip(("key", "value"), self.past[layer], (k, v)):
            name = f"present.{layer}.{kind}"
            self.nodes.append(helper.make_node("Concat", [past, new], [name], name=name, axis=2))
            self.outputs.append(helper.make_tensor_value_info(
                name, TensorProto.FLOAT, ["batch_size", self.groups,
                                          "past_sequence_length + sequence_length", self.hd]))
            out.append(name)
        return out

    def logits(self, x, words):
        self.output(x, "logits", ["batch_size", "sequence_length", words])
        self.outputs.insert(0, self.outputs.pop())
        return self


def gpt2_past(tiny):
    """The small one with 1024 positions. Keys to come are hidden by a triangle of booleans."""
    d, layers, heads, words, most = (32, 2, 4, 100, 128) if tiny else (768, 12, 12, 50257, 1024)
    net = Decoder("gpt2_past", layers, heads, d // heads)
    x = net.node("Gather", net.random(words, d, scale=0.3 if tiny else 0.02), net.ids, axis=0)
    x = net.node("Add", x, net.node("Gather", net.random(most, d, scale=0.01), net.positions,
                                    axis=0))
    tril = net.const(np.tril(np.ones((most, most), bool))[None, None])
    tril = net.node("Slice", tril, net.before, net.total, net.ints(2))
    tril = net.node("Slice", tril, net.ints(0), net.total, net.ints(3))
    attend = net.node("Cast", net.node("Unsqueeze", net.attend, net.ints(1, 2)),
                      to=TensorProto.FLOAT)
    mask = net.node("Mul", net.node("Sub", net.scalar(1.0), attend), net.scalar(MIN))
    for i in range(layers):
        h = net.linear(net.layer_norm(x, d), d, 3 * d, scale=0.3 if tiny else 0.02)
        q, k, v = net.node("Split", h, net.ints(d, d, d), outputs=3, axis=2)
        q, k, v = (net.heads(t, heads, d // heads) for t in (q, k, v))
        k, v = net.append(i, k, v)
        score = net.node("MatMul", q, net.node("Transpose", k, perm=[0, 1, 3, 2]))
        score = net.node("Div", score, net.scalar((d // heads) ** 0.5))
        score = net.node("Add", net.node("Where", tril, score, net.scalar(MIN)), mask)
        a = net.node("MatMul", net.node("Softmax", score, axis=-1), v)
        a = net.node("Reshape", net.node("Transpose", a, perm=[0, 2, 1, 3]), net.ints(0, -1, d))
        x = net.node("Add", x, net.linear(a, d, d, scale=0.02))
        h = net.gelu_tanh(net.linear(net.layer_norm(x, d), d, 4 * d, scale=0.02))
        x = net.node("Add", x, net.linear(h, 4 * d, d, scale=0.02))
    return net.logits(net.linear(net.layer_norm(x, d), d, words, False), words)


def llama_past(tiny):
    """Rotary positions computed from position_ids, and the mask from ranges."""
    d, layers, heads, groups, mlp, words = (
        (32, 2, 4, 2, 64, 100) if tiny else (1024, 16, 16, 8, 2816, 32000))
    hd = d // heads
    net = Decoder("llama_past", layers, groups, hd)
    x = net.node("Gather", net.random(words, d, scale=1.0), net.ids, axis=0)
    step = (10000.0 ** (-np.arange(0, hd, 2) / hd)).astype(np.float32)
    at = net.node("Cast", net.node("Unsqueeze", net.positions, net.ints(2)),
                  to=TensorProto.FLOAT)
    angle = net.node("MatMul", at, net.const(step[None, None]))
    angle = net.node("Unsqueeze", net.node("Concat", angle, angle, axis=2), net.ints(1))
    cos, sin = net.node("Cos", angle), net.node("Sin", angle)

    def span(first, last):
        return net.node("Range", net.node("Squeeze", first), net.node("Squeeze", last),
                        net.const(np.array(1, np.int64)))

    queries = net.node("Unsqueeze", span(net.before, net.total), net.ints(1))
    keys = net.node("Unsqueeze", span(net.ints(0), net.total), net.ints(0))
    attend = net.node("Unsqueeze", net.node("Cast", net.attend, to=TensorProto.BOOL),
                      net.ints(1, 2))
    seen = net.node("And", net.node("LessOrEqual", keys, queries), attend)
    mask = net.node("Where", seen, net.scalar(0.0), net.scalar(MIN))
    for i in range(layers):
        h = net.rms_norm(x, d)
        q = rotate(net, net.heads(net.linear(h, d, d, False), heads, hd), cos, sin, hd)
        k = rotate(net, net.heads(net.linear(h, d, groups * hd, False), groups, hd), cos, sin, hd)
        k, v = net.append(i, k, net.heads(net.linear(h, d, groups * hd, False), groups, hd))
        k, v = repeat(net, k, groups, heads, hd), repeat(net, v, groups, heads, hd)
        k = net.node("Transpose", k, perm=[0, 1, 3, 2])
        x = net.node("Add", x, net.linear(net.attention_heads(q, k, v, heads, hd, mask), d, d,
                                          False))
        h = net.rms_norm(x, d)
        h = net.node("Mul", net.silu(net.linear(h, d, mlp, False)), net.linear(h, d, mlp, False))
        x = net.node("Add", x, net.linear(h, mlp, d, False))
    return net.logits(net.linear(net.rms_norm(x, d), d, words, False), words)


def whisper(tiny):
    """The encoder of the base one: 80 bands of sound, two convolutions along time."""
    net = Net("whisper")
    frames, d, layers, heads = (64, 32, 2, 4) if tiny else (3000, 512, 6, 8)
    x = net.input("mel", ["N", 80, frames])
    for cin, stride in ((80, 1), (d, 2)):
        w = net.random(d, cin, 3, scale=(3 * cin) ** -0.5)
        x = net.node("Conv", x, w, net.random(d, scale=0.02), kernel_shape=[3],
                     strides=[stride], pads=[1, 1])
        x = net.gelu(x)
    x = net.node("Transpose", x, perm=[0, 2, 1])
    x = net.node("Add", x, net.random(1, frames // 2, d, scale=0.02))
    for _ in range(layers):
        x = net.encoder(x, d, heads, 4 * d)
    net.output(net.layer_norm(x, d), "last_hidden_state", ["N", frames // 2, d])
    return net


NETWORKS = {f.__name__: f for f in (resnet50, resnet50_int8, mobilenetv2, mobilenetv3,
                                    efficientnet, unet, vit, bert, gpt2, llama, whisper)}
DECODERS = {f.__name__: f for f in (gpt2_past, llama_past)}


def main():
    parser = argparse.ArgumentParser(description="writes network models as ONNX files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks; all by default")
    parser.add_argument("--out", default=".", help="folder for the files")
    parser.add_argument("--tiny", action="store_true", help="few and narrow layers, for tests")
    parser.add_argument("--list", action="store_true", help="print the names")
    args = parser.parse_args()
    known = NETWORKS | DECODERS
    if args.list:
        print("\n".join(NETWORKS))
        return 0
    unknown = [n for n in args.names if n not in known]
    if unknown:
        print(f"models.py: no network {unknown[0]}; there are {', '.join(known)}",
              file=sys.stderr)
        return 2
    os.makedirs(args.out, exist_ok=True)
    for name in args.names or NETWORKS:
        path = os.path.join(args.out, name + ".onnx")
        onnx.save(known[name](args.tiny).model(), path + ".tmp")
        os.replace(path + ".tmp", path)
        print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
