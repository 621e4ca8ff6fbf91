/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ONNX_WIRE_TEST_H
#define HEDDLE_ONNX_WIRE_TEST_H

/* For tests: writes protobuf's wire format. Messages are written inside out. */
#include <stdint.h>
#include <string.h>

#include "tests/test.h"

struct wire_out {
    uint8_t buf[1 << 14];
    size_t len;
};

static inline void wire_byte(struct wire_out *w, unsigned b)
{
    CHECK(w->len < sizeof(w->buf));
    w->buf[w->len++] = (uint8_t)b;
}

static inline void wire_number(struct wire_out *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        wire_byte(w, (unsigned)(v & 0x7f) | 0x80);
    wire_byte(w, (unsigned)v);
}

static inline void wire_int(struct wire_out *w, unsigned field, int64_t v)
{
    wire_number(w, (uint64_t)field << 3);
    wire_number(w, (uint64_t)v);
}

static inline void wire_mem(struct wire_out *w, unsigned field, const void *p, size_t n)
{
    wire_number(w, (uint64_t)field << 3 | 2);
    wire_number(w, n);
    for (size_t i = 0; i < n; i++)
        wire_byte(w, ((const uint8_t *)p)[i]);
}

static inline void wire_str(struct wire_out *w, unsigned field, const char *s)
{
    wire_mem(w, field, s, strlen(s));
}

static inline void wire_sub_message(struct wire_out *w, unsigned field, const struct wire_out *sub)
{
    wire_mem(w, field, sub->buf, sub->len);
}

static inline void wire_f32(struct wire_out *w, unsigned field, float v)
{
    uint8_t b[4];

    memcpy(b, &v, sizeof(v));
    wire_number(w, (uint64_t)field << 3 | 5);
    for (unsigned i = 0; i < 4; i++)
        wire_byte(w, b[i]);
}

#endif /* HEDDLE_ONNX_WIRE_TEST_H */
