/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_WRITE_TEST_H
#define HEDDLE_NN_WRITE_TEST_H

/* For tests: writes nodes of a graph, and models. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnx/wire_test.h"

/* "name:integer name=integer,integer name~number name'text", with blanks between. */
static inline void put_attrs(struct wire_out *node, const char *text)
{
    while (*text != '\0') {
        const size_t len = strcspn(text, ":=~'");
        struct wire_out a = {.len = 0};
        const bool is_list = text[len] == '=';
        char *end;

        wire_mem(&a, 1, text, len);
        if (text[len] == '~' || text[len] == '\'') {
            const bool is_text = text[len] == '\'';
            const float number = is_text ? 0 : strtof(text + len + 1, NULL);

            text += len + 1;
            if (is_text)
                wire_mem(&a, 4, text, strcspn(text, " "));
            else
                wire_f32(&a, 2, number);
            wire_int(&a, 20, is_text ? 3 : 1);
            wire_sub_message(node, 5, &a);
            text += strcspn(text, " ");
            text += *text == ' ';
            continue;
        }
        for (end = (char *)(uintptr_t)text + len; *end == ':' || *end == '=' || *end == ',';)
            wire_int(&a, is_list ? 8 : 3, strtoll(end + 1, &end, 10));
        wire_int(&a, 20, is_list ? 7 : 2);
        wire_sub_message(node, 5, &a);
        text = end + (*end == ' ');
    }
}

/* in, out: names with blanks between. */
static inline void put_node(struct wire_out *g, const char *op, const char *in, const char *out,
                            const char *attrs)
{
    struct wire_out n = {.len = 0};

    while (*in != '\0') {
        const size_t len = strcspn(in, " ");

        wire_mem(&n, 1, in, len);
        in += len + (in[len] == ' ');
    }
    while (*out != '\0') {
        const size_t len = strcspn(out, " ");

        wire_mem(&n, 2, out, len);
        out += len + (out[len] == ' ');
    }
    wire_str(&n, 4, op);
    put_attrs(&n, attrs);
    wire_sub_message(g, 1, &n);
}

/* A model whose main graph is g. */
static inline void end_model(const char *path, const struct wire_out *g, int64_t opset)
{
    struct wire_out m = {.len = 0}, o = {.len = 0};
    FILE *f = fopen(path, "wb");

    wire_int(&m, 1, 8);
    wire_sub_message(&m, 7, g);
    wire_int(&o, 2, opset);
    wire_sub_message(&m, 8, &o);
    CHECK(f != NULL);
    CHECK(fwrite(m.buf, 1, m.len, f) == m.len);
    CHECK(fclose(f) == 0);
}

#endif /* HEDDLE_NN_WRITE_TEST_H */
