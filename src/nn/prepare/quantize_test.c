/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs with bytes between their operators, as quantisers write them. Scales are powers of two, so
 * that sums of floats are exact as well and results have to be the same.
 */
#define GRAPH_FILE "prepare_quantize.onnx"
#include "nn/prepare/graph_test.h"

enum { CHANNELS = 4 };

/* What is not as the pass wants it. */
enum odd { NONE, W_ZERO, W_AXIS, B_SCALE, RELU_ZERO, Y_DATA, GROUPS };

static void put_byte(const char *name, int type, int v)
{
    put_integers(&g, name, type, 0, NULL, &v);
}

static void put_constants(enum odd odd)
{
    int w[CHANNELS * CHANNELS * 9], b[CHANNELS], zeros[CHANNELS] = {0};
    const float scales[CHANNELS] = {0.125f, 0.25f, 0.0625f, 0.5f};
    float by[CHANNELS];

    for (unsigned i = 0; i < CHANNELS * CHANNELS * 9; i++)
        w[i] = (int)rnd(256) - 128;
    for (unsigned i = 0; i < CHANNELS; i++) {
        b[i] = (int)rnd(4001) - 2000;
        by[i] = scales[i] * (odd == B_SCALE ? 0.5f : 0.25f);
        zeros[i] = odd == W_ZERO && i == 2 ? 1 : 0;
    }
    put_integers(&g, "wq", HEDDLE_ONNX_INT8, 4, DIM(CHANNELS, odd == GROUPS ? 1 : CHANNELS, 3, 3),
                 w);
    put_integers(&g, "mq", HEDDLE_ONNX_INT8, 2, DIM(7, CHANNELS), w);
    put_integers(&g, "bq", HEDDLE_ONNX_INT32, 1, DIM(CHANNELS), b);
    put_integers(&g, "wz", HEDDLE_ONNX_INT8, 1, DIM(CHANNELS), zeros);
    put_floats(&g, "ws", 1, DIM(CHANNELS), CHANNELS, scales);
    put_floats(&g, "bs", 1, DIM(CHANNELS), CHANNELS, by);
    put_number(&g, "xs", 0.25);
    put_number(&g, "ys", 32);
    put_number(&g, "rs", 2);
    put_byte("xz", HEDDLE_ONNX_UINT8, 117);
    put_byte("yz", HEDDLE_ONNX_UINT8, odd == RELU_ZERO ? 3 : 0);
    put_byte("sz", HEDDLE_ONNX_INT8, -7);
}

/* y = conv(x), with bytes before and behind. */
static void put_conv(enum odd odd, const char *activation)
{
    begin(4, DIM(2, CHANNELS, 5, 7));
    put_constants(odd);
    node("QuantizeLinear", "x xs xz", "xq", "");
    node("DequantizeLinear", "xq xs xz", "xf", "");
    node("DequantizeLinear", "wq ws wz", "w", odd == W_AXIS ? "axis:1" : "axis:0");
    node("DequantizeLinear", "bq bs", "b", "axis:0");
    node("Conv", "xf w b", "c", odd == GROUPS ? "pads=1,1,1,1 group:4" : "pads=1,1,1,1");
    node(activation, "c", "r", "");
    if (odd == Y_DATA) {
        node("ReduceMax", "r", "most", "keepdims:0");
        node("Abs", "most", "scale", "");
        node("QuantizeLinear", "r scale yz", "q", "");
    } else {
        node("QuantizeLinear", "r ys yz", "q", "");
    }
    node("DequantizeLinear", "q ys yz", "y", "");
}

TEST(products)
{
    put_conv(NONE, "Relu");
    expect("y", 5, "QLinearConv", 1); /* bytes, their copy, the product, a copy, floats */
    put_conv(RELU_ZERO, "Identity");
    expect("y", 5, "QLinearConv", 1);
    begin(3, DIM(2, 5, 7)); /* a matrix; its scale is the same for all columns, or one for each */
    put_constants(NONE);
    node("QuantizeLinear", "x xs xz", "xq", "");
    node("DequantizeLinear", "xq xs xz", "xf", "");
    node("DequantizeLinear", "mq ws wz", "m", "axis:1");
    node("MatMul", "xf m", "p", "");
    node("QuantizeLinear", "p ys sz", "q", "");
    node("DequantizeLinear", "q ys sz", "y", "");
    expect("y", 3, "QLinearMatMul", 1);
}

TEST(no_products)
{
    static const enum odd odd[] = {W_ZERO, W_AXIS, B_SCALE, RELU_ZERO, Y_DATA, GROUPS};
    struct census c = {.op = {"QLinearConv"}};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        put_conv(odd[i], "Relu");
        put_port(&g, 12, "y", 0, NULL);
        end_model(path, &g, 17);
        compare_model(path, count_ops, &c);
    }
    put_conv(NONE, "Sigmoid");
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g, 17);
    compare_model(path, count_ops, &c);
    put_conv(NONE, "Relu"); /* an output in the middle */
    put_port(&g, 12, "y", 0, NULL);
    put_port(&g, 12, "c", 0, NULL);
    end_model(path, &g, 17);
    compare_model(path, count_ops, &c);
    CHECK_EQ(c.n[0], 0);
}

static void put_sum(const char *second)
{
    char in[40];

    begin(2, DIM(9, 13));
    put_constants(NONE);
    node("QuantizeLinear", "x xs xz", "xq", "");
    node("DequantizeLinear", "xq xs xz", "a", "");
    node("Neg", "x", "n", "");
    node("QuantizeLinear", "n rs sz", "nq", "");
    node("DequantizeLinear", "nq rs sz", "b", "");
    (void)snprintf(in, sizeof(in), "a %s", second);
    node("Add", in, "s", "");
    node("Relu", "s", "r", "");
    node("QuantizeLinear", "r xs sz", "q", "");
    node("DequantizeLinear", "q xs sz", "y", "");
}

TEST(sums)
{
    put_sum("b");
    expect("y", 5, "QuantizedAdd", 1);
    put_sum("n"); /* floats */
    expect("y", 5, "QuantizedAdd", 0);
    put_sum("a");
    expect("y", 3, "QuantizedAdd", 1);
}

TEST_MAIN(products, no_products, sums)
